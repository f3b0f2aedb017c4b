// Runs of lines that follow one another: the kernel and the reference, which compares text, say the same of any bytes.
import fc from 'fast-check';
import { blake3Hex, createKernel, MAX_CHUNK, MAX_HEAD, referenceKernel, type LineKernel } from './index.js';

const utf8 = (text: string) => new TextEncoder().encode(text);
const CLOCK = '19:41:00.123Z"';
const headOf = (source: string, kind: string) =>
  `,"time":"2026-11-29T${CLOCK},"source":"${source}","kind":"${kind}","data":{`;
const HEADS = [
  headOf('intent:claude-code', 'tool.before'),
  headOf('intent:claude-code', 'tool.after'),
  headOf('effect:x', 'f'),
  headOf('intent:x', `k${'x'.repeat(MAX_HEAD)}`).slice(0, MAX_HEAD),
];
const clockOf = (head: string) => head.indexOf(CLOCK);
const anyTime = fc.nat({ max: 86_399_999 }).map((ms) => `${new Date(ms).toISOString().slice(11)}"`);

/** Lines from number `seq` on, each with the hash of the one before. */
function chain(seq: bigint, ends: readonly string[]): { bytes: Uint8Array; hash: Uint8Array } {
  let prev = blake3Hex(utf8('before'));
  const hash = Buffer.from(prev, 'hex');
  const lines = ends.map((end, i) => {
    const line = `{"v":1,"seq":${String(seq + BigInt(i))},"prev":"${prev}"${end}`;
    prev = blake3Hex(utf8(line));
    return `${line}\n`;
  });
  return { bytes: utf8(lines.join('')), hash };
}

const linkBefore = (seq: bigint | undefined, hash: Uint8Array) => {
  const text = seq === undefined ? '' : String(seq);
  return { digits: utf8(text.padStart(20, '0')), width: text.length, hash };
};

/** A scan and a run, as values. */
function ran(kernel: LineKernel, bytes: Uint8Array, from: number, before: ReturnType<typeof linkBefore>) {
  kernel.scan(bytes);
  const { count, heads, last } = kernel.run(from, before);
  return { count, heads: [...heads], last: count > 0 ? last : undefined };
}

function pair(heads: readonly string[]): [LineKernel, LineKernel] {
  const both: [LineKernel, LineKernel] = [createKernel(), referenceKernel()];
  for (const kernel of both) heads.forEach((head, i) => expect(kernel.learn(utf8(head), clockOf(head))).toBe(i));
  return both;
}

test('both kernels say the same of chains with any byte changed, from any line and number on', () => {
  const [kernel, reference] = pair(HEADS.slice(0, 3));
  const end = fc
    .tuple(
      fc.oneof(
        { weight: 20, arbitrary: fc.constantFrom(...HEADS.slice(0, 3)) },
        fc.constant(headOf('intent:y', 'unknown')),
      ),
      anyTime,
      fc.nat({ max: 300 }),
    )
    .map(([head, time, size]) => `${head.replace(CLOCK, time)}"a":"${'x'.repeat(size)}"}}`);
  let whole = 0;
  let parts = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(0n, 7n, 98n, 999n, 123_456n, 99_999_999_999_998n, 9_999_999_999_999_998n),
      fc.array(end, { minLength: 1, maxLength: 12 }),
      fc.option(fc.tuple(fc.nat(), fc.nat({ max: 255 }), fc.constantFrom('flip', 'drop', 'double')), { freq: 2 }),
      (seq, ends, change) => {
        const { bytes, hash } = chain(seq, ends);
        let changed = bytes;
        if (change !== null) {
          const [where, byte, how] = change;
          const at = where % bytes.length;
          const own = how === 'flip' ? [byte] : how === 'drop' ? [] : [bytes[at] as number, bytes[at] as number];
          changed = Uint8Array.from([...bytes.subarray(0, at), ...own, ...bytes.subarray(at + 1)]);
        }
        const before = linkBefore(seq, hash);
        const one = ran(kernel, changed, 0, before);
        expect(one).toEqual(ran(reference, changed, 0, before));
        if (one.count === ends.length) whole++;
        else parts++;
        const [first, wrong] = [linkBefore(undefined, hash), linkBefore(seq + 1n, hash)];
        for (const other of [first, wrong]) expect(ran(kernel, changed, 0, other).count).toBe(0);
        expect(ran(kernel, changed, ends.length + 3, before).count).toBe(0);
      },
    ),
    { numRuns: 3000 },
  );
  expect(Math.min(whole, parts)).toBeGreaterThan(300);
}, 120_000);

test('a run goes on from any line of a scan', () => {
  const ends = Array.from({ length: 30 }, (_, i) => `${HEADS[i % 3] ?? ''}"i":${String(i)}}}`);
  const { bytes, hash } = chain(90n, ends);
  for (const kernel of pair(HEADS.slice(0, 3))) {
    const { hashes } = kernel.scan(bytes);
    const kept = hashes.slice();
    expect(kernel.run(0, linkBefore(90n, hash))).toMatchObject({ count: 30, last: 2 });
    for (let from = 1; from < 30; from++) {
      const before = linkBefore(90n + BigInt(from), kept.subarray(32 * (from - 1), 32 * from));
      expect(kernel.run(from, before).count).toBe(30 - from);
      expect(kernel.run(from, linkBefore(90n, hash)).count).toBe(0);
    }
  }
});

test('the longest head, at the very end of the largest chunk, and one that is too long', () => {
  for (const kernel of pair(HEADS)) {
    const head = HEADS[3] ?? '';
    expect(head.length).toBe(MAX_HEAD);
    const { bytes, hash } = chain(5n, [`${head}","data":{}}`]);
    const padded = new Uint8Array(MAX_CHUNK).fill(0x20);
    padded[MAX_CHUNK - bytes.length - 1] = 10;
    padded.set(bytes, MAX_CHUNK - bytes.length);
    const { count } = kernel.scan(padded);
    expect(kernel.run(count - 1, linkBefore(5n, hash))).toMatchObject({ count: 1, last: 3 });
    const cut = utf8(headOf('a', 'b').slice(0, 30));
    expect(() => kernel.learn(new Uint8Array(MAX_HEAD + 1), 0)).toThrow(RangeError);
    expect(() => kernel.learn(cut, 25)).toThrow(RangeError);
    expect(() => kernel.learn(cut, -1)).toThrow(RangeError);
  }
}, 60_000);

test('what was learned first is forgotten where there are too many', () => {
  const heads = Array.from({ length: 24 }, (_, i) => headOf('intent:x', `k${String(i)}`));
  const lines = [...heads, headOf('intent:x', 'late')].map((head) => chain(1n, [`${head}}}`]));
  for (const kernel of pair(heads)) {
    const known = () => lines.map(({ bytes, hash }) => ran(kernel, bytes, 0, linkBefore(1n, hash)).count);
    expect(known()).toEqual([...heads.map(() => 1), 0]);
    const late = utf8(headOf('intent:x', 'late'));
    expect(kernel.learn(late, clockOf(headOf('intent:x', 'late')))).toBe(0);
    expect(known()).toEqual([0, ...heads.slice(1).map(() => 1), 1]);
  }
});
