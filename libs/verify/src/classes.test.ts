import { blake3Hex, createKernel, referenceKernel, type LineKernel } from '@nd7/blake3';
import { genesis, PartWalk, type Label } from '@nd7/chain';
import { readEntry, utf8 } from '@nd7/entry';
import { verifySignatures } from '@nd7/signing';
import fc from 'fast-check';
import { addCounts, noEntries, Tally, type ClassCounts } from './classes.js';

const kernel = createKernel();
const session = 'classes';

/** A chain of entries whose members after the link are these. */
function chainOf(rests: readonly string[]): Uint8Array[] {
  let prev = genesis(session);
  return rests.map((rest, seq) => {
    const line = utf8(`{"v":1,"seq":${String(seq)},"prev":"${prev}",${rest}}`);
    prev = blake3Hex(line);
    return line;
  });
}

/** What a walk over them counts; the kernel keeps what it learned in earlier ones. */
async function counted(lines: readonly Uint8Array[], by: LineKernel = kernel): Promise<ClassCounts> {
  const tally = new Tally();
  const start = { entries: 0, head: genesis(session), key: null };
  const onLabel = (label: Label, count: number) => void tally.add(label, count);
  const walk = new PartWalk({ session, kernel: by, verify: verifySignatures, start, onLabel });
  await walk.push(new Uint8Array(Buffer.concat(lines.flatMap((line) => [line, Uint8Array.of(10)]))));
  expect(walk.finish()).toMatchObject({ good: lines.length, lines: lines.length });
  return tally.counts;
}

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
const anyMembers = fc
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

test('the classes of lines are those that readEntry says, whether the kernel knows their heads or not', async () => {
  const all = noEntries();
  const members = anyMembers.filter((rest) => {
    const { source, kind } = readEntry(utf8(`{"v":1,"seq":0,"prev":"${'ab'.repeat(32)}",${rest}}`));
    return source !== 'recorder:nd7' || kind !== 'seal'; // a walk wants to see its signature
  });
  const reference = referenceKernel();
  await fc.assert(
    fc.asyncProperty(fc.array(members, { minLength: 1, maxLength: 8 }), async (rests) => {
      const lines = chainOf([...rests, ...rests, ...rests]);
      const said = noEntries();
      for (const line of lines) said[readEntry(line).class]++;
      expect(await counted(lines)).toEqual(said);
      expect(await counted(lines, reference)).toEqual(said);
      addCounts(all, said);
    }),
    { numRuns: 1500 },
  );
  for (const count of Object.values(all)) expect(count).toBeGreaterThan(0);
}, 60_000);

test('a head that was learned is known with another time of its day, and with nothing that is no time', async () => {
  const rest = (clock: string) => `"time":"2026-11-29T${clock}Z","source":"intent:x","kind":"net","data":{}`;
  const clocks = ['00:00:00.000', '23:59:59.999', '19:41:00.123', '24:00:00.000', '12:60:00.000', '12:00:60.000'];
  const lines = chainOf([...clocks, '1a:00:00.000', '12.00:00.000', '12:00:00:000'].map(rest));
  expect(await counted(lines)).toMatchObject({ intent: 3, unclassified: 6 });
});

test('what is learned of a line outlives the buffer it stood in, and nothing behind its data decides', async () => {
  const at = (source: string, data = '{}') =>
    `"time":"2026-11-29T19:41:00.123Z","source":"${source}","kind":"net","data":${data}`;
  const lines = chainOf([at('intent:reused'), at('intent:reused', '{"source":"effect:x"}'), at('effect:reused')]);
  expect(await counted(lines)).toMatchObject({ intent: 2, effect: 1 });
  expect(await counted(chainOf([at('effect:reused'), at('effect:reused'), at('intent:reused')]))).toMatchObject({
    intent: 1,
    effect: 2,
  });
});

test('more kinds of lines than a kernel knows at a time are told apart', async () => {
  const rests = Array.from({ length: 40 }, (_, i) =>
    ['intent:a', 'effect:b', 'decision:c', 'recorder:nd7']
      .slice(0, 1 + (i % 4))
      .map(
        (source) =>
          `"time":"2026-11-29T19:41:00.123Z","source":"${source}","kind":"k${String(i)}","data":{"i":${String(i)}}`,
      ),
  ).flat();
  expect(await counted(chainOf([...rests, ...rests.toReversed(), ...rests]))).toEqual({
    intent: 120,
    effect: 90,
    decision: 60,
    recorder: 30,
    unclassified: 0,
  });
});

test('a session has ended when nothing but seals follows its end', () => {
  const tally = new Tally();
  const after = (source: string, kind: string, count = 1) => {
    tally.add({ class: source === 'recorder:nd7' ? 'recorder' : 'intent', source, kind }, count);
    return tally.ended;
  };
  expect(after('recorder:nd7', 'seal')).toBeUndefined();
  expect(after('intent:claude-code', 'session.end', 3)).toBe(false);
  expect(after('recorder:nd7', 'session.end')).toBe(true);
  expect(after('recorder:nd7', 'seal')).toBe(true);
  expect(after('recorder:nd7', 'session.resume')).toBe(false);
  expect(tally.counts).toEqual({ intent: 3, effect: 0, decision: 0, recorder: 4, unclassified: 0 });
});
