import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer as createHttp, request, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { rule, TestNet } from './egress.fixture.js';

let net: TestNet;
beforeEach(async () => {
  net = await new TestNet().start();
});
afterEach(() => net.stop());

describe('a plain HTTP request', () => {
  interface Seen {
    method: string;
    url: string;
    headers: IncomingMessage['rawHeaders'];
    body: string;
  }
  let seen: Seen[];
  beforeEach(async () => {
    seen = [];
    const server = createHttp((asked, answer) => {
      void buffer(asked).then((body) => {
        seen.push({ method: asked.method ?? '', url: asked.url ?? '', headers: asked.rawHeaders, body: String(body) });
        answer.writeHead(
          203,
          'Fine',
          [
            ['x-one', '1'],
            ['Connection', 'x-hop'],
            ['x-hop', '2'],
            ['set-cookie', 'a=1'],
            ['set-cookie', 'b=2'],
          ].flat(),
        );
        answer.end(`hello ${asked.url ?? ''}`);
      });
    });
    await net.host('plain.example.com', 80, server);
    net.rules.hosts.push(rule('plain.example.com', { ports: { from: 80, to: 80 } }));
  });

  it('goes through with its method, path, fields and body, and so does the answer', async () => {
    const sent = request({
      port: net.port,
      method: 'POST',
      path: 'http://plain.example.com/a?b=c',
      headers: { host: 'plain.example.com', 'x-mine': 'é', 'proxy-connection': 'keep-alive' },
    });
    sent.write('part one, ');
    sent.end('part two');
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    expect([answer.statusCode, answer.statusMessage, String(await buffer(answer))]).toEqual([
      203,
      'Fine',
      'hello /a?b=c',
    ]);
    expect([answer.headers['x-one'], answer.headers['x-hop'], answer.headers['set-cookie']]).toEqual([
      '1',
      undefined,
      ['a=1', 'b=2'],
    ]);
    expect(seen).toMatchObject([{ method: 'POST', url: '/a?b=c', body: 'part one, part two' }]);
    expect(seen[0]?.headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())).toEqual([
      'host',
      'x-mine',
      'transfer-encoding',
      'connection',
    ]);
    expect(net.decisions).toMatchObject([{ via: 'http', host: 'plain.example.com', port: 80, verdict: 'allow' }]);
  });

  it('is checked again on a connection that is kept', async () => {
    const said = ['plain.example.com', 'evil.example.net']
      .map((host) => `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      .join('');
    const heard = await net.say(said);
    expect(heard).toMatch(/^HTTP\/1\.1 203 [^]*HTTP\/1\.1 403 Forbidden/);
    expect(net.decisions).toHaveLength(2);
    expect(net.decisions.find(({ host }) => host === 'evil.example.net')).toMatchObject({
      verdict: 'deny',
      reason: 'no-rule',
    });
  });

  it.each([
    ['another Host', 'GET http://plain.example.com/ HTTP/1.1\r\nHost: evil.example.net\r\n\r\n'],
    [
      'two Hosts',
      'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nHost: evil.example.net\r\n\r\n',
    ],
    ['a Host with another port', 'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com:81\r\n\r\n'],
    ['no Host', 'GET http://plain.example.com/ HTTP/1.0\r\n\r\n'],
    ['an https URL', 'GET https://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\n\r\n'],
    ['a path alone', 'GET / HTTP/1.1\r\nHost: plain.example.com\r\n\r\n'],
    [
      'a length and chunks',
      'POST http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'a folded field',
      'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nX: a\r\n b\r\nX y: 1\r\n\r\n',
    ],
    ['a bare LF', 'GET http://plain.example.com/ HTTP/1.1\nHost: plain.example.com\nX y: 1\n\n'],
    ['a NUL in the host', 'GET http://plain.example.com\0.evil.net/ HTTP/1.1\r\nHost: plain.example.com\r\n\r\n'],
    [
      'an upgrade',
      'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ['no HTTP at all', 'hello there\r\n\r\n'],
  ])('with %s is refused and reaches nobody', async (_what, bytes) => {
    expect(await net.say(bytes)).toMatch(/^HTTP\/1\.1 40[03] /);
    expect(net.decisions).toMatchObject([{ verdict: 'deny' }]);
    expect([seen, net.dialled]).toEqual([[], []]);
  });

  it('with userinfo in its URL is refused', async () => {
    expect(await net.say('GET http://plain.example.com@evil.net/ HTTP/1.1\r\nHost: evil.net\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 403 [^]*not-ldh/,
    );
  });
});
