import { createServer, Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { tcpPeer } from '@nd7/kernel';

const HERE = '127.0.0.1';
/** Hooks and questions that are under way at once; others come again. */
const MOST_AT_DOOR = 256;

/**
 * Listeners on this machine's own loopback that hear one session only, where nobody makes its connections for it (T3): the kernel says which
 * process has the other end of a connection, and it has to stand below the session's first. Whoever else connects is cut off unheard. The first
 * of them is the session's door: what connects there is handed on with the pid that was found.
 */
export class SeenListeners {
  readonly #listening: Server[] = [];
  readonly #ports: number[] = [];
  #first: number | undefined;
  /** What is served behind the door, in the order of `ports`. */
  readonly served: Server[] = [];

  private constructor(private readonly opened: (socket: Socket, pid: number) => void) {}

  /** `count`: so many besides the door. `opened` hears of the door. */
  static async open(count: number, opened: (socket: Socket, pid: number) => void): Promise<SeenListeners> {
    const seen = new SeenListeners(opened);
    try {
      for (let i = 0; i <= count; i++) await seen.#listen(i === 0);
    } catch (error) {
      seen.close();
      throw error;
    }
    return seen;
  }

  get door(): number {
    return this.#ports[0] ?? 0;
  }

  /** Those besides the door, in the order in which they were opened. */
  get ports(): readonly number[] {
    return this.#ports.slice(1);
  }

  /** From now on those are heard that stand below this process; nobody was before. */
  admit(first: number | undefined): void {
    this.#first = first;
  }

  close(): void {
    for (const server of this.#listening) server.close();
  }

  async #listen(isDoor: boolean): Promise<void> {
    const inner = new Server();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const pid = this.#peerOf(socket);
      if (pid === undefined) socket.destroy();
      else if (isDoor) this.opened(socket, pid);
      else inner.emit('connection', socket);
    });
    server.maxConnections = isDoor ? MOST_AT_DOOR : Infinity;
    server.listen(0, HERE, 511);
    await once(server, 'listening');
    const address = server.address();
    this.#listening.push(server);
    this.#ports.push(typeof address === 'object' ? (address?.port ?? 0) : 0);
    if (!isDoor) this.served.push(inner);
  }

  #peerOf(socket: Socket): number | undefined {
    const { remoteAddress, remotePort = 0, localPort = 0 } = socket;
    // Of the loopback's other addresses each is somebody else's to take.
    if (this.#first === undefined || remoteAddress !== HERE) return undefined;
    const ends = { from: { address: HERE, port: remotePort }, to: { address: HERE, port: localPort } };
    const peer = tcpPeer(ends, this.#first);
    return peer?.uid === process.geteuid?.() ? peer?.pid : undefined;
  }
}
