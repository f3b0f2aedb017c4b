import { printEntry, readEntry } from '@nd7/entry';
import fc from 'fast-check';
import { classOf, Tally } from './classes.js';

const line = (rest: string) => new Uint8Array(Buffer.from(`{"v":1,"seq":3,"prev":"${'ab'.repeat(32)}",${rest}}`));

const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 2, maxLength: 2 });
const time = fc.oneof(
  fc
    .date({ min: new Date('0000-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
    .map((d) => d.toISOString()),
  fc.tuple(digits, digits, digits, digits).map(([d, h, m, s]) => `2026-02-${d}T${h}:${m}:${s}.000Z`),
  fc.tuple(digits, digits).map(([h, m]) => `2026-01-01T${h}:${m}:00.999Z`),
  fc.constantFrom(
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00.000',
    '2026-01-01t00:00:00.000Z',
    '2026-01-01T00.00.00.000Z',
    '2026-01-01T00:00:60.000Z',
    '',
  ),
);
const source = fc.constantFrom(
  'intent:claude-code',
  'effect:linux-seccomp',
  'decision:nd7',
  'recorder:nd7',
  'intent:',
  'Intent:x',
  'intent:x\n',
  `intent:${'x'.repeat(64)}`,
  `intent:${'x'.repeat(65)}`,
  'rumour:x',
);
const kind = fc.constantFrom(
  'tool.before',
  'seal',
  'session.end',
  'a',
  'A',
  'a..b',
  'x'.repeat(64),
  'x'.repeat(65),
  '',
);
const escaped = (text: string) =>
  JSON.stringify(text).replace(/[a-z0-9]/, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
const spelled = (text: fc.Arbitrary<string>) =>
  fc.oneof(
    { weight: 3, arbitrary: text.map((t) => JSON.stringify(t)) },
    text.map(escaped),
    fc.constantFrom('null', '7', '[]', '{}'),
  );
const members = fc
  .tuple(
    spelled(time),
    spelled(source),
    spelled(kind),
    fc.constantFrom('{}', '{"kind":"x","source":7}', '[]', '"{}"', 'null'),
    fc.nat({ max: 30 }),
    fc.boolean(),
  )
  .map(([t, s, k, d, drop, spell]) => {
    const all = [
      ['time', t],
      ['source', s],
      ['kind', k],
      ['data', d],
      ['x', '{"time":1}'],
    ];
    if (drop < 5) all.splice(drop, 1);
    const turned = [...all.slice(drop % all.length), ...all.slice(0, drop % all.length)];
    return turned.map(([name, value]) => `${spell ? escaped(name ?? '') : `"${name ?? ''}"`}:${value ?? ''}`).join(',');
  });

test('the class of a line is the one that readEntry says', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(members, (rest) => {
      const said = readEntry(line(rest)).class;
      seen.add(said);
      expect([classOf(line(rest)), rest]).toEqual([said, rest]);
    }),
    { numRuns: 5000 },
  );
  expect([...seen].sort()).toEqual(['decision', 'effect', 'intent', 'recorder', 'unclassified']);
});

test('what is remembered of a line outlives the buffer it stood in', () => {
  const at = (source: string) =>
    Buffer.from(line(`"time":"2026-11-29T19:41:00.123Z","source":"${source}","kind":"net","data":{}`));
  const buffer = at('intent:reused');
  expect(classOf(buffer)).toBe('intent');
  buffer.set(at('effect:reused'));
  expect(classOf(buffer)).toBe('effect');
  expect(classOf(at('intent:reused'))).toBe('intent');
});

test('a session has ended when nothing but seals follows its end', () => {
  const draft = { time: '2026-11-29T19:41:00.123Z', data: '{}' };
  const print = (source: string, kind: string) => printEntry(1, 'ab'.repeat(32), { ...draft, source, kind });
  const tally = new Tally();
  const after = (source: string, kind: string) => {
    const bytes = print(source, kind);
    tally.add({ bytes, start: 0, end: bytes.length, rest: bytes.indexOf(0x2c, bytes.indexOf(0x2c) + 80) });
    return tally.ended;
  };
  expect(after('recorder:nd7', 'seal')).toBeUndefined();
  expect(after('intent:claude-code', 'session.end')).toBe(false);
  expect(after('recorder:nd7', 'session.end')).toBe(true);
  expect(after('recorder:nd7', 'seal')).toBe(true);
  expect(after('recorder:nd7', 'session.resume')).toBe(false);
  expect(tally.counts).toEqual({ intent: 1, effect: 0, decision: 0, recorder: 4, unclassified: 0 });
});
