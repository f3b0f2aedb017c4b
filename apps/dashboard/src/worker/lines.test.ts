import { createKernel } from '@nd7/blake3';
import { MAX_LINE } from '@nd7/entry';
import fc from 'fast-check';
import { type Line, LineSplitter } from './lines.js';

const utf8 = (text: string) => new TextEncoder().encode(text);

/** Start, end and fault of every line, with its bytes as text. */
function split(
  chunks: readonly Uint8Array[],
): { start: number; end: number; fault: Line['fault']; text: string | undefined }[] {
  const lines: ReturnType<typeof split> = [];
  const splitter = new LineSplitter(createKernel(), (line) => {
    const text = line.bytes === undefined ? undefined : new TextDecoder('latin1').decode(line.bytes);
    lines.push({ start: line.start, end: line.end, fault: line.fault, text });
  });
  for (const chunk of chunks) splitter.push(chunk);
  splitter.finish();
  return lines;
}

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, i) => bytes.slice(i === 0 ? 0 : ends[i - 1], end));
}

describe('lines of a stream', () => {
  it('knows where each starts and what is wrong with it', () => {
    expect(split([utf8('{"a":1}\n\n{"a":1,"a":2}\n[1]\n{"b"')])).toEqual([
      { start: 0, end: 7, fault: undefined, text: '{"a":1}' },
      { start: 8, end: 8, fault: 'bad-json', text: '' },
      { start: 9, end: 22, fault: 'duplicate-key', text: '{"a":1,"a":2}' },
      { start: 23, end: 26, fault: 'bad-json', text: '[1]' },
      { start: 27, end: 31, fault: 'torn-tail', text: '{"b"' },
    ]);
  });

  it('gives the same lines however the stream is cut', () => {
    const line = fc.constantFrom('{}', '{"a":"b"}', '', 'no', '{"x":1,"x":1}', `{"long":"${'y'.repeat(300)}"}`);
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 30 }),
        fc.boolean(),
        fc.array(fc.nat(), { maxLength: 12 }),
        (lines, ended, places) => {
          const bytes = utf8(lines.join('\n') + (ended ? '\n' : ''));
          expect(split(cut(bytes, places))).toEqual(split([bytes]));
        },
      ),
    );
  });

  it('passes over a line that is too long without keeping it, and goes on after it', () => {
    const long = new Uint8Array(3 * MAX_LINE).fill(120);
    const lines = split([utf8('{}\n'), long, long, utf8('\n{"after":1}\n')]);
    expect(lines.map(({ fault, text }) => [fault, text?.slice(0, 11)])).toEqual([
      [undefined, '{}'],
      ['too-long', undefined],
      [undefined, '{"after":1}'],
    ]);
    expect(lines[1]).toMatchObject({ start: 3, end: 3 + 6 * MAX_LINE });
  });

  it('says of a too long line without an end that it is too long', () => {
    expect(split([new Uint8Array(2 * MAX_LINE).fill(120)]).map(({ fault }) => fault)).toEqual(['too-long']);
  });

  it('takes the longest line there may be', () => {
    const line = utf8(`{"a":"${'x'.repeat(MAX_LINE - 8)}"}`);
    expect(line.length).toBe(MAX_LINE);
    expect(split([line, utf8('\n')]).map(({ fault, end }) => [fault, end])).toEqual([[undefined, MAX_LINE]]);
  });
});
