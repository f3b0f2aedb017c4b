import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Agent, request, type AgentOptions, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as tlsConnect, type ConnectionOptions } from 'node:tls';
import type { Credential } from '@nd7/policy';
import { answerOf, answerText, sayLast } from './answer.js';
import { Refusal } from './decision.js';
import { exchange, hasBody, passUpgrade, requestFields } from './exchange.js';
import { limitHeads } from './heads.js';
import { isFor, strictServer } from './http.js';
import type { Egress } from './proxy.js';
import { readHost, shown, type Target } from './target.js';

/** Reads a credential's secret. Asked at the first request and again after the server has refused it (401). */
export type ReadSecret = () => Promise<string>;

/** How programs inside speak to what stands for a host: in plain to a listener of its own, or with TLS that ends here, believing it is the host. */
export type Stance = 'endpoint' | 'terminate';

/**
 * What stands for one host inside a session: requests go on to it over TLS with the real credential put on, so that the program inside holds
 * a placeholder. Connections to the host are kept and used for it alone.
 */
export class Endpoint {
  readonly #egress: Egress;
  readonly #credential: Credential;
  readonly #readSecret: ReadSecret;
  readonly #stance: Stance;
  readonly #target: Target;
  readonly #server: Server;
  readonly #agent: CheckedAgent;
  readonly #watch: (socket: Socket) => void;
  #secret: Promise<string> | undefined;

  constructor(egress: Egress, host: string, credential: Credential, readSecret: ReadSecret, tls: ConnectionOptions) {
    this.#egress = egress;
    this.#credential = credential;
    this.#readSecret = readSecret;
    this.#stance = credential.way;
    this.#target = readHost(host, 443);
    this.#agent = new CheckedAgent(egress, this.#stance, this.#target, tls);
    this.#server = strictServer()
      .on('request', (asked: IncomingMessage, answer: ServerResponse) => void this.#forward(asked, answer))
      .on('upgrade', (asked: IncomingMessage, socket: Socket, head: Buffer) => void this.#upgrade(asked, socket, head))
      .on(
        'connect',
        (asked: IncomingMessage, socket: Socket) =>
          void this.#refuse(asked.url ?? '', socket, `this stands for ${this.#target.host}; the proxy is another`),
      )
      .on(
        'clientError',
        (error: NodeJS.ErrnoException, socket: Socket) =>
          void this.#refuse('', socket, `this is no HTTP/1.1 request (${error.code ?? error.message})`),
      );
    this.#watch = limitHeads(this.#server, egress.patienceMs);
  }

  /** Takes a connection over. */
  take(socket: Socket): void {
    this.#watch(socket);
    this.#server.emit('connection', socket);
  }

  close(): void {
    this.#agent.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #forward(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    try {
      const sent = request(await this.#admitted(asked));
      // A secret that is refused may have been renewed: the next request reads it anew.
      if ((await exchange(asked, answer, sent, this.#target.host)) === 401) this.#secret = undefined;
    } catch (error) {
      if (answer.headersSent) {
        answer.destroy();
        return;
      }
      const { status, reason, message } = answerOf(error);
      answer.writeHead(status, {
        'content-type': 'text/plain; charset=utf-8',
        'nd7-reason': reason,
        connection: 'close',
      });
      answer.end(`nd7: ${message}\n`);
    }
  }

  /** A WebSocket and its like: the host's answer goes back as it is, and then the two speak to each other. */
  async #upgrade(asked: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy());
    if (this.#stance === 'endpoint')
      return this.#refuse(asked.url ?? '', socket, 'no upgrade here: this listener speaks plain HTTP');
    // What was announced and not sent the host would take from the next request on its connection.
    if (hasBody(asked)) return this.#refuse(asked.url ?? '', socket, 'no upgrade here for a request with a body');
    try {
      if (head.length > 0) socket.unshift(head);
      await passUpgrade(await this.#admitted(asked), asked, socket, this.#target.host);
    } catch (error) {
      sayLast(socket, answerText(error), this.#egress.patienceMs);
    }
  }

  /** The request as it goes on to the host, once it has been admitted. Throws a Refusal. */
  async #admitted(asked: IncomingMessage): Promise<RequestOptions> {
    const path = asked.url ?? '';
    if (!path.startsWith('/')) throw await this.#refused(path, `"${shown(path)}" is no path`, asked.socket);
    // RFC 9110 section 9.3.8: the answer would be the request, with the credential.
    if (asked.method === 'TRACE')
      throw await this.#refused(path, 'TRACE is not passed on where a credential is put on', asked.socket);
    // Whoever means the host says so; to a listener of its own a program says that one's address.
    if (this.#stance === 'terminate' && !isFor(asked, this.#target))
      throw await this.#refused(
        path,
        `the request on a connection to ${this.#target.host} has another Host field`,
        asked.socket,
      );
    await this.#egress.admit(this.#stance, this.#target, asked.socket);
    const { header, value } = this.#credential;
    const secret = await this.#take();
    return {
      method: asked.method ?? 'GET',
      host: this.#target.host,
      path,
      headers: requestFields(asked, this.#target.host, [[header, value.replaceAll('{}', () => secret)]]),
      setHost: false,
      agent: this.#agent,
    };
  }

  async #take(): Promise<string> {
    this.#secret ??= this.#readSecret();
    try {
      return await this.#secret;
    } catch (error) {
      this.#secret = undefined;
      // The reason may hold what was read: it is for the person outside, not for the program.
      throw new Refusal(
        'no-credential',
        `the credential ${this.#credential.name} could not be read outside the session`,
        this.#credential.source,
        [],
        error,
      );
    }
  }

  #refused(said: string, message: string, socket: Socket): Promise<Refusal> {
    const refusal = new Refusal('bad-request', message, this.#credential.source);
    return this.#egress.refused(this.#stance, { said }, refusal, socket);
  }

  async #refuse(said: string, socket: Socket, message: string): Promise<void> {
    if (!socket.writable) return void socket.destroy();
    sayLast(
      socket,
      answerText(await this.#refused(said, message, socket).catch((error: unknown) => error)),
      this.#egress.patienceMs,
    );
  }
}

/** TLS connections to one host, opened through the proxy's own checks. */
class CheckedAgent extends Agent {
  readonly #egress: Egress;
  readonly #stance: Stance;
  readonly #target: Target;
  readonly #tls: ConnectionOptions;

  constructor(egress: Egress, stance: Stance, target: Target, tls: ConnectionOptions) {
    super({ keepAlive: true, maxSockets: 64, timeout: 60_000 });
    this.#egress = egress;
    this.#stance = stance;
    this.#target = target;
    this.#tls = tls;
  }

  override createConnection(_options: AgentOptions, done?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#open().then(
      (socket) => done?.(null, socket),
      (error: unknown) => done?.(error as Error, undefined as unknown as Duplex),
    );
  }

  async #open(): Promise<Duplex> {
    const { host, kind } = this.#target;
    const admitted = await this.#egress.look(this.#target);
    // It serves requests of whoever asks.
    const shared = { via: this.#stance, asker: undefined, connection: null };
    const socket = await this.#egress.dial({ ...admitted, ...shared });
    return tlsConnect({
      // Whatever NODE_TLS_REJECT_UNAUTHORIZED says where nd7 was started: a credential goes to nobody who is not the host.
      rejectUnauthorized: true,
      ...this.#tls,
      socket,
      host,
      ...(kind === 'name' && { servername: host }),
      ALPNProtocols: ['http/1.1'],
    });
  }
}
