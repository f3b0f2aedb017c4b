import { toBase64, utf8 } from '@nd7/entry';
import { nobleVerifier } from '@nd7/tlog';
import fc from 'fast-check';
import { generateKeyPairSync, sign } from 'node:crypto';
import type { Claim, SignedClaim } from './index.js';
import {
  claimItem,
  claimLines,
  claimMessage,
  decodeClaimHeaders,
  encodeClaimHeaders,
  hashAt,
  isFork,
  parseClaim,
  textOf,
} from './index.js';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const machine = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');
const [A, B, C] = ['a'.repeat(64), 'b'.repeat(64), 'c'.repeat(64)];
const claim: Claim = { origin: 'vault.example/acme', machine, session: 's-1', from: 8, to: 15, prev: A, head: B };
const signed = (c: Claim): SignedClaim => ({
  ...c,
  signature: sign(null, claimMessage(c), privateKey).toString('base64'),
});

test('the lines are those of the leaf, and the message is labelled', () => {
  expect(claimLines(claim)).toBe(
    `origin vault.example/acme\nmachine ${machine}\nsession s-1\nentries 8 15\nprev ${A}\nhead ${B}\n`,
  );
  expect(new TextDecoder().decode(claimMessage(claim))).toBe(`nd7/segment/v1\n${claimLines(claim)}`);
  expect(parseClaim(claimLines(claim))).toEqual(claim);
});

test("headers, both ways; the signature is the machine's", async () => {
  const good = signed(claim);
  const headers = encodeClaimHeaders(good);
  expect(decodeClaimHeaders(headers['nd7-claim'], headers['nd7-signature'])).toEqual(good);
  const other = { ...good, head: C };
  expect(
    await nobleVerifier([
      claimItem(good),
      claimItem(other),
      claimItem({ ...good, machine: 'x' }),
      claimItem({ ...good, signature: 'x' }),
    ]),
  ).toEqual([true, false, false, false]);
  for (const [text, signature] of [
    [headers['nd7-claim'].slice(1), good.signature],
    [`${headers['nd7-claim']}=`, good.signature],
    [toBase64(Uint8Array.of(0xff)), good.signature],
    [toBase64(utf8(`\ufeff${claimLines(claim)}`)), good.signature],
    [headers['nd7-claim'], ''],
    [headers['nd7-claim'], good.signature.slice(0, -1)],
    [headers['nd7-claim'], toBase64(new Uint8Array(63))],
  ] as const) {
    expect(decodeClaimHeaders(text, signature)).toBeUndefined();
  }
});

test('a claim that is not exactly one is none', () => {
  const lines = claimLines(claim);
  const bad = [
    '',
    lines.slice(0, -1),
    `${lines}\n`,
    ` ${lines}`,
    lines.replaceAll('\n', '\r\n'),
    lines.replace('entries 8 15', 'entries 15 8'),
    lines.replace('entries 8 15', 'entries 8 8'),
    lines.replace('entries 8 15', 'entries 08 15'),
    lines.replace('entries 8 15', 'entries 8  15'),
    lines.replace('entries 8 15', 'entries -8 15'),
    lines.replace('entries 8 15', 'entries 8 1e2'),
    lines.replace('entries 8 15', 'entries 8 10000000000000000'),
    // A count that no number holds exactly names no entry.
    lines.replace('entries 8 15', 'entries 8 9007199254740992'),
    lines.replace(A, A.toUpperCase()),
    lines.replace(A, A.slice(1)),
    lines.replace('s-1', ''),
    lines.replace('s-1', '-1'),
    lines.replace('s-1', 'a'.repeat(129)),
    lines.replace('s-1', '../x'),
    lines.replace('vault.example/acme', 'vault.example'),
    lines.replace('vault.example/acme', 'VAULT.example/acme'),
    lines.replace(/prev.*\n/, ''),
  ];
  for (const text of bad) expect(parseClaim(text)).toBeUndefined();
  expect(parseClaim(lines.replace('entries 8 15', 'entries 0 9007199254740991'))?.to).toBe(2 ** 53 - 1);
});

test('no text makes a parser throw, and what parses is written the same', () => {
  const text = fc.array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(...claimLines(claim).split(/(?=\n)|(?<=\n)|(?<= )/), claimLines(claim)),
    ),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(text, fc.uint8Array({ maxLength: 40 }), (parts, bytes) => {
      const lines = parts.join('');
      const parsed = parseClaim(lines);
      if (parsed !== undefined) expect(claimLines(parsed)).toBe(lines);
      decodeClaimHeaders(lines, lines);
      const decoded = textOf(bytes);
      if (decoded !== undefined) expect(utf8(decoded)).toEqual(bytes);
    }),
    { numRuns: 500 },
  );
});

test('a flipped bit of a claim is refused or leaves no good signature', async () => {
  const good = signed(claim);
  const bytes = utf8(claimLines(good));
  const items = [];
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.slice();
    flipped[at]! ^= 1 << (at % 7);
    const parsed = parseClaim(textOf(flipped) ?? '');
    if (parsed !== undefined) items.push(claimItem({ ...parsed, signature: good.signature }));
  }
  expect(items.length).toBeGreaterThan(10);
  expect(new Set(await nobleVerifier(items))).toEqual(new Set([false]));
}, 60_000);

describe('a fork is two hashes for one count', () => {
  const at = (from: number, to: number, prev: string, head: string): SignedClaim => ({
    ...signed(claim),
    from,
    to,
    prev,
    head,
  });
  test.each([
    ['to and to, other hash', at(0, 5, A, B), at(0, 5, A, C), 5],
    ['to and to, other hash, other beginnings', at(0, 5, A, B), at(3, 5, A, C), 5],
    ['to and to, same hash', at(0, 5, A, B), at(3, 5, A, B), undefined],
    ['prev and prev, other hash', at(5, 7, A, B), at(5, 9, C, B), 5],
    ['prev and prev, same hash', at(5, 7, A, B), at(5, 9, A, C), undefined],
    ['prev and prev, and the same end', at(5, 7, A, B), at(5, 7, C, B), 5],
    ['to and prev, other hash', at(0, 5, A, B), at(5, 9, C, A), 5],
    ['to and prev, same hash', at(0, 5, A, B), at(5, 9, B, A), undefined],
    ['prev and to, other hash', at(5, 9, A, B), at(0, 5, C, C), 5],
    ['prev and to, same hash', at(5, 9, A, B), at(0, 5, C, A), undefined],
    ['both counts differ: the lower', at(3, 5, A, B), at(3, 5, B, A), 3],
    ['the same twice', at(0, 5, A, B), at(0, 5, A, B), undefined],
    ['an overlap that names no common count', at(0, 5, A, B), at(3, 8, C, C), undefined],
    ['one inside the other', at(0, 9, A, B), at(3, 5, C, C), undefined],
    ['next to nothing in common', at(0, 2, A, B), at(7, 9, C, C), undefined],
  ] as const)('%s', (_, a, b, count) => {
    expect(isFork(a, b)).toBe(count);
    expect(isFork(b, a)).toBe(count);
  });

  test.each(['origin', 'machine', 'session'] as const)('of another %s: no fork', (member) => {
    const [a, b] = [at(0, 5, A, B), at(0, 5, A, C)];
    expect(isFork(a, { ...b, [member]: `${b[member]}x` })).toBeUndefined();
  });

  test('every fork names a count of both, with another hash in each', () => {
    const random = fc
      .record({
        from: fc.nat(4),
        length: fc.integer({ min: 1, max: 4 }),
        prev: fc.constantFrom(A, B),
        head: fc.constantFrom(A, B),
      })
      .map(({ from, length, prev, head }) => at(from, from + length, prev, head));
    fc.assert(
      fc.property(random, random, (a, b) => {
        const counts = [a.from, a.to].filter((count) => [b.from, b.to].includes(count));
        const differing = counts.filter((count) => hashAt(a, count) !== hashAt(b, count));
        expect(isFork(a, b)).toBe(differing[0]);
      }),
    );
  });
});
