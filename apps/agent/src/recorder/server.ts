import { chmodSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { peerOfSocket, socketAddress } from '@nd7/kernel';
import type { Peer } from '@nd7/kernel';
import { encodeAnswer, RequestReader } from './frames.js';
import type { Answer, Request } from './frames.js';

/** A hook sends its payload at once; whoever is silent for this long in the middle of a request is cut off. */
const SILENT_MS = 30_000;
/** So much all together have sent of what has not been answered: some of the longest payloads. Programs inside a session could send more than there is memory for. */
const MOST_HELD = 256 << 20;

/** What is answered to whom. `gone` resolves when the one who asked has hung up. */
export type Answerer = (request: Request, peer: Peer, gone: Promise<void>) => Promise<Answer>;

/** Who speaks through a connection, given whom the kernel names. */
type CallerOf = (peer: Peer, socket: Socket) => Peer;

/** A listening socket of the recorder, or of the front of a confined session. */
export interface HookServer {
  /** Hears one whose peer is known already, and is told by who had the kernel's word for it. */
  take(socket: Socket, peer: Peer): void;
  /** Stops listening, removes the socket, resolves when every answer under way is given. */
  close(): Promise<void>;
}

/**
 * Listens on a socket in a folder (mode 0600). Only processes of this process's own user are heard: the uid is the kernel's word. The
 * caller holds a lock that stands for the place, so a socket that lies there is a dead one's. `limit`: the longest payload that is taken.
 * `caller`: for whom a peer speaks that was connected by another.
 */
export async function listen(
  { folder, name, limit, caller }: { folder: string; name: string; limit?: number; caller?: CallerOf },
  answer: Answerer,
): Promise<HookServer> {
  const path = join(folder, name);
  rmSync(path, { force: true });
  const address = socketAddress(folder, name);
  const sockets = new Set<Socket>();
  const held = { bytes: 0 };
  const admit = (socket: Socket, peer?: Peer): void => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    serve(socket, answer, { limit, held, caller }, peer);
  };
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => admit(socket));
  const old = process.umask(0o177);
  const listening = new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path: address.path, backlog: 511 }, resolve);
  });
  process.umask(old); // the socket's file is made within listen()
  await listening;
  chmodSync(path, 0o600);
  return {
    take: admit,
    close: () =>
      new Promise((resolve) => {
        rmSync(path, { force: true });
        server.close(() => {
          address.close();
          resolve();
        });
        // Whoever has said nothing yet is told to go elsewhere; the others get their answers.
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      }),
  };
}

function serve(
  socket: Socket,
  answer: Answerer,
  { limit, held, caller }: { limit: number | undefined; held: { bytes: number }; caller: CallerOf | undefined },
  known?: Peer,
): void {
  let peer: Peer;
  try {
    peer = known ?? peerOfSocket(socket);
    if (known === undefined && caller !== undefined) peer = caller(peer, socket);
  } catch {
    socket.destroy();
    return;
  }
  socket.on('error', () => socket.destroy());
  if (peer.uid !== process.geteuid?.()) {
    socket.destroy();
    return;
  }
  const gone = new Promise<void>((resolve) => void socket.once('end', resolve).once('close', resolve));
  const reader = new RequestReader(limit);
  let own = 0;
  socket.once('close', () => (held.bytes -= own));
  socket.setTimeout(SILENT_MS, () => socket.destroy());
  const take = (chunk: Buffer): void => {
    own += chunk.length;
    held.bytes += chunk.length;
    if (held.bytes > MOST_HELD) {
      socket.destroy();
      return;
    }
    const request = reader.push(chunk);
    if (request === 'more') return;
    socket.off('data', take);
    if (request === 'bad') {
      socket.destroy();
      return;
    }
    socket.setTimeout(0);
    socket.resume();
    answer(request, peer, gone).then(
      (given) => socket.end(encodeAnswer(given)),
      () => socket.destroy(),
    );
  };
  socket.on('data', take);
  socket.once('end', () => {
    // The end of what the client says; before a whole request it is a client that went away.
    if (socket.listenerCount('data') > 0) socket.destroy();
  });
}
