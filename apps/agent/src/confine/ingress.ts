import { createServer, type Server, type Socket } from 'node:net';
import type { Listener } from '@nd7/confine';
import { join } from '@nd7/egress';
import { portRule, type NetworkRules, type Source } from '@nd7/policy';
import { CliError } from '../cli/io.js';

const HERE = '127.0.0.1';
/** Each is a socket of this machine. */
const MOST_PORTS = 256;
/** Connections from outside at once; more are closed unheard. */
const MOST_CONNECTIONS = 1024;

/** A server inside has been reached from this machine, as the policy lets it. */
export interface Reached {
  port: number;
  source: Source;
}

/** The ways in: ports of this machine's loopback that lead to the same ports of the session's, where a server inside may listen. */
export class Ingress {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #recorded = new Map<number, Promise<void>>();
  #connect: ((port: number) => Promise<Socket>) | undefined;

  private constructor(private readonly record: (reached: Reached) => Promise<void>) {}

  /**
   * Takes the ports that rules name (`network.listen`). `own`: what nd7 itself listens on inside. `record` is told of each port when it is used
   * for the first time, before anything goes in. Throws `CliError` where a port cannot be had.
   */
  static async open(
    network: NetworkRules,
    own: readonly Listener[],
    record: (reached: Reached) => Promise<void>,
  ): Promise<Ingress> {
    const ingress = new Ingress(record);
    const ports = new Set(network.listen.flatMap(({ from, to }) => range(from, to)));
    if (ports.size > MOST_PORTS)
      throw refused(`network.listen names more than ${MOST_PORTS} ports`, 'Name those that servers inside listen on.');
    try {
      for (const port of ports) {
        const taken = own.find((listener) => listener.kind === 'stream' && listener.port === port);
        if (taken !== undefined)
          throw refused(
            `port ${port} is in network.listen, and inside nd7 itself listens on it`,
            portRule(network, 'loopback', port) === undefined
              ? 'Let the server inside take another port.'
              : 'It cannot be in network.loopback too: what came in would go out again.',
          );
        await ingress.#listen(port, portRule(network, 'listen', port)?.source as Source);
      }
    } catch (error) {
      ingress.close();
      throw error;
    }
    return ingress;
  }

  /** From now on connections go in. */
  reach(connect: (port: number) => Promise<Socket>): void {
    this.#connect = connect;
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #listen(port: number, source: Source): Promise<void> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
    server.on('connection', (socket) => void this.#enter(socket, port, source).catch(() => socket.resetAndDestroy()));
    this.#servers.push(server);
    return new Promise((done, fail) => {
      server.once('error', (error: NodeJS.ErrnoException) => fail(cannotListen(port, error)));
      server.listen({ port, host: HERE }, done);
    });
  }

  async #enter(socket: Socket, port: number, source: Source): Promise<void> {
    if (this.#connect === undefined || this.#sockets.size >= MOST_CONNECTIONS) throw new Error('not now');
    this.#keep(socket);
    await this.#once({ port, source });
    const inside = await this.#connect(port);
    inside.allowHalfOpen = true;
    inside.setNoDelay(true);
    if (socket.destroyed) return void inside.destroy();
    this.#keep(inside);
    join(socket, inside);
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** A use that could not be recorded is none, and the next one is asked anew. */
  #once(reached: Reached): Promise<void> {
    const { port } = reached;
    const recorded = this.#recorded.get(port) ?? this.record(reached);
    this.#recorded.set(port, recorded);
    recorded.catch(() => this.#recorded.delete(port));
    return recorded;
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.min(to - from, MOST_PORTS) + 1 }, (_, i) => from + i);
}

function cannotListen(port: number, { code, message }: NodeJS.ErrnoException): CliError {
  const why = code === 'EADDRINUSE' ? 'something else listens on it' : (code ?? message);
  return refused(
    `port ${port} of this machine cannot be had for servers inside: ${why}`,
    code === 'EADDRINUSE'
      ? `End what listens on ${HERE}:${port} (ss -ltnp says what it is), or take the port out of network.listen.`
      : 'Take the port out of network.listen, or name one from 1024 on.',
  );
}

function refused(message: string, hint: string): CliError {
  return new CliError(2, message, hint, 'no-listen');
}
