import { createServer, Server, type Socket } from 'node:net';
import { once } from 'node:events';

/** An announcement and its connection come by two ways; this is more than one can be late. */
const LATE_MS = 2_000;
/** Announced at once; more are a program's that gives up before it connects. */
const MOST_ANNOUNCED = 4_096;
/** Not announced yet; more are somebody else's of this machine, who would hold this process's descriptors with them. */
const MOST_WAITING = 256;
const HERE = '127.0.0.1';

/**
 * Listeners on this machine's own loopback that hear one session only: its supervisor makes the connections, and says before each from which
 * port it comes. Whoever else connects is cut off unheard. No token is needed that programs would have to know, and could leak.
 */
export class OwnListeners {
  readonly #listening: Server[] = [];
  readonly #ports: number[] = [];
  /** Until when each is waited for: what never came leaves nothing behind that somebody else with that port could use. */
  readonly #announced = new Map<number, number>();
  readonly #waiting = new Map<number, { admit: () => void; drop: () => void }>();
  /** What is served, in the order of `ports`. */
  readonly served: Server[] = [];

  private constructor(private readonly most: number) {}

  /** `most`: so many connections may wait for being announced; others are cut off at once. */
  static async open(count: number, most = MOST_WAITING): Promise<OwnListeners> {
    const own = new OwnListeners(most);
    for (let i = 0; i < count; i++) await own.#listen();
    return own;
  }

  /** In the order in which they were opened. */
  get ports(): readonly number[] {
    return this.#ports;
  }

  announced(port: number): void {
    const wait = this.#waiting.get(port);
    if (wait !== undefined) return wait.admit();
    const [oldest] = this.#announced.keys();
    if (this.#announced.size >= MOST_ANNOUNCED && oldest !== undefined) this.#announced.delete(oldest);
    this.#announced.set(port, performance.now() + LATE_MS);
  }

  close(): void {
    for (const server of this.#listening) server.close();
    for (const { drop } of [...this.#waiting.values()]) drop();
  }

  async #listen(): Promise<void> {
    const inner = new Server();
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#judge(socket, inner));
    server.listen(0, HERE, 511);
    await once(server, 'listening');
    const address = server.address();
    this.#listening.push(server);
    this.#ports.push(typeof address === 'object' ? (address?.port ?? 0) : 0);
    this.served.push(inner);
  }

  #judge(socket: Socket, inner: Server): void {
    const port = socket.remotePort ?? 0;
    // A port belongs to one program for each address: with another of the loopback's it would be anybody's.
    if (socket.remoteAddress !== HERE) return void socket.destroy();
    const admit = (): boolean => inner.emit('connection', socket);
    const until = this.#announced.get(port);
    this.#announced.delete(port);
    if (until !== undefined && performance.now() < until) return void admit();
    if (this.#waiting.has(port) || this.#waiting.size >= this.most) return void socket.destroy();
    const over = (): void => {
      clearTimeout(timer);
      this.#waiting.delete(port);
    };
    const drop = (): void => {
      over();
      socket.destroy();
    };
    const timer = setTimeout(drop, LATE_MS);
    socket.on('error', () => socket.destroy());
    this.#waiting.set(port, {
      drop,
      admit: () => {
        over();
        admit();
      },
    });
  }
}
