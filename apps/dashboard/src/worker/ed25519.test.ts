import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromHex } from '@nd7/entry';
import { browserVerifier } from './ed25519.js';

const file = join(import.meta.dirname, '..', '..', '..', '..', 'tests', 'vectors', 'ed25519-strict.json');
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
  cases: { message: string; pub_key: string; signature: string; accept: boolean; note: string }[];
};
const bytes = (hex: string) => fromHex(hex) ?? new Uint8Array();

it('gives the strict verdict on every case, with WebCrypto or without', async () => {
  const { verify } = await browserVerifier();
  const items = cases.map((one) => ({
    key: bytes(one.pub_key),
    message: bytes(one.message),
    signature: bytes(one.signature),
  }));
  expect(await verify(items)).toEqual(cases.map((one) => one.accept));
});
