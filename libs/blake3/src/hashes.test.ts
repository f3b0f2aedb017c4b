import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { createKernel } from './kernel.js';
import { type LineKernel, MAX_CHUNK } from './lines.js';
import { referenceKernel } from './reference.js';
import { blake3, blake3Hex } from './value.js';

const kernels: [string, LineKernel][] = [
  ['WebAssembly', createKernel()],
  ['reference', referenceKernel()],
];
const NEWLINE = 10;
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** Lines as one chunk. They may hold anything but newlines. */
function chunkOf(lines: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(lines.flatMap((line) => [line, Uint8Array.of(NEWLINE)]));
}

/** The hashes a kernel gives these lines. */
function hashesOf(kernel: LineKernel, lines: readonly Uint8Array[]): string[] {
  const scan = kernel.scan(chunkOf(lines));
  expect(scan.count).toBe(lines.length);
  return lines.map((_, i) => hex(scan.hashes.subarray(32 * i, 32 * i + 32)));
}

/** Bytes without newlines; hardly a word like another. */
const text = new Uint8Array(MAX_CHUNK);
for (let i = 0, state = 1; i < text.length; i++) {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  text[i] = state >>> 24 === NEWLINE ? 0xff : state >>> 24;
}

/** A line of a length; lines of different lengths begin at different places, so that they share no blocks. */
function filled(length: number): Uint8Array {
  const from = (length * 7) % Math.min(4096, text.length - length);
  return text.subarray(from, from + length);
}

interface Vectors {
  cases: { input_len: number; hash: string }[];
}
const vectors = JSON.parse(
  readFileSync(new URL('../../../tests/vectors/blake3.json', import.meta.url), 'utf8'),
) as Vectors;

test("the vectors of the BLAKE3 team's b3sum", () => {
  expect(vectors.cases.length).toBeGreaterThan(20);
  for (const { input_len, hash } of vectors.cases) {
    const input = Uint8Array.from({ length: input_len }, (_, i) => i % 251);
    expect(blake3Hex(input)).toBe(hash);
    expect(hex(blake3(input))).toBe(hash);
    // A kernel takes lines: of the vectors, only those that stop before the first byte 10 can be one.
    if (input_len <= NEWLINE) for (const [, kernel] of kernels) expect(hashesOf(kernel, [input])).toEqual([hash]);
  }
});

test.each(kernels)('%s: what b3sum says of `sed -n 1p log.jsonl | tr -d "\\n"`', (_, kernel) => {
  const line = new TextEncoder().encode('{"v":1,"seq":0}');
  expect(hashesOf(kernel, [line])).toEqual([blake3Hex(line)]);
  expect(hashesOf(kernel, [new Uint8Array()])).toEqual([
    'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262',
  ]);
});

test('every length from 0 to 5000, many lines to a chunk', () => {
  const kernel = createKernel();
  for (let from = 0; from <= 5000; from += 500) {
    const lines = Array.from({ length: from === 5000 ? 1 : 500 }, (_, i) => filled(from + i));
    expect(hashesOf(kernel, lines)).toEqual(lines.map(blake3Hex));
  }
}, 60_000);

test('around powers of two and of chunks up to the longest line', () => {
  const kernel = createKernel();
  for (let power = 13; power <= 20; power++) {
    const around = [2 ** power - 1, 2 ** power, 2 ** power + 1, 2 ** power + 1024, 3 * 2 ** (power - 1) + 63];
    const lines = around.slice(0, power > 17 ? 3 : 5).map(filled);
    expect(hashesOf(kernel, lines)).toEqual(lines.map(blake3Hex));
  }
}, 120_000);

test('one line that fills the largest chunk', () => {
  const line = filled(MAX_CHUNK - 1);
  expect(hashesOf(createKernel(), [line])).toEqual([blake3Hex(line)]);
}, 60_000);

test('lanes do not mix: lines of any lengths in any order', () => {
  const kernel = createKernel();
  const length = fc.oneof(
    { weight: 6, arbitrary: fc.nat(3000) },
    { weight: 2, arbitrary: fc.nat(64) },
    { weight: 1, arbitrary: fc.nat(20_000) },
  );
  fc.assert(
    fc.property(fc.array(length, { minLength: 1, maxLength: 40 }), (lengths) => {
      const lines = lengths.map(filled);
      expect(hashesOf(kernel, lines)).toEqual(lines.map(blake3Hex));
    }),
    { numRuns: 40 },
  );
}, 60_000);
