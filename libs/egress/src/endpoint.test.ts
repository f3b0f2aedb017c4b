import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Credential } from '@nd7/policy';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, createServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { PSK, rule, SOURCE, TestNet } from './egress.fixture.js';

const CREDENTIAL: Credential = {
  name: 'model',
  hosts: ['api.example.com'],
  way: 'endpoint',
  header: 'authorization',
  value: 'Bearer {}',
  endpointVariable: 'MODEL_BASE_URL',
  placeholderVariable: 'MODEL_KEY',
  from: { variable: 'MODEL_KEY' },
  source: SOURCE,
};

let net: TestNet;
let port: number;
let seen: { url: string; headers: IncomingMessage['headers']; body: string; connection: unknown; name: unknown }[];
/** What the server takes for the good key. */
let good: string;
/** Secrets as they are read, one after the other; the last one for ever. */
let secrets: (string | Error)[];

beforeEach(async () => {
  [seen, good, secrets] = [[], 'sk-real', ['sk-real']];
  net = await new TestNet().start({ tls: { ...PSK, checkServerIdentity: () => undefined } });
  const server = createHttps({ ...PSK, pskCallback: () => Buffer.alloc(16, 7) }, (asked, answer) => {
    void buffer(asked).then((body) => {
      const { url = '', headers, socket } = asked;
      seen.push({
        url,
        headers,
        body: String(body),
        connection: socket.remotePort,
        name: (socket as TLSSocket).servername,
      });
      answer.writeHead(headers.authorization === `Bearer ${good}` ? 200 : 401, { 'content-type': 'text/event-stream' });
      answer.write('event: one\n\n');
      answer.end('event: two\n\n');
    });
  });
  await net.host('api.example.com', 443, server);
  net.rules.hosts.push(rule('api.example.com', { ports: { from: 443, to: 443 } }));
  const listener = createServer({ allowHalfOpen: true });
  net.egress.serveEndpoint(listener, CREDENTIAL, () => {
    const next = secrets.length > 1 ? secrets.shift() : secrets[0];
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next as string);
  });
  port = await net.listen(listener);
});
afterEach(() => net.stop());

async function ask(
  path = '/v1/messages',
  headers: Record<string, string> = { authorization: 'Bearer placeholder' },
): Promise<string> {
  const sent = request({ port, method: 'POST', path, headers });
  sent.end('{"hello":1}');
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return `${String(answer.statusCode)} ${String(await buffer(answer))}`;
}

describe('an endpoint', () => {
  it('puts the real credential on, in place of whatever was sent, and speaks TLS to its host', async () => {
    expect(await ask('/v1/messages?beta=true', { Authorization: 'Bearer placeholder', 'x-mine': '1' })).toBe(
      '200 event: one\n\nevent: two\n\n',
    );
    expect(seen).toMatchObject([{ url: '/v1/messages?beta=true', body: '{"hello":1}', name: 'api.example.com' }]);
    expect(seen[0]?.headers).toMatchObject({ host: 'api.example.com', authorization: 'Bearer sk-real', 'x-mine': '1' });
    expect(net.decisions).toMatchObject([{ via: 'endpoint', host: 'api.example.com', port: 443, verdict: 'allow' }]);
    expect(JSON.stringify(net.decisions)).not.toContain('sk-real');
  });

  it('keeps its connections, and records each request', async () => {
    for (let i = 0; i < 5; i++) await ask();
    expect(new Set(seen.map(({ connection }) => connection)).size).toBe(1);
    expect(net.decisions).toHaveLength(5);
  });

  it('reads the credential anew after the server has refused it', async () => {
    [good, secrets] = ['sk-new', ['sk-old', 'sk-new']];
    expect([await ask(), await ask()]).toEqual([expect.stringMatching(/^401/), expect.stringMatching(/^200/)]);
  });

  it('whose credential cannot be read sends nothing, and says nothing of what was read', async () => {
    secrets = [new Error('the file holds sk-half'), 'sk-real'];
    expect(await ask()).toBe('403 nd7: the credential model could not be read outside the session\n');
    expect(seen).toEqual([]);
    expect(await ask()).toMatch(/^200/);
  });

  it('is under the same rules as the proxy', async () => {
    net.rules = { ...net.rules, hosts: [] };
    expect(await ask()).toMatch(/^403 nd7: no rule /);
    net.rules = { ...net.rules, hosts: [rule('api.example.com')] };
    net.names.set('api.example.com', ['169.254.169.254']);
    expect(await ask()).toMatch(/^403 nd7: .*link-local|metadata/);
    expect([seen, net.dialled]).toEqual([[], []]);
  });

  it('counts among the connections that are taken at once', async () => {
    await net.stop();
    net = await new TestNet().start({ most: 4 });
    const listener = createServer();
    net.egress.serveEndpoint(listener, CREDENTIAL, () => Promise.resolve('sk-real'));
    port = await net.listen(listener);
    const crowd = Array.from({ length: 50 }, () =>
      connect(port, '127.0.0.1')
        .on('error', () => undefined)
        .resume(),
    );
    await Promise.all(crowd.slice(20).map((socket) => once(socket, 'close')));
    for (const socket of crowd) socket.destroy();
  });

  it('tells that the host cannot be reached', async () => {
    net.places.clear();
    expect(await ask()).toMatch(/^502 nd7: .*ECONNREFUSED/);
  });

  it.each([
    ['another host’s URL', 'GET http://evil.example.net/ HTTP/1.1\r\nHost: evil.example.net\r\n\r\n'],
    ['a tunnel', 'CONNECT evil.example.net:443 HTTP/1.1\r\nHost: evil.example.net:443\r\n\r\n'],
    ['an upgrade', 'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['no HTTP', '\x16\x03\x01\x00\x05hello'],
  ])('refuses %s', async (_what, bytes) => {
    expect(await net.say(bytes, port)).toMatch(/^HTTP\/1\.1 400 /);
    expect(net.decisions).toMatchObject([{ via: 'endpoint', verdict: 'deny', reason: 'bad-request' }]);
    expect(seen).toEqual([]);
  });
});
