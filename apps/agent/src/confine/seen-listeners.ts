import { createServer, Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { tcpPeer, TcpTable } from '@nd7/kernel';

const HERE = '127.0.0.1';
/** Hooks and questions that are under way at once; others come again. */
const MOST_AT_DOOR = 256;
/** The kernel's list of connections is not looked through more often: it takes milliseconds. */
const LOOK_MS = 20;

/** A connection that nobody has looked at yet. */
interface Came {
  socket: Socket;
  isDoor: boolean;
  inner: Server;
}

/**
 * Listeners on this machine's own loopback that hear one session only, where nobody makes its connections for it (T3): the kernel says which
 * process has the other end of a connection, and it has to stand below the session's first. Whoever else connects is cut off unheard. The first
 * of them is the session's door: what connects there is handed on with the pid that was found.
 */
export class SeenListeners {
  readonly #listening: Server[] = [];
  readonly #ports: number[] = [];
  #first: number | undefined;
  readonly #came: Came[] = [];
  /** When the list was looked through last. */
  #looked = -LOOK_MS;
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
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#wait({ socket, isDoor, inner }));
    server.maxConnections = isDoor ? MOST_AT_DOOR : Infinity;
    server.listen(0, HERE, 511);
    await once(server, 'listening');
    const address = server.address();
    this.#listening.push(server);
    this.#ports.push(typeof address === 'object' ? (address?.port ?? 0) : 0);
    if (!isDoor) this.served.push(inner);
  }

  /**
   * All that come within a time are looked for in one list of the kernel's: one for each connection would keep this process from hearing the session's while
   * another user of this machine connects again and again. Node hears one connection at each turn of its loop.
   */
  #wait(came: Came): void {
    came.socket.on('error', () => came.socket.destroy());
    if (this.#came.push(came) > 1) return;
    const look = (): void => {
      const table = new TcpTable();
      for (const one of this.#came.splice(0)) this.#judge(one, table);
      this.#looked = performance.now();
    };
    const rest = this.#looked + LOOK_MS - performance.now();
    if (rest <= 0) setImmediate(look);
    else setTimeout(look, rest);
  }

  #judge({ socket, isDoor, inner }: Came, table: TcpTable): void {
    const pid = this.#peerOf(socket, table);
    if (pid === undefined) socket.destroy();
    else if (isDoor) this.opened(socket, pid);
    else inner.emit('connection', socket);
  }

  #peerOf(socket: Socket, table: TcpTable): number | undefined {
    const { remoteAddress, remotePort = 0, localPort = 0 } = socket;
    // Of the loopback's other addresses each is somebody else's to take.
    if (this.#first === undefined || remoteAddress !== HERE) return undefined;
    const ends = { from: { address: HERE, port: remotePort }, to: { address: HERE, port: localPort } };
    return tcpPeer(ends, this.#first, table)?.pid;
  }
}
