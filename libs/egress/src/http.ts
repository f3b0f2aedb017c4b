import {
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { parseAuthority, parseHost } from '@nd7/policy';
import { answerOf, answerText, sayLast, TOKEN_WANTED } from './answer.js';
import { Refusal, type Via } from './decision.js';
import { exchange, requestFields } from './exchange.js';
import { limitHeads } from './heads.js';
import type { Egress } from './proxy.js';
import { readHost, readTarget, shown, shownHost, type Target } from './target.js';

const MAX_HEAD = 64 << 10;

/**
 * A server whose parser reads what a request is in one way only and leaves nothing out: a field that is left out, as Node does behind the first
 * thousand, would still say to the parser where the body ends.
 */
export function strictServer(options: ServerOptions = {}): Server {
  const server = createServer({ ...options, insecureHTTPParser: false, requestTimeout: 0, noDelay: true });
  server.maxHeadersCount = 0;
  return server;
}

/** The HTTP way in: CONNECT, and plain requests in absolute form. Node's parser reads them, in its strict mode. */
export class HttpFront {
  readonly #egress: Egress;
  readonly #server: Server;
  readonly #watch: (socket: Socket) => void;
  /** What connections mean that have not been made to a proxy: requests on them say no host but in their Host field. */
  readonly #meant = new WeakMap<Socket, Target>();

  constructor(egress: Egress) {
    this.#egress = egress;
    this.#server = strictServer({ maxHeaderSize: MAX_HEAD })
      .on('connect', (asked: IncomingMessage, socket: Socket, head: Buffer) => void this.#connect(asked, socket, head))
      .on('request', (asked: IncomingMessage, answer: ServerResponse) => void this.#forward(asked, answer))
      .on(
        'upgrade',
        (asked: IncomingMessage, socket: Socket) => void this.#refuse('http', asked, socket, upgradeRefused()),
      )
      .on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => void this.#unreadable(error, socket));
    this.#watch = limitHeads(this.#server, egress.patienceMs);
  }

  /** Takes a connection over; `meant` is what a program has connected to that knows of no proxy. */
  take(socket: Socket, meant?: Target): void {
    if (meant !== undefined) this.#meant.set(socket, meant);
    this.#watch(socket);
    this.#server.emit('connection', socket);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #connect(asked: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    client.on('error', () => client.destroy());
    try {
      const meant = this.#meant.get(client);
      if (meant !== undefined) {
        const refusal = new Refusal('bad-request', `the proxy is another: this connection is to ${meant.host}`);
        throw await this.#egress.refused('transparent', { said: asked.url ?? '' }, refusal, client);
      }
      if (!this.#isAdmitted(asked)) return sayLast(client, TOKEN_WANTED, this.#egress.patienceMs);
      if (head.length > 0) client.unshift(head);
      const target = await this.#read('connect', asked, () => connectTarget(asked));
      await this.#egress.tunnel('connect', client, target, () =>
        client.write('HTTP/1.1 200 Connection established\r\n\r\n'),
      );
    } catch (error) {
      sayLast(client, answerText(error), this.#egress.patienceMs);
    }
  }

  async #forward(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    try {
      const meant = this.#meant.get(asked.socket);
      if (meant === undefined && !this.#isAdmitted(asked)) {
        answer.writeHead(407, { 'proxy-authenticate': 'Basic realm="nd7"', connection: 'close' }).end();
        return;
      }
      const via = meant === undefined ? 'http' : 'transparent';
      const { target, path } = await this.#read(via, asked, () =>
        meant === undefined ? absoluteTarget(asked) : originTarget(asked, meant),
      );
      // A connection of its own for each request: it is never used for another authority.
      const upstream = await this.#egress.dial(await this.#egress.admit(via, target, asked.socket));
      const authority = target.port === 80 ? shownHost(target) : `${shownHost(target)}:${String(target.port)}`;
      const headers = [...requestFields(asked, authority), 'Connection', 'close'];
      const sent = request({
        method: asked.method ?? 'GET',
        path,
        headers,
        setHost: false,
        createConnection: () => upstream,
      });
      await exchange(asked, answer, sent, target.host);
    } catch (error) {
      if (answer.headersSent) {
        answer.destroy();
        return;
      }
      const { status, reason, message } = answerOf(error);
      // The body of a request that is not read would be taken for the next request.
      answer.writeHead(status, {
        'content-type': 'text/plain; charset=utf-8',
        'nd7-reason': reason,
        connection: 'close',
      });
      answer.end(`nd7: ${message}\n`);
    }
  }

  /** Reads what is asked for; what cannot be read is recorded as it was said. */
  async #read<T>(via: Via, asked: IncomingMessage, read: () => T): Promise<T> {
    try {
      return read();
    } catch (error) {
      throw error instanceof Refusal
        ? await this.#egress.refused(via, { said: asked.url ?? '' }, error, asked.socket)
        : error;
    }
  }

  async #refuse(via: 'connect' | 'http', asked: IncomingMessage, socket: Socket, refusal: Refusal): Promise<void> {
    const recorded = await this.#egress
      .refused(via, { said: asked.url ?? '' }, refusal, socket)
      .catch((error: unknown) => error);
    sayLast(socket, answerText(recorded), this.#egress.patienceMs);
  }

  async #unreadable(error: NodeJS.ErrnoException, socket: Socket): Promise<void> {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const refusal = new Refusal('bad-request', `this is no HTTP/1.1 request (${error.code ?? error.message})`);
    const recorded = await this.#egress
      .refused('http', { said: '' }, refusal, socket)
      .catch((failed: unknown) => failed);
    sayLast(socket, answerText(recorded), this.#egress.patienceMs);
  }

  #isAdmitted({ headers }: IncomingMessage): boolean {
    const [, basic = ''] = /^basic +([A-Za-z0-9+/=]+)$/i.exec(headers['proxy-authorization'] ?? '') ?? [];
    const [, token] = /^nd7:(.*)$/s.exec(Buffer.from(basic, 'base64').toString('latin1')) ?? [];
    return this.#egress.isAdmitted(token);
  }
}

function connectTarget(asked: IncomingMessage): Target {
  const target = readTarget(asked.url ?? '');
  const hosts = hostsOf(asked);
  // Clients send the authority, with its port or without; another host there is two stories in one request.
  const same = ([host]: string[]): boolean => host !== undefined && isAuthority(host, target, target.port);
  if (hosts.length > 1 || (hosts.length === 1 && !same(hosts))) throw otherHost(target, hosts);
  return target;
}

function absoluteTarget(asked: IncomingMessage): { target: Target; path: string } {
  const url = asked.url ?? '';
  const [, authority, path = ''] = /^http:\/\/([^/?#\\]*)([/?][^#\\]*)?$/i.exec(url) ?? [];
  if (authority === undefined) {
    const isProxy = url.startsWith('/');
    throw new Refusal(
      'bad-request',
      isProxy
        ? 'this is the way out of the session: set HTTP_PROXY and HTTPS_PROXY to it, it serves nothing itself'
        : `"${shown(url)}" is no http:// URL; https goes through CONNECT`,
    );
  }
  const target = /:\d*$/.test(authority) && !authority.endsWith(']') ? readTarget(authority) : readHost(authority, 80);
  const hosts = hostsOf(asked);
  if (hosts.length !== 1 || !isAuthority(hosts[0] as string, target, 80)) throw otherHost(target, hosts);
  return { target, path: path.startsWith('/') ? path : `/${path}` };
}

/** A request as a server gets it (RFC 9112 section 3.2.1), on a connection to that very host. */
function originTarget(asked: IncomingMessage, meant: Target): { target: Target; path: string } {
  const path = asked.url ?? '';
  if (!path.startsWith('/') && path !== '*')
    throw new Refusal('bad-request', `"${shown(path)}" is no path: this connection is to ${meant.host}`);
  const hosts = hostsOf(asked);
  if (!isFor(asked, meant)) throw otherHost(meant, hosts);
  return { target: meant, path };
}

function hostsOf({ rawHeaders }: IncomingMessage): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === 'host');
}

/** Whether a request has one Host field, and that is the target, with its port or, on 80 and 443, without. */
export function isFor(asked: IncomingMessage, target: Target): boolean {
  const hosts = hostsOf(asked);
  return hosts.length === 1 && isAuthority(hosts[0] as string, target, target.port === 443 ? 443 : 80);
}

/** Whether a text means a target, where a port that it does not name is the default. */
export function isAuthority(text: string, target: Target, defaultPort: number): boolean {
  const full = parseAuthority(text);
  const read = 'fault' in full ? parseHost(text) : full;
  if ('fault' in read) return false;
  return read.host === target.host && ('port' in read ? read.port : defaultPort) === target.port;
}

function otherHost(target: Target, hosts: string[]): Refusal {
  const said = hosts.length === 0 ? 'has no Host field' : `has Host: ${hosts.map(shown).join(', ')}`;
  return new Refusal('bad-request', `the request for ${shownHost(target)}:${String(target.port)} ${said}`);
}

function upgradeRefused(): Refusal {
  return new Refusal('bad-request', 'a plain request cannot be upgraded here: WebSockets go through CONNECT');
}
