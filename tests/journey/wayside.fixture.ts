// Somebody on the way between a machine and its vault, who can do to requests and answers what a network, a proxy or a false vault can.
import { createServer, request as ask, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request on its way. */
export interface Passing {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** An exchange that came through; `status` is the vault's, whatever the machine was told. */
export interface Seen extends Passing {
  status: number;
  answer: Buffer;
}

/** Ends the connection without a word. */
export const CUT = Symbol('cut');

export class Wayside {
  /** What was asked of the vault, in the order of its answers. */
  readonly seen: Seen[] = [];
  /** Connections that were cut before the vault heard of them. */
  lost = 0;
  /** Called before the vault is asked; may wait, or cut. */
  before: ((passing: Passing) => Promise<typeof CUT | undefined> | typeof CUT | undefined) | undefined;
  /** Called with the vault's answer; what it returns is told instead. */
  after: ((passing: Passing, answer: Answer) => Promise<Answer | typeof CUT> | Answer | typeof CUT) | undefined;
  private server: Server | undefined;

  private constructor(
    private readonly target: string,
    private port: number,
  ) {}

  static async start(target: string): Promise<Wayside> {
    const wayside = new Wayside(target, 0);
    await wayside.up();
    return wayside;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Requests for segments that reached the vault. */
  get puts(): Seen[] {
    return this.seen.filter(({ method }) => method === 'PUT');
  }

  honest(): void {
    this.before = undefined;
    this.after = undefined;
  }

  /** Nobody answers at the address any more. */
  async down(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  /** Listens, at the same port as before. */
  async up(): Promise<void> {
    const server = createServer((incoming, outgoing) => {
      const chunks: Buffer[] = [];
      incoming.on('error', () => undefined);
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const { method = '', url: path = '', headers } = incoming;
        this.pass({ method, path, headers, body: Buffer.concat(chunks) }).then(
          (answer) => {
            if (answer === CUT) return void outgoing.destroy();
            const headers = { ...without(answer.headers, 'transfer-encoding'), 'content-length': answer.body.length };
            outgoing.writeHead(answer.status, headers).end(answer.body);
          },
          () => outgoing.destroy(),
        );
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, '127.0.0.1', resolve);
    });
    this.port = (server.address() as AddressInfo).port;
    this.server = server;
  }

  private async pass(passing: Passing): Promise<Answer | typeof CUT> {
    if ((await this.before?.(passing)) === CUT) {
      this.lost += 1;
      return CUT;
    }
    const answer = await this.forward(passing);
    this.seen.push({ ...passing, status: answer.status, answer: answer.body });
    return this.after === undefined ? answer : this.after(passing, answer);
  }

  private forward({ method, path, headers, body }: Passing): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = ask(
        this.target + path,
        { method, headers: without(headers, 'connection'), agent: false },
        (answer) => {
          const chunks: Buffer[] = [];
          answer.on('data', (chunk: Buffer) => chunks.push(chunk));
          answer.on('error', reject);
          answer.on('end', () =>
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }),
          );
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }
}

/** Headers but for one that speaks of the connection only. */
function without(headers: IncomingHttpHeaders, name: string): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
}
