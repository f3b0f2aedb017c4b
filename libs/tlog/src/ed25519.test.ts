import { fromHex, toHex } from '@nd7/entry';
import { Point } from '@noble/ed25519';
import fc from 'fast-check';
import type { KeyObject } from 'node:crypto';
import { createPublicKey, generateKeyPairSync, sign, verify, webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { SignatureVerifier, SignedItem } from './index.js';
import { isStrictKey, nobleVerifier, strictVerifier } from './index.js';
import { jacobi } from './quadratic.js';

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
const hex = (text: string): Uint8Array => fromHex(text)!;
const itemOf = (c: Pick<Case, 'pub_key' | 'message' | 'signature'>): SignedItem => ({
  key: hex(c.pub_key),
  message: hex(c.message),
  signature: hex(c.signature),
});

const openssl: SignatureVerifier = (items) =>
  Promise.resolve(
    items.map(({ key, message, signature }) => {
      const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key]);
      return verify(null, message, createPublicKey({ key: spki, format: 'der', type: 'spki' }), signature);
    }),
  );

const subtle: SignatureVerifier = (items) =>
  Promise.all(
    items.map(async ({ key, message, signature }) =>
      webcrypto.subtle.verify(
        'Ed25519',
        await webcrypto.subtle.importKey('raw', key, 'Ed25519', false, ['verify']),
        signature,
        message,
      ),
    ),
  );

const verifiers: [string, SignatureVerifier][] = [
  ['node:crypto', strictVerifier(openssl)],
  ['WebCrypto', strictVerifier(subtle)],
  ['noble', nobleVerifier],
];

/** Signs like any Ed25519 library; the seed does not matter here. */
const pair = generateKeyPairSync('ed25519');
const rawKey = (key: KeyObject): Uint8Array =>
  new Uint8Array(key.export({ type: 'spki', format: 'der' }).subarray(-32));
const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const bytesOf = (value: bigint): Uint8Array =>
  Uint8Array.from({ length: 32 }, (_, i) => Number((value >> BigInt(8 * i)) & 255n));
const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${toHex(Uint8Array.from(bytes).reverse())}`);

describe.each(verifiers)('%s', (_, verifier) => {
  test.each(cases.map((c) => [c.note, c] as const))('%s', async (_note, c) => {
    expect(await verifier([itemOf(c)])).toEqual([c.accept]);
  });

  test('a batch answers in the order of its items', async () => {
    expect(await verifier(cases.map(itemOf))).toEqual(cases.map(({ accept }) => accept));
    expect(await verifier([])).toEqual([]);
  });

  // RFC 8032 section 7.1, tests 1 to 3.
  test.each([
    [
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      '72',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
    [
      'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
      'af82',
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    ],
  ])('RFC 8032 %s', async (key, message, signature) => {
    const item = itemOf({ pub_key: key, message, signature });
    expect(await verifier([item])).toEqual([true]);
    expect(await verifier([{ ...item, message: new Uint8Array([...item.message, 0]) }])).toEqual([false]);
  });

  test('wrong lengths are bad signatures, not errors', async () => {
    const good = itemOf(cases.find(({ accept }) => accept)!);
    const lengths = [0, 1, 31, 33, 63, 64, 65, 1000].filter((n) => n !== 32);
    for (const n of lengths) expect(await verifier([{ ...good, key: new Uint8Array(n).fill(9) }])).toEqual([false]);
    for (const n of [0, 1, 32, 63, 65, 1000])
      expect(await verifier([{ ...good, signature: new Uint8Array(n) }])).toEqual([false]);
  });

  test('S + L is refused', async () => {
    const message = new TextEncoder().encode('malleable');
    const signature = new Uint8Array(sign(null, message, pair.privateKey));
    const s = numberOf(signature.subarray(32)) + L;
    const changed = new Uint8Array([...signature.subarray(0, 32), ...bytesOf(s)]);
    const key = rawKey(pair.publicKey);
    expect(
      await verifier([
        { key, message, signature },
        { key, message, signature: changed },
      ]),
    ).toEqual([true, false]);
  });
});

test('keys of small order, not canonical, or off the curve are refused', () => {
  const torsion = hex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa');
  const point = Point.fromBytes(torsion, false);
  const small = new Set<string>();
  for (let multiple = Point.ZERO, i = 0; i < 8; i++, multiple = multiple.add(point))
    small.add(toHex(multiple.toBytes()));
  expect(small.size).toBe(8);
  for (const key of small) expect(isStrictKey(hex(key))).toBe(false);
  // The identity and the point of order two with a sign they cannot have.
  for (const y of [1n, P - 1n]) expect(isStrictKey(bytesOf(y | (1n << 255n)))).toBe(false);
  // Every y from p up, with either sign: not canonical, whatever point it would be.
  for (let y = P; y < 2n ** 255n; y++)
    for (const sign of [0n, 1n]) expect(isStrictKey(bytesOf(y | (sign << 255n)))).toBe(false);
  expect(isStrictKey(bytesOf(2n))).toBe(false);
  expect(isStrictKey(new Uint8Array(31))).toBe(false);
  expect(isStrictKey(new Uint8Array(33))).toBe(false);
  expect(isStrictKey(rawKey(pair.publicKey))).toBe(true);
});

test('a key is strict where its point can be decoded, of whatever bytes', () => {
  const decodes = (bytes: Uint8Array): boolean => {
    try {
      return !Point.fromBytes(bytes, false).isSmallOrder();
    } catch {
      return false;
    }
  };
  const found = { on: 0, off: 0 };
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      expect([toHex(bytes), isStrictKey(bytes)]).toEqual([toHex(bytes), decodes(bytes)]);
      found[isStrictKey(bytes) ? 'on' : 'off']++;
    }),
    { numRuns: 1000 },
  );
  expect(Math.min(found.on, found.off)).toBeGreaterThan(50);
  for (let y = 0n; y < 300n; y++)
    for (const bytes of [
      bytesOf(y),
      bytesOf(P - 1n - y),
      bytesOf(y | (1n << 255n)),
      bytesOf((P - 1n - y) | (1n << 255n)),
    ])
      expect([toHex(bytes), isStrictKey(bytes)]).toEqual([toHex(bytes), decodes(bytes)]);
});

test('Jacobi symbols are those of Euler’s criterion', () => {
  const power = (base: bigint, exponent: bigint): bigint => {
    let [result, square] = [1n, base % P];
    for (let rest = exponent; rest > 0n; rest >>= 1n) {
      if ((rest & 1n) === 1n) result = (result * square) % P;
      square = (square * square) % P;
    }
    return result;
  };
  const euler = (a: bigint): number => {
    const value = power(a, (P - 1n) / 2n);
    return value === P - 1n ? -1 : Number(value);
  };
  // Sparse ones as well: whole limbs of zeros take their own way.
  const sparse = fc
    .array(fc.nat(254), { maxLength: 3 })
    .map((bits) => bits.reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n));
  fc.assert(
    fc.property(
      fc.oneof(
        fc.bigInt({ min: 0n, max: P - 1n }),
        sparse,
        sparse.map((a) => P - 1n - (a % P)),
      ),
      (a) => {
        expect([a, jacobi(a % P, P)]).toEqual([a, euler(a)]);
      },
    ),
    { numRuns: 1000 },
  );
  // A modulus that is no prime, small ones: (a/15), and those that divide.
  expect([0n, 1n, 2n, 3n, 4n, 5n, 7n, 8n, 11n, 13n, 14n].map((a) => jacobi(a, 15n))).toEqual([
    0, 1, 1, 0, 1, 0, -1, 1, -1, -1, -1,
  ]);
  expect([jacobi(0n, 1n), jacobi(0n, 3n), jacobi(2n, 3n)]).toEqual([1, 0, -1]);
});

test('the three agree on honest, flipped and made-up signatures', async () => {
  const key = rawKey(pair.publicKey);
  const items = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((message): SignedItem => ({
      key,
      message,
      signature: new Uint8Array(sign(null, message, pair.privateKey)),
    })),
    fc.record({ place: fc.nat(95), bit: fc.nat(7) }).map(({ place, bit }): SignedItem => {
      const message = Uint8Array.of(7);
      const both = new Uint8Array([...key, ...sign(null, message, pair.privateKey)]);
      both[place]! ^= 1 << bit;
      return { key: both.slice(0, 32), message, signature: both.slice(32) };
    }),
    fc.record({
      key: fc.uint8Array({ minLength: 32, maxLength: 32 }),
      message: fc.uint8Array({ maxLength: 10 }),
      signature: fc.uint8Array({ minLength: 64, maxLength: 64 }),
    }),
    // Torsion added to an honest key or R: only a cofactored equation holds, or none.
    fc
      .record({ of: fc.constantFrom('key', 'r'), times: fc.integer({ min: 1, max: 7 }) })
      .map(({ of, times }): SignedItem => {
        const torsion = Point.fromBytes(
          hex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa'),
          false,
        ).multiply(BigInt(times), false);
        const message = Uint8Array.of(times);
        const signature = new Uint8Array(sign(null, message, pair.privateKey));
        const moved = (bytes: Uint8Array): Uint8Array => Point.fromBytes(bytes, false).add(torsion).toBytes();
        return of === 'key'
          ? { key: moved(key), message, signature }
          : { key, message, signature: new Uint8Array([...moved(signature.slice(0, 32)), ...signature.slice(32)]) };
      }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(items, { minLength: 1, maxLength: 6 }), async (batch) => {
      const [first, ...others] = await Promise.all(verifiers.map(([, verifier]) => verifier(batch)));
      for (const other of others) expect(other).toEqual(first);
    }),
    { numRuns: 60 },
  );
}, 60_000);
