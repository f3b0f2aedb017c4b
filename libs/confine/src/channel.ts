import type { ChildProcess } from 'node:child_process';
import { Socket as Datagrams } from 'node:dgram';
import { Server, Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';

/** A socket of the session, held outside. */
export type Opened = Server | Datagrams;

interface Message {
  /** Which of the plan's listeners comes with it. */
  listener?: number;
  /** Which connection comes with it, or does not. */
  connected?: number;
  failed?: number;
  error?: number;
}

interface Waiting {
  resolve(socket: Socket): void;
  reject(error: Error): void;
}

/** The channel by which the launcher hands sockets of the session out: Node's own between processes, at whose other end no Node is. */
export class Channel {
  /** The plan's listeners in their order; none where the session ended before all were there. */
  readonly listeners: Promise<Opened[]>;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  readonly #early = new Set<Socket>();
  #asked = 0;
  #isOver = false;

  constructor(child: ChildProcess, count: number, end: Promise<unknown>) {
    this.#child = child;
    const found = new Map<number, Opened>();
    this.listeners = new Promise((done) => {
      if (count === 0) done([]);
      child.on('message', (message: Message, handle) => {
        if (message.listener === undefined) return this.#take(message, handle);
        if (!(handle instanceof Server || handle instanceof Datagrams)) return;
        if (handle instanceof Server) this.#keepEarly(handle);
        found.set(message.listener, handle);
        if (found.size === count) done(Array.from({ length: count }, (_, i) => found.get(i) as Opened));
      });
      void end.then(() => {
        // Some that came before the session ended are nobody's.
        if (found.size < count) for (const opened of found.values()) opened.close();
        for (const socket of this.#early) socket.destroy();
        done([]);
      });
    });
    void end.then(() => this.#end());
    child.once('disconnect', () => this.#end());
  }

  /** Connects to a server inside, on the session's loopback. Rejects with the code of the kernel, ECONNREFUSED where nobody listens. */
  connect(port: number): Promise<Socket> {
    const id = ++this.#asked % 1_000_000_000;
    return new Promise((resolve, reject) => {
      if (this.#isOver || !this.#child.connected) return reject(failure('ECONNRESET'));
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ connect: port, id }, (error) => {
        if (error !== null && this.#waiting.delete(id)) reject(error);
      });
    });
  }

  /** A program may connect while other listeners are still on their way: what comes before somebody hears a listener waits for who hears it. */
  #keepEarly(server: Server): void {
    const early: Socket[] = [];
    const keep = (socket: Socket): void => {
      early.push(socket.on('error', () => undefined));
      this.#early.add(socket);
    };
    const heard = (event: string | symbol): void => {
      if (event !== 'connection') return;
      server.off('newListener', heard).off('connection', keep);
      process.nextTick(() => {
        for (const socket of early) {
          this.#early.delete(socket);
          server.emit('connection', socket);
        }
      });
    };
    server.on('connection', keep).on('newListener', heard);
  }

  #take({ connected, failed, error = 0 }: Message, handle: unknown): void {
    const id = connected ?? failed;
    // Others have something to say here as well.
    if (id === undefined) return;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (!(handle instanceof Socket)) return waiting?.reject(failure(getSystemErrorName(-error)));
    if (waiting === undefined) handle.destroy();
    else waiting.resolve(handle);
  }

  #end(): void {
    this.#isOver = true;
    for (const { reject } of this.#waiting.values()) reject(failure('ECONNRESET'));
    this.#waiting.clear();
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}
