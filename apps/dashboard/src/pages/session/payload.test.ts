import fc from 'fast-check';
import { utf8 } from '@nd7/entry';
import type { Row } from '../../worker/row.js';
import { findText, SessionBytes } from './bytes.js';
import { diffOf, outputsOf } from './call-words.js';
import { entryOf, layOut } from './payload.js';

describe('a payload as it was said', () => {
  it('is laid out without touching a token', () => {
    expect(layOut('{"a":1.0e+2,"b":[1,{"c":"x, {y}"}],"d":{},"e":[ ],"f":"\\"\\\\"}')).toBe(
      '{\n "a":1.0e+2,\n "b":[\n  1,\n  {\n   "c":"x, {y}"\n  }\n ],\n "d":{},\n "e":[],\n "f":"\\"\\\\"\n}',
    );
  });

  it('loses nothing but white space between tokens', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(3), (json, indent) => {
        const text = JSON.stringify(JSON.parse(json), null, indent);
        expect(JSON.stringify(JSON.parse(layOut(text)))).toBe(JSON.stringify(JSON.parse(json)));
      }),
    );
  });

  it('ends on any text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(typeof layOut(text)).toBe('string');
      }),
    );
  });
});

const row = (seq: number, start: number, end: number): Row => ({ seq, start, end, class: 'intent' });

describe('the bytes of a session', () => {
  it('are the same however they lie in segments', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.array(fc.nat(200), { maxLength: 6 }),
        fc.nat(200),
        fc.nat(200),
        (bytes, places, a, b) => {
          const ends = [...places.filter((place) => place <= bytes.length), bytes.length].sort((x, y) => x - y);
          const parts = ends.map((end, i) => bytes.slice(i === 0 ? 0 : ends[i - 1], end));
          const [from, to] = [Math.min(a, b), Math.max(a, b)];
          expect([...new SessionBytes(parts).slice(from, to)]).toEqual([...bytes.slice(from, to)]);
        },
      ),
    );
  });

  it('hold a text, upper and lower case alike, and quotes as JSON spells them', async () => {
    const lines = ['{"a":"Exit code 3"}', '{"a":"say \\"hi\\""}', '{"b":1}'];
    const bytes = new SessionBytes([utf8(`${lines.join('\n')}\n`)]);
    let at = 0;
    const rows = lines.map((line, seq) => {
      const one = row(seq, at, at + line.length);
      at += line.length + 1;
      return one;
    });
    const find = async (text: string) => [...(await findText(bytes, rows, text, new AbortController().signal))];
    expect(await find('exit CODE')).toEqual([0]);
    expect(await find('"hi"')).toEqual([1]);
    expect(await find('nothing')).toEqual([]);
  });
});

describe('the words of a call', () => {
  const entry = (data: Record<string, unknown>) => ({ view: { class: 'intent' as const }, data });

  it.each([
    [{ tool_response: 'text' }, [['Output', 'text']]],
    [
      { tool_response: { stdout: 'out', stderr: 'err' } },
      [
        ['Output', 'out'],
        ['Standard error', 'err'],
      ],
    ],
    [{ tool_response: { file: { content: 'body' } } }, [['File', 'body']]],
    [{ tool_response: [{ type: 'text', text: 'block' }, { type: 'image' }] }, [['Output', 'block']]],
    [{ tool_response: { stdout: '', stderr: '' } }, []],
    [{ error: 'Exit code 7' }, [['Error', 'Exit code 7']]],
    [{ tool_response: null }, []],
    [{ tool_response: { odd: [1] } }, [['Answer', '{\n "odd": [\n  1\n ]\n}']]],
  ])('%j', (data, outputs) => {
    expect(outputsOf(entry(data), undefined, 'a').map((one) => [one.name, one.text])).toEqual(outputs);
  });

  it('finds a result in the report of several calls', () => {
    const batch = entry({
      tool_calls: [{ tool_use_id: 'b', tool_response: 'no' }, { tool_use_id: 'a', tool_response: 'denied' }, 7],
    });
    expect(outputsOf(undefined, batch, 'a')).toEqual([{ name: 'Output', text: 'denied' }]);
  });

  it('takes a change from the client’s patch, else from what was asked', () => {
    const patch = [{ oldStart: 1, oldLines: 2, newStart: 1, newLines: 2, lines: [' one', '-two', '+TWO'] }];
    expect(diffOf({ old_string: 'x', new_string: 'y' }, entry({ tool_response: { structuredPatch: patch } }))).toEqual([
      { sign: ' ', old: 1, now: 1, text: 'one' },
      { sign: '-', old: 2, text: 'two' },
      { sign: '+', now: 2, text: 'TWO' },
    ]);
    expect(diffOf({ old_string: 'x', new_string: 'y' }, undefined).map((line) => line.sign + line.text)).toEqual([
      '-x',
      '+y',
    ]);
    expect(
      diffOf({ structuredPatch: 7 }, entry({ tool_response: { structuredPatch: [{ lines: 'no' }, null] } })),
    ).toEqual([]);
  });

  it('has no payload where the strict reader sees no entry', () => {
    expect(entryOf(new SessionBytes([utf8('{"a":1,"a":2}')]), row(0, 0, 13))?.data).toEqual({});
  });
});
