import { nobleVerifier } from '@nd7/tlog';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import {
  closeLines,
  closeMessage,
  enrolMessage,
  openMessage,
  parseRequestHeaders,
  requestMessage,
  signRequest,
} from './index.js';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const key = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }).subarray(-32));
const signer = {
  publicKey: Buffer.from(key).toString('hex'),
  sign: (message: Uint8Array) => new Uint8Array(sign(null, message, privateKey)),
};
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const H = 'a'.repeat(64);

test('the signed texts are those of the register', () => {
  const base = { origin: 'v.example/a', machine: H, session: 's-1', entries: 3, head: H };
  const lines = `origin v.example/a\nmachine ${H}\nsession s-1\nentries 3\nhead ${H}\n`;
  expect(text(enrolMessage({ origin: 'v.example/a', machine: H, nameHash: H }))).toBe(
    `nd7/enrol/v1\norigin v.example/a\nmachine ${H}\nname-hash ${H}\n`,
  );
  expect(text(openMessage({ ...base, key: H }))).toBe(`nd7/open/v1\n${lines}key ${H}\n`);
  expect(text(closeMessage({ ...base, reason: 'ended' }))).toBe(`nd7/close/v1\n${lines}reason ended\n`);
  expect(closeLines({ ...base, reason: 'lost' })).toBe(`${lines}reason lost\n`);
  expect(text(requestMessage('PUT', '/v1/x?y=1', H, '2026-11-29T19:41:00.123Z', 'f'.repeat(32)))).toBe(
    `nd7/request/v1\nPUT\n/v1/x?y=1\n${H}\n2026-11-29T19:41:00.123Z\n${'f'.repeat(32)}\n`,
  );
});

test('a signed request verifies as it was sent, and not otherwise', async () => {
  const request = {
    method: 'PUT',
    pathWithQuery: '/v1/x',
    bodySha256Hex: createHash('sha256').update('body').digest('hex'),
  };
  const headers = await signRequest(
    { ...request, now: Date.UTC(2026, 10, 29, 19, 41, 0, 123), nonce: new Uint8Array(16).fill(7) },
    signer,
  );
  expect(headers).toMatchObject({ 'nd7-time': '2026-11-29T19:41:00.123Z', 'nd7-nonce': '07'.repeat(16) });
  const parsed = parseRequestHeaders({
    time: headers['nd7-time'],
    nonce: headers['nd7-nonce'],
    signature: headers['nd7-request-signature'],
  })!;
  const message = (method: string, path: string, body: string): Uint8Array =>
    requestMessage(method, path, createHash('sha256').update(body).digest('hex'), parsed.time, parsed.nonce);
  const items = [
    message('PUT', '/v1/x', 'body'),
    message('POST', '/v1/x', 'body'),
    message('PUT', '/v1/x?', 'body'),
    message('PUT', '/v1/x', 'bodY'),
  ].map((signed) => ({ key, message: signed, signature: parsed.signature }));
  expect(await nobleVerifier(items)).toEqual([true, false, false, false]);
});

test('headers that are not of the form are none', () => {
  const good = {
    time: '2026-11-29T19:41:00.123Z',
    nonce: '0'.repeat(32),
    signature: Buffer.alloc(64).toString('base64'),
  };
  expect(parseRequestHeaders(good)).toBeDefined();
  for (const bad of [
    { time: undefined },
    { time: '2026-11-29T19:41:00Z' },
    { time: '2026-02-30T19:41:00.123Z' },
    { time: '1796000000' },
    { nonce: undefined },
    { nonce: 'F'.repeat(32) },
    { nonce: '0'.repeat(31) },
    { signature: undefined },
    { signature: '' },
    { signature: Buffer.alloc(63).toString('base64') },
    { signature: `${good.signature} ` },
  ]) {
    expect(parseRequestHeaders({ ...good, ...bad })).toBeUndefined();
  }
});
