import { chmodSync, closeSync, openSync, rmSync, statSync, watch } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { peerOfSocket, socketAddress, tryLock, type Peer, type SocketAddress } from '@nd7/kernel';
import { refuse } from './frames.js';
import { whyNotFor } from './guest.js';

/** A front: where its open files come, which Node never reads, and where it speaks. */
export interface Guest {
  passing: Socket;
  control: Socket;
}

const NAME = 'host';

/** The socket at which fronts find the idle host of a home. There is one, since it stands for a lock. */
export class Place {
  readonly #path: string;
  #server: Server | undefined;
  #inode = -1;
  #hear: ((socket: Socket) => void) | undefined;
  /** Connections that came before somebody heard them. */
  readonly #early: Socket[] = [];

  private constructor(
    private readonly run: string,
    private readonly lock: number,
    private readonly address: SocketAddress,
  ) {
    this.#path = join(run, NAME);
  }

  /** Undefined where another host has it and keeps it for so long. */
  static async take(run: string, forMs: number): Promise<Place | undefined> {
    const lock = openSync(join(run, `${NAME}.lock`), 'a', 0o600);
    for (const until = performance.now() + forMs; !tryLock(lock);) {
      if (performance.now() >= until) {
        closeSync(lock);
        return undefined;
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return new Place(run, lock, socketAddress(run, NAME));
  }

  /** From now on fronts find it. */
  async open(): Promise<void> {
    if (this.#server !== undefined) return;
    rmSync(this.#path, { force: true });
    const old = process.umask(0o177);
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on('error', () => socket.destroy());
      if (this.#hear === undefined) this.#early.push(socket);
      else this.#hear(socket);
    });
    this.#server = server;
    const listening = new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ path: this.address.path, backlog: 511 }, resolve);
    });
    process.umask(old); // the socket's file is made within listen()
    await listening;
    try {
      chmodSync(this.#path, 0o600);
      this.#inode = statSync(this.#path).ino;
    } catch {
      // Taken away by now: who waits for a guest sees that it has gone.
    }
  }

  /** The next front; undefined when none came in the time, when the socket was taken away, and when `mayServe` says why it may have none any more. */
  async guest(idleMs: number, mayServe: () => string | undefined): Promise<Guest | undefined> {
    await this.open();
    return new Promise((resolve) => {
      let isDone = false;
      const done = (guest: Guest | undefined): void => {
        if (isDone) return;
        isDone = true;
        clearTimeout(idle);
        unwatch();
        this.#leave();
        for (const { socket } of waiting.values()) if (socket !== guest?.passing) socket.destroy();
        resolve(guest);
      };
      const idle = setTimeout(() => done(undefined), idleMs);
      const unwatch = whenGone(this.run, this.#path, this.#inode, () => done(undefined));
      const waiting = new Map<number, { socket: Socket; whyNot: string | undefined }>();
      this.#hear = (socket) => {
        const peer = peerOrNobody(socket);
        const first = waiting.get(peer.pid);
        if (first === undefined) {
          waiting.set(peer.pid, { socket, whyNot: whyNotFor(peer) ?? mayServe() });
          socket.once('close', () => waiting.delete(peer.pid));
        } else if (first.whyNot === undefined) {
          done({ passing: first.socket, control: socket });
        } else {
          socket.end(refuse(first.whyNot));
          first.socket.destroy();
          if (mayServe() !== undefined) done(undefined);
        }
      };
      for (const socket of this.#early.splice(0)) this.#hear(socket);
    });
  }

  /** The next host may have it. */
  #leave(): void {
    rmSync(this.#path, { force: true });
    this.#server?.close(() => this.address.close());
    closeSync(this.lock);
  }
}

function peerOrNobody(socket: Socket): Peer {
  try {
    return peerOfSocket(socket);
  } catch {
    return { pid: 0, uid: -1, gid: -1 };
  }
}

/** A host whose socket was taken away serves nobody and would stay for ever: a throw-away home must not leave one behind. */
function whenGone(folder: string, path: string, own: number, gone: () => void): () => void {
  const look = (): void => {
    if (statSync(path, { throwIfNoEntry: false })?.ino !== own) gone();
  };
  try {
    const watcher = watch(folder, { persistent: false }, look);
    watcher.on('error', gone);
    // It may have gone before anybody watched.
    setImmediate(look);
    return () => watcher.close();
  } catch {
    setImmediate(look); // no watches left on this machine: its idle time ends it
    return () => undefined;
  }
}
