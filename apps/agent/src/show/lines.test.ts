import { MAX_LINE } from '@nd7/entry';
import fc from 'fast-check';
import { LineCutter } from './lines.js';

function cut(bytes: Uint8Array, sizes: readonly number[]): [number, string, boolean][] {
  const cutter = new LineCutter();
  const out: [number, string, boolean][] = [];
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    const chunk = bytes.slice(at, at + size);
    for (const { seq, bytes: line, isTooLong } of cutter.push(chunk))
      out.push([seq, Buffer.from(line).toString('latin1'), isTooLong]);
    chunk.fill(0x78);
    at += chunk.length;
  }
  return out;
}

test('any chunking gives the same lines; an unfinished one is kept back', () => {
  const text = fc
    .array(fc.constantFrom('a', 'bc', '\n', '\n\n', '{}'), { maxLength: 30 })
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, fc.array(fc.nat({ max: 7 }), { maxLength: 30 }), (whole, sizes) => {
      const lines = whole.split('\n').slice(0, -1);
      expect(cut(Buffer.from(whole), sizes)).toEqual(lines.map((line, i) => [i, line, false]));
    }),
  );
});

test('a line longer than allowed is marked and costs no more than a line', () => {
  const long = new Uint8Array(3 * MAX_LINE).fill(0x61);
  long[long.length - 1] = 10;
  for (const sizes of [[], [10, 20], Array<number>(48).fill(65_536)]) {
    const [[seq, line, isTooLong] = [-1, '', false], ...rest] = cut(long, sizes);
    expect([seq, line.length, isTooLong, rest.length]).toEqual([0, MAX_LINE, true, 0]);
  }
  const exact = new Uint8Array(MAX_LINE + 1).fill(0x61);
  exact[MAX_LINE] = 10;
  for (const sizes of [[], [7], [MAX_LINE]])
    expect(cut(exact, sizes).map(([, line, tooLong]) => [line.length, tooLong])).toEqual([[MAX_LINE, false]]);
});
