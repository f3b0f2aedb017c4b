// A proxy on loopback with rules of its own, and servers that stand for the internet: names resolve to public addresses, and dialling one
// of those ends at a server here. Everything else (parsing, deciding, sockets) is the real thing.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { connect as tlsConnect, createServer as createTls, type TLSSocket } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { HostRule, NetworkRules, Source } from '@nd7/policy';
import type { EgressDecision } from './decision.js';
import { Egress, type EgressOptions } from './proxy.js';
import { nextBytes } from './tunnel.js';

export const SOURCE: Source = { layer: 'user', policy: 'user', file: null, line: null, text: 'network.allow' };

export function rule(host: string, more: Partial<HostRule> = {}): HostRule {
  return {
    host,
    ports: { from: 1, to: 65_535 },
    allow: true,
    raw: false,
    privateAddresses: false,
    source: SOURCE,
    ...more,
  };
}

/** TLS without certificates: both sides know a key (RFC 4279). The hello is a real one, name and all. */
export const PSK = {
  ciphers: 'PSK-AES128-GCM-SHA256',
  maxVersion: 'TLSv1.2',
  pskCallback: () => ({ identity: 'test', psk: Buffer.alloc(16, 7) }),
} as const;

export function tlsEcho(): Server {
  return createTls({ ...PSK, pskCallback: () => Buffer.alloc(16, 7) }, (socket) => {
    socket.pipe(socket).on('error', () => undefined);
  });
}

/** TLS over a tunnel that is open. */
export async function tlsThrough(socket: Socket, servername: string): Promise<TLSSocket> {
  const secure = tlsConnect({ socket, servername, ...PSK, checkServerIdentity: () => undefined });
  await once(secure, 'secureConnect');
  return secure;
}

/** Who moves the bytes of tunnels: this process, or the relay where it is built (`ND7_TEST_RELAY` names another build of it). */
const RELAY =
  process.env['ND7_TEST_RELAY'] ?? fileURLToPath(new URL('../../../native/relay/build/nd7-relay', import.meta.url));
export const MOVERS: [name: string, options: Partial<EgressOptions>][] = [
  ['this process', {}],
  ...(existsSync(RELAY) ? [['the relay', { relay: RELAY }] as [string, Partial<EgressOptions>]] : []),
];

export class TestNet {
  rules: NetworkRules = { hosts: [], bounds: [], listen: [], loopback: [], credentials: [] };
  /** What each name resolves to; others are unknown. */
  readonly names = new Map<string, string[]>();
  /** Where dialling an address and port leads; others refuse. */
  readonly places = new Map<string, number>();
  readonly lookedUp: string[] = [];
  readonly dialled: string[] = [];
  readonly decisions: EgressDecision[] = [];
  /** Replaced where recording fails. */
  record: (decision: EgressDecision) => Promise<void> = (decision) => {
    this.decisions.push(decision);
    return Promise.resolve();
  };
  port = 0;
  egress!: Egress;
  readonly #servers: Server[] = [];

  /** `more`: has other listeners served, before the relay is given those that there are. */
  async start(
    options: Partial<EgressOptions> = {},
    more: () => Promise<void> = () => Promise.resolve(),
  ): Promise<this> {
    this.egress = new Egress({
      rules: () => this.rules,
      record: (decision) => this.record(decision),
      patienceMs: 1000,
      resolve: (name) => {
        this.lookedUp.push(name);
        const found = this.names.get(name);
        return found
          ? Promise.resolve(found)
          : Promise.reject(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }));
      },
      at: (address, port) => {
        this.dialled.push(`${address} ${String(port)}`);
        // Port 1 of loopback refuses, as what is not there does.
        return { address: '127.0.0.1', port: this.places.get(`${address} ${String(port)}`) ?? 1 };
      },
      ...options,
    });
    const listener = createServer({ allowHalfOpen: true });
    this.egress.serve(listener);
    this.port = await this.listen(listener);
    await more();
    if (options.relay !== undefined) await this.#relayed(listener);
    return this;
  }

  /** Waits until the relay, which the first connection starts, has a listener. */
  async #relayed(listener: Server): Promise<void> {
    const first = this.client().on('error', () => undefined);
    while (listener.listening) await sleep(5);
    first.destroy();
  }

  /** Starts a server and returns its port. */
  async listen(server: Server): Promise<number> {
    this.#servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  /** A server that is reached under a name and port. */
  async host(name: string, port: number, server: Server, address = '93.184.216.34'): Promise<void> {
    this.places.set(`${address} ${String(port)}`, await this.listen(server));
    this.names.set(name, [address]);
  }

  /** A connection to the proxy. */
  client(): Socket {
    return connect({ port: this.port, host: '127.0.0.1' });
  }

  /** Says bytes and returns the head of the HTTP answer; what follows it waits on the socket. */
  async ask(bytes: string): Promise<{ socket: Socket; answer: string }> {
    const socket = this.client();
    socket.write(bytes, 'latin1');
    let answer = '';
    for (;;) {
      const chunk = await nextBytes(socket, 3000);
      if (chunk === undefined) return { socket, answer };
      answer += chunk.toString('latin1');
      const end = answer.indexOf('\r\n\r\n');
      if (end < 0) continue;
      if (/^HTTP\/1\.1 200 /.test(answer)) {
        const rest = answer.slice(end + 4);
        if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'));
        return { socket, answer: answer.slice(0, end + 4) };
      }
    }
  }

  /** Asks for a tunnel. */
  tunnel(authority: string, extra = ''): Promise<{ socket: Socket; answer: string }> {
    return this.ask(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${extra}\r\n`);
  }

  /** Says bytes to the proxy and returns all it answers until it ends or has been silent for a while. */
  async say(bytes: string | Uint8Array, port = this.port): Promise<string> {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    socket.write(bytes as string, 'latin1');
    const heard: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => heard.push(chunk));
    socket.setTimeout(3000, () => socket.destroy());
    // A reset is an end as well.
    await Promise.race([once(socket, 'end'), once(socket, 'close')]).catch(() => undefined);
    socket.destroy();
    return Buffer.concat(heard).toString('latin1');
  }

  async stop(): Promise<void> {
    this.egress.close();
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}
