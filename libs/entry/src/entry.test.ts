import fc from 'fast-check';
import { type EntryDraft, EntryError, printEntry } from './entry-print.js';
import { readEntry } from './entry-read.js';
import { MAX_LINE } from './grammar.js';
import { parseStrictJson } from './json-parse.js';

const PREV = '0123456789abcdef'.repeat(4);
const draft: EntryDraft = {
  time: '2026-11-29T19:41:00.123Z',
  source: 'intent:claude-code',
  kind: 'tool.before',
  data: '{"a": 1.0}',
};
const text = (line: Uint8Array) => new TextDecoder().decode(line);
const lineOf = (json: string) => new TextEncoder().encode(json);

function codeOf(change: Partial<EntryDraft>, seq = 0, prev = PREV): string {
  try {
    printEntry(seq, prev, { ...draft, ...change });
  } catch (error) {
    if (error instanceof EntryError) return error.code;
    throw error;
  }
  return 'printed';
}

describe('printing', () => {
  test('the three members first, then the rest, the data as it was said', () => {
    expect(text(printEntry(7, PREV, draft))).toBe(
      `{"v":1,"seq":7,"prev":"${PREV}","time":"2026-11-29T19:41:00.123Z","source":"intent:claude-code","kind":"tool.before","data":{"a": 1.0}}`,
    );
  });

  test('what the recorder adds', () => {
    const line = printEntry(0, PREV, {
      ...draft,
      peer: { pid: 12, start: '99' },
      detached: [
        { at: '/tool_input/a~1b', blake3: PREV, bytes: 70_000, why: 'size' },
        { at: '', blake3: PREV, why: 'secret', shown: 'curl -H [secret]' },
      ],
    });
    expect(text(line)).toContain(
      `,"peer":{"pid":12,"start":"99"},"detached":[{"at":"/tool_input/a~1b","blake3":"${PREV}","bytes":70000,"why":"size"},{"at":"","blake3":"${PREV}","why":"secret","shown":"curl -H [secret]"}]}`,
    );
    expect(readEntry(line)).toMatchObject({
      peer: { pid: 12, start: '99' },
      detached: [{ bytes: 70_000 }, { shown: 'curl -H [secret]' }],
    });
  });

  test('data over several lines becomes one line', () => {
    expect(text(printEntry(0, PREV, { ...draft, data: '{\n  "a": "\\n x"\n}' }))).toContain('"data":{"a":"\\n x"}}');
  });

  test.each<[string, Partial<EntryDraft>]>([
    ['time', { time: '2026-11-29T19:41:00Z' }],
    ['source', { source: 'intent' }],
    ['kind', { kind: 'Tool' }],
    ['data', { data: '[]' }],
    ['data', { data: '{"a":1,"a":1}' }],
    ['data', { data: '{"a":1}}' }],
    ['data', { data: '{"a":"\ud800"}' }],
    ['data', { data: `{"a":${'['.repeat(255)}${']'.repeat(255)}}` }],
    ['peer', { peer: { toJSON: () => undefined } }],
    ['peer', { peer: { toJSON: () => [] } }],
    ['detached', { detached: [{ at: 'a', blake3: PREV, why: 'size' }] }],
    ['detached', { detached: [{ at: '/a~2', blake3: PREV, why: 'size' }] }],
    ['detached', { detached: [{ at: '/a', blake3: PREV.toUpperCase(), why: 'size' }] }],
    ['detached', { detached: [{ at: '/a', blake3: PREV, why: 'secret', bytes: 3 }] }],
    ['detached', { detached: [{ at: '/a', blake3: PREV, why: 'size', bytes: -1 }] }],
    ['too-long', { data: `{"a":"${'x'.repeat(MAX_LINE)}"}` }],
  ])('a draft with a bad %s is refused', (code, change) => expect(codeOf(change)).toBe(code));

  test('so are numbers and links that are none', () => {
    expect(codeOf({}, -1)).toBe('seq');
    expect(codeOf({}, 1.5)).toBe('seq');
    expect(codeOf({}, 2 ** 53)).toBe('seq');
    expect(codeOf({}, 0, PREV.slice(1))).toBe('prev');
  });

  test('254 brackets and a full line still fit', () => {
    expect(codeOf({ data: `{"a":${'['.repeat(254)}${']'.repeat(254)}}` })).toBe('printed');
    const empty = printEntry(0, PREV, { ...draft, data: '{"a":""}' }).length;
    const line = printEntry(0, PREV, { ...draft, data: `{"a":"${'x'.repeat(MAX_LINE - empty)}"}` });
    expect(line.length).toBe(MAX_LINE);
    expect(readEntry(line).problem).toBeUndefined();
  });

  test('whatever is printed is one strict line and reads back as it was', () => {
    const anyObject = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 3 }));
    fc.assert(
      fc.property(anyObject, fc.nat(), fc.constantFrom(undefined, 1, '\t'), (object, seq, indent) => {
        const data = JSON.stringify(object, null, indent);
        const line = printEntry(seq, PREV, { ...draft, data });
        expect(line.includes(10)).toBe(false);
        expect(parseStrictJson(line).ok).toBe(true);
        const view = readEntry(line);
        expect(view.problem).toBeUndefined();
        expect(view).toMatchObject({
          seq,
          prev: PREV,
          class: 'intent',
          producer: 'claude-code',
          kind: 'tool.before',
          time: draft.time,
        });
        expect(view.data).toBe(data.includes('\n') ? JSON.stringify(object) : data);
      }),
    );
  });
});

describe('reading', () => {
  const prefix = `{"v":1,"seq":3,"prev":"${PREV}",`;
  const rest = '"time":"2026-11-29T19:41:00.123Z","source":"recorder:nd7","kind":"seal","data":{}}';

  test('a good line', () => {
    expect(readEntry(lineOf(prefix + rest))).toEqual({
      seq: 3,
      prev: PREV,
      time: '2026-11-29T19:41:00.123Z',
      class: 'recorder',
      source: 'recorder:nd7',
      producer: 'nd7',
      kind: 'seal',
      data: '{}',
    });
  });

  test.each([
    ['json', '{"v":1'],
    ['json', '[]'],
    ['json', `${prefix}"a":1,"a":2,${rest}`],
    ['prefix', `{"v":2,"seq":3,"prev":"${PREV}",${rest}`],
    ['prefix', ` ${prefix}${rest}`],
    ['prefix', `{"v":1, "seq":3,"prev":"${PREV}",${rest}`],
    ['prefix', `{"v":1,"seq":03,"prev":"${PREV}",${rest}`.replace('03', '3.0')],
    ['prefix', `{"v":1,"seq":3,"prev":"${PREV.toUpperCase()}",${rest}`],
    ['prefix', `{"v":1,"seq":12345678901234567,"prev":"${PREV}",${rest}`],
    ['prefix', `{"v":1,"seq":3,"\\u0070rev":"${PREV}",${rest}`],
    ['prefix', '{"v":1,"seq":3}'],
    ['prefix', '{}'],
    ['time', prefix + rest.replace('.123Z', 'Z')],
    ['time', prefix + rest.replace('"time"', '"Time"')],
    ['source', prefix + rest.replace('recorder:nd7', 'Recorder:nd7')],
    ['source', prefix + rest.replace('"recorder:nd7"', '7')],
    ['kind', prefix + rest.replace('"seal"', '"Seal"')],
    ['data', prefix + rest.replace('{}}', '[]}')],
    ['data', prefix + rest.replace(',"data":{}', '')],
  ])('%s: %s', (problem, line) => {
    const view = readEntry(lineOf(line));
    expect(view.problem).toBe(problem);
    expect(view.class).toBe('unclassified');
  });

  test('members are read after unescaping', () => {
    const view = readEntry(lineOf(prefix + rest.replace('"kind":"seal"', '"k\\u0069nd":"s\\u0065al"')));
    expect(view).toMatchObject({ class: 'recorder', kind: 'seal' });
  });

  test('unknown members are ignored, malformed extras are left out', () => {
    const view = readEntry(lineOf(prefix + rest.replace('{}}', '{},"x":1,"peer":[1],"detached":[{"at":"/a"}]}')));
    expect(view.problem).toBeUndefined();
    expect(view.peer).toEqual([1]);
    expect(view.detached).toBeUndefined();
  });

  test('a number beyond 2^53 is a prefix, but no number to show', () => {
    const view = readEntry(lineOf(`{"v":1,"seq":9999999999999999,"prev":"${PREV}",${rest}`));
    expect(view.problem).toBeUndefined();
    expect(view.seq).toBeUndefined();
  });

  test('a line too long is not looked into', () => {
    expect(readEntry(new Uint8Array(MAX_LINE + 1))).toEqual({ class: 'unclassified', problem: 'json' });
  });

  test('nothing is ever thrown', () => {
    const good = lineOf(prefix + rest);
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(255), (at, byte) => {
        const line = good.slice();
        line[at] = byte;
        expect(['intent', 'effect', 'decision', 'recorder', 'unclassified']).toContain(readEntry(line).class);
      }),
      { numRuns: 2000 },
    );
  });
});
