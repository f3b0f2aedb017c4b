// Ways out of a box of somebody else's.
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { createServer, Server } from 'node:net';
import { join } from 'node:path';
import { peerOfSocket, socketAddress } from '@nd7/kernel';
import { lineage } from '../recorder/inside.js';
import type { Client } from '../recorder/peer.js';
import { DOOR } from './door.js';

/** Sockets in the door's folder that stand for ports of the box's loopback, and hear who stands below the box's first process. */
export class Ways {
  readonly served: Server[] = [];
  /** As `nd7-box` is told of them. */
  readonly words: string[] = [];
  readonly #listening: Server[] = [];
  readonly #addresses: { close(): void }[] = [];
  #first: Client | undefined;

  static async open(folder: string, ports: readonly number[]): Promise<Ways> {
    const ways = new Ways();
    for (const port of ports) await ways.#listen(folder, port);
    return ways;
  }

  /** From now on those are heard that stand below this process; nobody was before. */
  admit(first: Client): void {
    this.#first = first;
  }

  close(): void {
    for (const server of this.#listening) server.close();
    for (const address of this.#addresses) address.close();
  }

  async #listen(folder: string, port: number): Promise<void> {
    const name = `way-${port}`;
    const inner = new Server();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const { pid, uid } = peerOfSocket(socket);
      const isInside = this.#first !== undefined && lineage(pid, this.#first) !== undefined;
      if (uid !== process.geteuid?.() || !isInside) socket.destroy();
      else inner.emit('connection', socket);
    });
    const address = socketAddress(folder, name);
    server.listen({ path: address.path, backlog: 511 });
    await once(server, 'listening');
    chmodSync(join(folder, name), 0o600);
    this.#listening.push(server);
    this.#addresses.push(address);
    this.served.push(inner);
    this.words.push(`${port}=${DOOR}/${name}`);
  }
}
