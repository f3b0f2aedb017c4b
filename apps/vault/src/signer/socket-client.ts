import { connect, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import { socketAddress, type SocketAddress } from '@nd7/kernel';
import { formatRequest, parseAnswer, type SignerRequest } from './protocol.js';
import {
  refuse,
  SignerError,
  type CheckpointSigner,
  type SignAnswer,
  type SignerState,
  type SignRequest,
} from './signer.js';

/** A signer that has not answered for so long (ms) counts as gone; what it signs after that is asked for again. */
const PATIENCE = 10_000;

interface Waiting {
  done: (line: string) => void;
  failed: (error: Error) => void;
}

/** Asks a signer process. One connection, made when needed and made again after it broke; a request that broke with it rejects with `unreachable`. */
export class SignerClient implements CheckpointSigner {
  private open: { socket: Socket; waiting: Waiting[]; address: SocketAddress } | undefined;

  constructor(
    private readonly path: string,
    private readonly patience = PATIENCE,
  ) {}

  async provision(origin: string): Promise<SignerState> {
    return this.stateFrom({ op: 'provision', origin });
  }

  async state(origin: string): Promise<SignerState> {
    return this.stateFrom({ op: 'state', origin });
  }

  async sign(request: SignRequest): Promise<SignAnswer> {
    const { lines, refused } = parseAnswer(await this.ask({ op: 'sign', ...request }));
    return (
      refused ?? (lines === undefined ? refuse('bad-request', 'the signer gave no signature') : { ok: true, lines })
    );
  }

  close(): Promise<void> {
    this.drop(new Error('closed'));
    return Promise.resolve();
  }

  private async stateFrom(request: SignerRequest): Promise<SignerState> {
    const { vkeys, last, refused } = parseAnswer(await this.ask(request));
    return (
      refused ??
      (vkeys === undefined || last === undefined
        ? refuse('bad-request', 'the signer gave no state')
        : { ok: true, vkeys, last })
    );
  }

  private ask(request: SignerRequest): Promise<string> {
    return new Promise((done, failed) => {
      const connection = (this.open ??= this.connect());
      const timer = setTimeout(() => {
        this.drop(new Error(`no answer within ${String(this.patience / 1000)} s`), connection);
      }, this.patience);
      connection.waiting.push({
        done: (line) => {
          clearTimeout(timer);
          done(line);
        },
        failed: (error) => {
          clearTimeout(timer);
          failed(
            new SignerError(
              'unreachable',
              `cannot reach the signer at ${this.path}: ${error.message}; start \`nd7-vault signer\``,
              { cause: error },
            ),
          );
        },
      });
      connection.socket.write(formatRequest(request));
    });
  }

  private connect(): { socket: Socket; waiting: Waiting[]; address: SocketAddress } {
    const address = this.addressOf();
    const socket = connect(address.path);
    const connection = { socket, waiting: [] as Waiting[], address };
    let pending = '';
    socket.setEncoding('utf8');
    socket.unref();
    socket.on('data', (chunk: string) => {
      pending += chunk;
      const lines = pending.split('\n');
      pending = lines.pop() ?? '';
      for (const line of lines) connection.waiting.shift()?.done(line);
    });
    socket.on('error', (error) => {
      this.drop(error, connection);
    });
    socket.on('close', () => {
      this.drop(new Error('the connection was closed'), connection);
    });
    return connection;
  }

  private addressOf(): SocketAddress {
    try {
      return socketAddress(dirname(this.path), basename(this.path));
    } catch (error) {
      throw new SignerError('unreachable', `cannot reach the signer at ${this.path}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  private drop(error: Error, connection = this.open): void {
    if (connection === undefined) return;
    if (this.open === connection) this.open = undefined;
    connection.socket.destroy();
    connection.address.close();
    for (const { failed } of connection.waiting.splice(0)) failed(error);
  }
}
