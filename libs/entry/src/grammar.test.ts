import fc from 'fast-check';
import { formatTime, isKind, isSessionId, isTime, parseSource } from './grammar.js';

test.each(['a', '0', 'A.b_c-d', 'x'.repeat(128), '3f0c…'.replace('…', '-1')])('%j may name a session', (id) =>
  expect(isSessionId(id)).toBe(true),
);
test.each(['', '.', '..', '-a', '_a', 'a/b', 'a\\b', 'a b', 'a\n', '\na', 'a\0', 'ä', 'x'.repeat(129), '../a', 'a:b'])(
  '%j may not',
  (id) => expect(isSessionId(id)).toBe(false),
);

test('a source has a class and a producer', () => {
  expect(parseSource('intent:claude-code')).toEqual({ class: 'intent', producer: 'claude-code' });
  expect(parseSource(`effect:${'x'.repeat(64)}`)?.class).toBe('effect');
  for (const source of ['', 'intent', 'intent:', 'Intent:a', 'other:a', 'intent:A', 'intent:-a', 'intent:a b', 'intent:a\n', ' intent:a', `intent:${'x'.repeat(65)}`]) {
    expect(parseSource(source)).toBeUndefined();
  } // prettier-ignore
});

test('kinds', () => {
  for (const kind of ['prompt', 'tool.before', 'a1.b2-3', 'x'.repeat(64)]) expect(isKind(kind)).toBe(true);
  for (const kind of ['', '1a', 'A', 'a.', '.a', 'a..b', 'a_b', 'a-', 'a b', 'a\n', 'x'.repeat(65)])
    expect(isKind(kind)).toBe(false);
  // A form that backtracks badly would not come back from this one.
  expect(isKind(`${'a'.repeat(60)}!`)).toBe(false);
});

test('times', () => {
  for (const time of [
    '2026-11-29T19:41:00.123Z',
    '2024-02-29T00:00:00.000Z',
    '2000-02-29T23:59:59.999Z',
    '0000-01-01T00:00:00.000Z',
  ])
    expect(isTime(time)).toBe(true);
  for (const time of [
    '', '2026-11-29T19:41:00Z', '2026-11-29T19:41:00.12Z', '2026-11-29T19:41:00.123+00:00', '2026-11-29t19:41:00.123z', '2026-13-01T00:00:00.000Z',
    '2026-00-01T00:00:00.000Z', '2026-04-31T00:00:00.000Z', '2026-02-29T00:00:00.000Z', '1900-02-29T00:00:00.000Z', '2026-01-00T00:00:00.000Z',
    '2026-01-01T24:00:00.000Z', '2026-01-01T00:60:00.000Z', '2026-01-01T00:00:60.000Z', '2026-11-29T19:41:00.123Z\n', ' 2026-11-29T19:41:00.123Z',
  ]) expect(isTime(time)).toBe(false); // prettier-ignore
});

test('every moment of four-digit years is written as a time that reads as the same moment', () => {
  fc.assert(
    fc.property(
      fc.date({
        min: new Date('0000-01-01T00:00:00Z'),
        max: new Date('9999-12-31T23:59:59.999Z'),
        noInvalidDate: true,
      }),
      (date) => {
        const text = formatTime(date.getTime());
        expect(isTime(text)).toBe(true);
        expect(Date.parse(text)).toBe(date.getTime());
      },
    ),
  );
  expect(() => formatTime(Number.NaN)).toThrow(RangeError);
  expect(() => formatTime(1e15)).toThrow(RangeError);
});
