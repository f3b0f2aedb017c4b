import { fromHex, toHex } from '@nd7/entry';
import { nobleVerifier, type SignedItem } from '@nd7/tlog';
import { readFileSync } from 'node:fs';
import { generateKeyPair, sha256, sha256Hex, systemClock, systemRandom, verifySignatures } from './index.js';

interface Case {
  message: string;
  pub_key: string;
  signature: string;
  accept: boolean;
  note: string;
}

const { cases } = JSON.parse(
  readFileSync(new URL('../../../tests/vectors/ed25519-strict.json', import.meta.url), 'utf8'),
) as { cases: Case[] };
const itemOf = (c: Case): SignedItem => ({
  key: fromHex(c.pub_key)!,
  message: fromHex(c.message)!,
  signature: fromHex(c.signature)!,
});

test.each(cases.map((c) => [c.note, c] as const))('%s', async (_, c) => {
  expect(await verifySignatures([itemOf(c)])).toEqual([c.accept]);
});

test('a key off the curve verifies nothing and throws nothing', async () => {
  const key = new Uint8Array(32).fill(2, 0, 1);
  const item = { key, message: new Uint8Array(1), signature: new Uint8Array(64).fill(1, 0, 1) };
  expect(await verifySignatures([item])).toEqual(await nobleVerifier([item]));
  expect(await verifySignatures([item])).toEqual([false]);
});

test('more keys than are kept, in any order, are told apart', async () => {
  const message = new TextEncoder().encode('one of many');
  const pairs = Array.from({ length: 600 }, () => generateKeyPair());
  const items = pairs.map((pair) => ({ key: fromHex(pair.publicKey)!, message, signature: pair.sign(message) }));
  expect(new Set(await verifySignatures(items))).toEqual(new Set([true]));
  const shifted = items.map((item, i) => ({ ...item, key: items[(i + 1) % items.length]!.key }));
  expect(new Set(await verifySignatures(shifted))).toEqual(new Set([false]));
  expect(new Set(await verifySignatures(items.toReversed()))).toEqual(new Set([true]));
}, 60_000);

test('clock, randomness, SHA-256', () => {
  expect(toHex(sha256(new Uint8Array(0)))).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  expect(sha256Hex(new TextEncoder().encode('abc'))).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  );
  expect(systemRandom(32).length).toBe(32);
  expect(toHex(systemRandom(32))).not.toBe(toHex(systemRandom(32)));
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(60_000);
});
