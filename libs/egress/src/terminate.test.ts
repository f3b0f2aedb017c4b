import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Credential } from '@nd7/policy';
import { once } from 'node:events';
import { createServer as createHttps, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as tlsConnect, type TLSSocket } from 'node:tls';
import { SessionAuthority } from './authority.js';
import { PSK, rule, SOURCE, TestNet } from './egress.fixture.js';

const CREDENTIAL: Credential = {
  name: 'registry',
  hosts: ['registry.example.com', 'files.example.com'],
  way: 'terminate',
  header: 'authorization',
  value: 'Bearer {}',
  endpointVariable: null,
  placeholderVariable: null,
  from: { variable: 'TOKEN' },
  source: SOURCE,
};

let net: TestNet;
let authority: SessionAuthority;
let secret: () => Promise<string>;
let seen: { host: string; path: string; authorization: string | undefined; body: string }[];
beforeEach(async () => {
  seen = [];
  secret = () => Promise.resolve('real');
  net = await new TestNet().start({ tls: { ...PSK, checkServerIdentity: () => undefined } });
  authority = new SessionAuthority(CREDENTIAL.hosts);
  net.egress.terminate(CREDENTIAL, authority, () => secret());
  const server = createHttps({ ...PSK, pskCallback: () => Buffer.alloc(16, 7) }, (asked, answer) => {
    void text(asked).then((body) => {
      const { url: path = '', headers } = asked;
      seen.push({ host: headers.host ?? '', path, authorization: headers.authorization, body });
      answer.writeHead(200, { 'content-type': 'text/plain' }).end('answer');
    });
  });
  server.on('upgrade', (asked: IncomingMessage, socket: Socket) => {
    seen.push({
      host: asked.headers.host ?? '',
      path: asked.url ?? '',
      authorization: asked.headers.authorization,
      body: '',
    });
    if (asked.url === '/refused')
      return void socket.end('HTTP/1.1 401 No\r\nContent-Length: 4\r\nx-why: you\r\n\r\nnone');
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nfirst ',
    );
    socket.pipe(socket);
  });
  await net.host('registry.example.com', 443, server);
  for (const host of CREDENTIAL.hosts) {
    net.names.set(host, ['93.184.216.34']);
    net.rules.hosts.push(rule(host, { ports: { from: 443, to: 443 } }));
  }
});
afterEach(() => net.stop());

/** TLS over a tunnel, by a client that trusts the session's authority alone. */
async function secure(host: string, servername = host): Promise<TLSSocket> {
  const { socket, answer } = await net.tunnel(`${host}:443`);
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  const made = tlsConnect({ socket, servername, ca: authority.certificate, ALPNProtocols: ['h2', 'http/1.1'] });
  await once(made, 'secureConnect');
  return made;
}

async function say(host: string, bytes: string): Promise<string> {
  const socket = await secure(host);
  socket.write(bytes, 'latin1');
  return text(socket);
}

describe('a tunnel to a host for which a credential is held', () => {
  it('ends here, and its requests go on with the real credential in place of what a program says', async () => {
    const socket = await secure('registry.example.com');
    expect(socket.alpnProtocol).toBe('http/1.1');
    const asked = request({
      createConnection: () => socket,
      method: 'PUT',
      path: '/a?b',
      headers: { host: 'registry.example.com', Authorization: 'Bearer placeholder' },
    });
    asked.end('a body');
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    expect([answer.statusCode, await text(answer)]).toEqual([200, 'answer']);
    expect(seen).toEqual([
      { host: 'registry.example.com', path: '/a?b', authorization: 'Bearer real', body: 'a body' },
    ]);
    expect(net.decisions).toMatchObject([
      { via: 'connect', host: 'registry.example.com', port: 443, verdict: 'allow' },
      { via: 'terminate', host: 'registry.example.com', port: 443, verdict: 'allow' },
    ]);
    socket.destroy();
  });

  it.each([
    ['another host', 'GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'],
    ['another host of the same credential', 'GET / HTTP/1.1\r\nHost: files.example.com\r\nConnection: close\r\n\r\n'],
    ['two hosts', 'GET / HTTP/1.1\r\nHost: registry.example.com\r\nHost: evil.example\r\nConnection: close\r\n\r\n'],
    [
      'an absolute URL',
      'GET https://evil.example/ HTTP/1.1\r\nHost: registry.example.com\r\nConnection: close\r\n\r\n',
    ],
    ['a tunnel', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n'],
    [
      'an upgrade at another host',
      'GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    [
      'an upgrade with a body, which the host would take from the next request',
      'POST / HTTP/1.1\r\nHost: registry.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 90\r\n\r\n',
    ],
    ['its own head', 'TRACE / HTTP/1.1\r\nHost: registry.example.com\r\nConnection: close\r\n\r\n'],
    [
      'a body of two lengths',
      'POST / HTTP/1.1\r\nHost: registry.example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['nothing that is HTTP', '\x01\x02\x03\r\n\r\n'],
  ])('lets nothing on that asks for %s', async (_what, bytes) => {
    expect(await say('registry.example.com', bytes)).toMatch(/^HTTP\/1\.1 400 /);
    expect(seen).toEqual([]);
  });

  it('does not end for who names another host in its hello', async () => {
    const { socket } = await net.tunnel('registry.example.com:443');
    const made = tlsConnect({ socket, servername: 'evil.example', ca: authority.certificate });
    await new Promise((done) => made.on('error', () => undefined).on('close', done));
    expect(net.decisions.at(-1)).toMatchObject({ verdict: 'deny', reason: 'other-name' });
  });

  it('is refused as any other where no rule lets the host be reached', async () => {
    net.rules.hosts.length = 0;
    expect((await net.tunnel('registry.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 /);
  });

  it('asks the rules for each request, so that what was granted can be revoked', async () => {
    const socket = await secure('registry.example.com');
    net.rules.hosts.length = 0;
    socket.write('GET / HTTP/1.1\r\nHost: registry.example.com\r\nConnection: close\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 403 /);
    expect(seen).toEqual([]);
  });

  it('sends nothing where the credential cannot be read, and does not say why', async () => {
    secret = () => Promise.reject(new Error('/home/me/secret/file is not there'));
    const answer = await say(
      'registry.example.com',
      'GET / HTTP/1.1\r\nHost: registry.example.com\r\nConnection: close\r\n\r\n',
    );
    expect(answer).toContain('the credential registry could not be read outside the session');
    expect(answer).not.toContain('secret/file');
    expect(seen).toEqual([]);
  });

  it('passes a WebSocket, with the credential', async () => {
    const socket = await secure('registry.example.com');
    socket.write(
      'GET /live HTTP/1.1\r\nHost: registry.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n',
    );
    let heard = '';
    socket.on('data', (bytes) => (heard += String(bytes)));
    while (!heard.includes('first ')) await once(socket, 'data');
    socket.write('second');
    while (!heard.endsWith('second')) await once(socket, 'data');
    expect(heard).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n[^]*Sec-WebSocket-Accept: x\r\n\r\nfirst second$/);
    expect(seen).toMatchObject([{ path: '/live', authorization: 'Bearer real' }]);
    socket.destroy();
  });

  it('passes on what a host says that does not switch', async () => {
    const answer = await say(
      'registry.example.com',
      'GET /refused HTTP/1.1\r\nHost: registry.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 401 No\r\n[^]*x-why: you\r\n[^]*\r\n\r\nnone$/);
  });

  it('verifies the host by the roots that it has, not by the session’s authority', async () => {
    const strict = await new TestNet().start({ tls: {} });
    const other = new SessionAuthority(CREDENTIAL.hosts);
    strict.egress.terminate(CREDENTIAL, other, secret);
    strict.rules.hosts.push(rule('registry.example.com'));
    // A server that presents what the session's own authority would be believed for.
    const { TLSSocket: Secure } = await import('node:tls');
    const { createServer } = await import('node:net');
    const false_ = createServer((socket) => {
      new Secure(socket, { isServer: true, secureContext: other.contextFor('registry.example.com') }).on(
        'error',
        () => undefined,
      );
    });
    await strict.host('registry.example.com', 443, false_);
    const { socket } = await strict.tunnel('registry.example.com:443');
    const made = tlsConnect({ socket, servername: 'registry.example.com', ca: other.certificate });
    made.write('GET / HTTP/1.1\r\nHost: registry.example.com\r\nConnection: close\r\n\r\n');
    expect(await text(made)).toMatch(/^HTTP\/1\.1 502 /);
    await strict.stop();
  });
});
