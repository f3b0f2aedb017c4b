import { describe, expect, it } from '@jest/globals';
import { isKind, isTime, parseSource } from '@nd7/entry';
import fc from 'fast-check';
import { EntryIndex } from './entry-index.js';

/** How a key or text may be spelled: as it is, or with its first character escaped. */
const spelled = (text: string, escaped: boolean): string =>
  escaped
    ? `"\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}${JSON.stringify(text).slice(2)}`
    : JSON.stringify(text);

const time = fc.oneof(
  fc
    .date({ min: new Date('0000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  fc.constantFrom(
    '2026-11-30T06:00:00.000Z',
    '2026-11-30T06:00:59.999Z',
    '2026-11-30T06:01:00.000Z',
    '2026-11-30T06:00:60.000Z',
    '2026-11-30T06:00:0x.000Z',
    '2026-11-30T06:00:01,000Z',
    '2026-11-30T06:00:01.00:Z',
    '2026-11-30T06:00:01.000z',
    '2026-11-31T06:00:01.000Z',
    '2026-11-30T06:00:01Z',
    '',
  ),
);
const source = fc.constantFrom(
  'intent:claude-code',
  'intent:codex',
  'recorder:nd7',
  'decision:policy',
  'effect:x',
  'effect:é',
  'intent',
  'x:y',
);
const kind = fc.constantFrom(
  'tool.before',
  'tool.after',
  'rule.allow',
  'rule.deny',
  'seal',
  'session.start',
  'Tool',
  'tool-',
  'é'.repeat(5),
  '',
);
const data = fc.oneof(
  fc.record(
    {
      tool_name: fc.constantFrom('Bash', 'Read', 'Edit', 'é', 'a b', 'mcp__x__y'),
      tool: fc.constantFrom('Grep', 7),
      agent: fc.constantFrom('codex', 'Ä'),
      verdict: fc.constantFrom('allow', 'No'),
      next: fc.constantFrom('a'.repeat(64), 'a'.repeat(63)),
    },
    { requiredKeys: [] },
  ),
  fc.constantFrom(1, 'text', null, []),
);
const line = fc.record({
  time,
  source,
  kind,
  data,
  escapes: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
  order: fc.shuffledSubarray([0, 1, 2, 3]),
});

const TOOL = /^[A-Za-z0-9_.:/-]{1,128}$/;
type Line = typeof line extends fc.Arbitrary<infer T> ? T : never;

function bytesOf(seq: number, { escapes, order, ...values }: Line): Uint8Array {
  const members = (['time', 'source', 'kind', 'data'] as const).map((key, i) => {
    const value = values[key];
    const isText = key !== 'data' && typeof value === 'string' && value !== '';
    return `${spelled(key, escapes[i] === true)}: ${isText ? spelled(value, escapes[i + 4] === true) : JSON.stringify(value)}`;
  });
  const chosen = order.map((place) => members[place]).concat('"more": {"time": "no"}');
  return new TextEncoder().encode(`{"v":1,"seq":${String(seq)},"prev":"${'0'.repeat(64)}",${chosen.join(' , ')}}`);
}

/** The first of the members that is missing or not of its form, by parsing the line whole. */
function problemOf(text: string): string | undefined {
  const entry = JSON.parse(text) as Record<string, unknown>;
  const is = (key: string, test: (value: string) => unknown): boolean =>
    typeof entry[key] === 'string' && test(entry[key]) !== false && test(entry[key]) !== undefined;
  if (!is('time', isTime)) return 'time';
  if (!is('source', parseSource)) return 'source';
  if (!is('kind', isKind)) return 'kind';
  return typeof entry['data'] === 'object' && entry['data'] !== null && !Array.isArray(entry['data'])
    ? undefined
    : 'data';
}

describe('the index of a segment', () => {
  it('says what parsing each line whole says, whatever the lines before were and however they are spelled', () => {
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 0, max: 20_000 }),
        (lines, from) => {
          const index = new EntryIndex();
          const texts = lines.map((one, i) => {
            const bytes = bytesOf(from + i, one);
            index.add(from + i, bytes);
            return new TextDecoder().decode(bytes);
          });
          const problems = texts.flatMap((text, i) => {
            const member = problemOf(text);
            return member === undefined ? [] : [{ seq: from + i, member }];
          });
          expect(index.problems).toEqual(problems);
          const good = texts
            .filter((text) => problemOf(text) === undefined)
            .map((text) => JSON.parse(text) as Record<string, string>);
          const { times, label, labels, counts } = index.finish();
          expect(times).toEqual(good.map((entry) => Date.parse(entry['time'] as string)));
          const tuples = label.map((number) => labels.slice(number * 5 - 5, number * 5));
          expect(tuples.map(([evidence, its]) => [evidence, its])).toEqual(
            good.map((entry) => [parseSource(entry['source'] as string)?.class, entry['kind']]),
          );
          expect(tuples.map(([, , , tool]) => tool)).toEqual(
            good.map((entry) => {
              if (!/^(tool|rule)/.test(entry['kind'] as string)) return '';
              const said = Object.entries(entry['data'] as unknown as Record<string, unknown>).find(
                ([key]) => key === 'tool_name' || key === 'tool',
              )?.[1];
              return typeof said === 'string' && TOOL.test(said) ? said : '';
            }),
          );
          expect(counts.reduce((a, b) => a + b)).toBe(good.length);
        },
      ),
      { numRuns: 500 },
    );
  });
});
