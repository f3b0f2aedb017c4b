import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { MOVERS, rule, TestNet, tlsEcho, tlsThrough } from './egress.fixture.js';
import { nextBytes } from './tunnel.js';

describe.each(MOVERS)('where %s moves the bytes', (_name, mover) => {
  let net: TestNet;
  let listener: Server;
  let port: number;
  /** Loopback addresses stand for those of the pool, which need a session's network: what a connection's own address is, is all that counts. */
  const HERE = '127.0.0.1';
  beforeEach(async () => {
    net = new TestNet();
    await net.start(mover, async () => {
      listener = createServer();
      net.egress.serveTransparent(listener);
      port = await net.listen(listener);
    });
  });
  afterEach(() => net.stop());

  /** A host at the port of the listener, which is the one that a program connects to. */
  async function means(name: string, server: Server, more: Parameters<typeof rule>[1] = {}): Promise<void> {
    await net.host(name, port, server);
    net.rules.hosts.push(rule(name, more));
    net.egress.pool.nameOf = (address) => (address === HERE ? name : undefined);
  }

  const ended = (socket: Socket): Promise<unknown> =>
    new Promise((done) =>
      socket.on('error', (error: NodeJS.ErrnoException) => done(error.code)).on('end', () => done('end')),
    );

  async function ask(bytes: string): Promise<string> {
    return net.say(bytes, port);
  }

  describe('a connection to an address that stands for a name', () => {
    it('carries TLS for that name', async () => {
      await means('api.example.com', tlsEcho());
      const secure = await tlsThrough(connect(port, HERE), 'api.example.com');
      secure.write('hello');
      expect(String((await once(secure, 'data'))[0])).toBe('hello');
      secure.destroy();
      expect(net.decisions).toMatchObject([{ via: 'transparent', host: 'api.example.com', port, verdict: 'allow' }]);
    });

    it('carries none for another name', async () => {
      await means('api.example.com', tlsEcho());
      await expect(tlsThrough(connect(port, HERE), 'evil.example')).rejects.toThrow();
      expect(net.decisions).toMatchObject([
        { verdict: 'allow' },
        { via: 'transparent', verdict: 'deny', reason: 'other-name' },
      ]);
    });

    it('carries whatever it is where the rule is raw, the server first', async () => {
      await means(
        'git.example.com',
        createServer((socket) => socket.end('SSH-2.0-here\r\n')),
        { raw: true },
      );
      const socket = connect(port, HERE);
      expect(String(await nextBytes(socket, 3000))).toBe('SSH-2.0-here\r\n');
      socket.destroy();
    });

    it('carries nothing that is neither TLS nor HTTP where the rule is not raw', async () => {
      await means(
        'git.example.com',
        createServer((socket) => socket.end('SSH-2.0-here\r\n')),
      );
      expect(await ask('SSH-2.0-me\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
      expect(net.dialled).toEqual([]);
    });

    it('to a port that no rule means is broken off, and recorded', async () => {
      await means('api.example.com', tlsEcho(), { ports: { from: 443, to: 443 } });
      expect(await ended(connect(port, HERE))).toBe('ECONNRESET');
      expect(net.decisions).toMatchObject([{ via: 'transparent', port, verdict: 'deny', reason: 'no-rule' }]);
      expect(net.lookedUp).toEqual([]);
    });

    it('to an address that stands for nothing is broken off', async () => {
      expect(await ended(connect(port, HERE))).toBe('ECONNRESET');
      expect(net.decisions).toEqual([]);
    });

    it('to a host that cannot be reached is broken off', async () => {
      await means('api.example.com', tlsEcho(), { raw: true });
      net.places.clear();
      expect(await ended(connect(port, HERE))).toBe('ECONNRESET');
    });
  });

  describe('plain HTTP on such a connection', () => {
    const seen: string[] = [];
    beforeEach(async () => {
      seen.length = 0;
      const server = createHttp((asked, answer) => {
        seen.push(`${asked.method ?? ''} ${asked.url ?? ''} ${asked.headers.host ?? ''}`);
        answer.end('answer');
      });
      await means('plain.example.com', server);
    });

    it('goes to that host, request after request', async () => {
      const host = `plain.example.com:${String(port)}`;
      const answer = await ask(
        `GET /a?b HTTP/1.1\r\nHost: ${host}\r\n\r\nGET /c HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      expect(answer.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
      expect(seen).toEqual([`GET /a?b ${host}`, `GET /c ${host}`]);
      expect(net.decisions).toMatchObject([
        { via: 'transparent', verdict: 'allow' },
        { via: 'transparent', verdict: 'allow' },
      ]);
    });

    it.each([
      ['another host', (host: string) => `GET / HTTP/1.1\r\nHost: evil.example\r\nx: ${host}\r\n\r\n`],
      ['no host', () => 'GET / HTTP/1.0\r\n\r\n'],
      ['two hosts', (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\n\r\n`],
      ['the host at another port', () => 'GET / HTTP/1.1\r\nHost: plain.example.com:81\r\n\r\n'],
      ['an absolute URL', (host: string) => `GET http://evil.example/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
      ['a tunnel', (host: string) => `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
      ['a tunnel elsewhere', () => 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n'],
      [
        'a body of two lengths',
        (host: string) =>
          `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      ],
    ])('that asks for %s goes nowhere', async (_what, request) => {
      expect(await ask(request(`plain.example.com:${String(port)}`))).toMatch(/^HTTP\/1\.1 400 /);
      expect([seen, net.dialled]).toEqual([[], []]);
      expect(net.decisions).toMatchObject([{ verdict: 'deny', reason: 'bad-request' }]);
    });
  });
});
