import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import { socketAddress, type SocketAddress } from '@nd7/kernel';
import { formatAnswer, MAX_MESSAGE, parseRequest } from './protocol.js';
import { refuse, SignerError, type CheckpointSigner, type SignAnswer, type SignerState } from './signer.js';

/**
 * A signer for the replicas of one machine, on a Unix socket (0600: whoever may open it may ask for signatures, which only ever extend a
 * log). There is no `adopt`, `rotate` or `retire` here: those are a person's, made on the signer's folder while it is stopped.
 */
export class SignerServer {
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly path: string,
    private readonly address: SocketAddress,
  ) {}

  /** `signer` must be open, that is hold its folder's lock: only then may a socket left behind by a dead signer be replaced. */
  static async listen(signer: CheckpointSigner, path: string): Promise<SignerServer> {
    let address: SocketAddress;
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      rmSync(path, { force: true });
      address = socketAddress(dirname(path), basename(path));
    } catch (error) {
      throw new SignerError('folder', `cannot make the signer's socket ${path}: ${(error as Error).message}`, {
        cause: error,
      });
    }
    const server = createServer();
    const made = new SignerServer(server, path, address);
    server.on('connection', (socket) => {
      made.serve(socket, signer);
    });
    await new Promise<void>((done, failed) => {
      server.once('error', (error) => {
        failed(new SignerError('folder', `cannot listen on ${path}: ${error.message}`, { cause: error }));
      });
      // The umask decides the mode the socket is born with; nobody else may connect even for a moment.
      const before = process.umask(0o177);
      server.listen(address.path, () => {
        chmodSync(path, 0o600);
        done();
      });
      process.umask(before);
    });
    return made;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((done) => {
      this.server.close(() => {
        done();
      });
    });
    rmSync(this.path, { force: true });
    this.address.close();
  }

  private serve(socket: Socket, signer: CheckpointSigner): void {
    this.sockets.add(socket);
    let pending = '';
    let answered = Promise.resolve();
    socket.setEncoding('utf8');
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: string) => {
      pending += chunk;
      const lines = pending.split('\n');
      pending = lines.pop() ?? '';
      if (pending.length > MAX_MESSAGE || lines.some((line) => line.length > MAX_MESSAGE)) {
        socket.destroy();
        return;
      }
      for (const line of lines) {
        answered = answered.then(async () => {
          const answer = await answerTo(line, signer);
          if (!socket.destroyed) socket.write(formatAnswer(answer));
        });
      }
    });
  }
}

async function answerTo(line: string, signer: CheckpointSigner): Promise<SignAnswer | SignerState> {
  const request = parseRequest(line);
  if (request === undefined) return refuse('bad-request', 'not a request of the signer protocol');
  try {
    if (request.op === 'sign') return await signer.sign(request);
    return await (request.op === 'state' ? signer.state(request.origin) : signer.provision(request.origin));
  } catch (error) {
    return refuse('failed', (error as Error).message);
  }
}
