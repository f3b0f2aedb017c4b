// What one request is to the proxy it has to be to the server: bytes that the proxy takes for a body and the server for a request would be
// asked by nobody and recorded nowhere, and what comes behind them on that connection, credential and all, would be their body.
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Credential } from '@nd7/policy';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { PSK, rule, SOURCE, TestNet } from './egress.fixture.js';

const CREDENTIAL: Credential = {
  name: 'model',
  hosts: ['api.example.com'],
  way: 'endpoint',
  header: 'authorization',
  value: 'Bearer {}',
  endpointVariable: null,
  placeholderVariable: null,
  from: { variable: 'KEY' },
  source: SOURCE,
};
/** The body of a request that is one itself, and whose own body is what comes next. */
const INNER = 'POST /inner HTTP/1.1\r\nHost: other.example\r\nContent-Length: 72\r\n\r\n';
const CHUNKS = `${INNER.length.toString(16)}\r\n${INNER}\r\n0\r\n\r\n`;
const MANY = 'a:\r\n'.repeat(2_000);

let net: TestNet;
let port: number;
let urls: string[];
let seen: { method: string; url: string; host: string; body: string }[];

beforeEach(async () => {
  [urls, seen] = [[], []];
  const serve = (asked: IncomingMessage, answer: ServerResponse): void => {
    const { method = '', url = '', headers } = asked;
    urls.push(url);
    // At once, as servers do that need no body.
    answer.end('answer');
    text(asked).then(
      (body) => seen.push({ method, url, host: headers.host ?? '', body }),
      () => seen.push({ method, url, host: headers.host ?? '', body: 'cut' }),
    );
  };
  net = await new TestNet().start({ tls: { ...PSK, checkServerIdentity: () => undefined } });
  await net.host('api.example.com', 443, createHttps({ ...PSK, pskCallback: () => Buffer.alloc(16, 7) }, serve));
  await net.host('plain.example.com', 80, createHttp(serve), '93.184.216.35');
  net.rules.hosts.push(
    rule('api.example.com', { ports: { from: 443, to: 443 } }),
    rule('plain.example.com', { ports: { from: 80, to: 80 } }),
  );
  const listener = createServer({ allowHalfOpen: true });
  net.egress.serveEndpoint(listener, CREDENTIAL, () => Promise.resolve('real'));
  port = await net.listen(listener);
});
afterEach(() => net.stop());

const METHODS = ['GET', 'HEAD', 'DELETE', 'POST'];
const BODIES: [string, string, string][] = [
  ['a length that Connection names', `Content-Length: ${INNER.length}\r\nConnection: content-length\r\n`, INNER],
  [
    'a length that a second Connection names',
    `Content-Length: ${INNER.length}\r\nConnection: x,Content-Length\r\n`,
    INNER,
  ],
  ['chunks that Connection names', 'Transfer-Encoding: chunked\r\nConnection: transfer-encoding\r\n', CHUNKS],
  ['chunks behind very many fields', `${MANY}Transfer-Encoding: chunked\r\n`, CHUNKS],
  ['a length behind very many fields', `${MANY}Content-Length: ${INNER.length}\r\n`, INNER],
  [
    'a length that Connection names behind very many fields',
    `${MANY}Content-Length: ${INNER.length}\r\nConnection: content-length\r\n`,
    INNER,
  ],
];

describe.each(METHODS)('the body of a %s', (method) => {
  it.each(BODIES)('with %s stays one', async (_what, fields, body) => {
    const host = 'plain.example.com';
    await net.say(
      `${method} http://${host}/one HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${fields}\r\n${body}`,
    );
    await net.say(`${method} /one HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${fields}\r\n${body}`, port);
    await net.say('GET /two HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', port);
    expect(urls).toEqual(['/one', '/one', '/two']);
    expect(seen.map((one) => one.body)).toEqual([INNER, INNER, '']);
  });
});

it.each([
  ['TRACE, whose answer would be the credential', 'TRACE /one HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['a folded field', 'GET /one HTTP/1.1\r\nHost: localhost\r\nx: a\r\n Content-Length: 72\r\n\r\n'],
  ['a space before a colon', 'GET /one HTTP/1.1\r\nHost: localhost\r\nContent-Length : 72\r\n\r\n'],
  ['a length that is signed', 'GET /one HTTP/1.1\r\nHost: localhost\r\nContent-Length: +72\r\n\r\n'],
  ['two lengths', 'GET /one HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\nContent-Length: 72\r\n\r\n'],
  ['a coding behind chunks', 'POST /one HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n'],
  ['a coding that is none', 'POST /one HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
  ['lines that end bare', 'GET /one HTTP/1.1\nHost: localhost\n\n'],
  [
    'a chunk of two sizes',
    'POST /one HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n',
  ],
])('nothing goes on of %s', async (_what, bytes) => {
  expect(await net.say(bytes, port)).toMatch(/^HTTP\/1\.1 400 /);
  expect(urls.filter((url) => url !== '/one')).toEqual([]);
  expect(seen.every(({ body }) => body === 'cut')).toBe(true);
});
