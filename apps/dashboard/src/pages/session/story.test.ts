import fc from 'fast-check';
import type { Row } from '../../worker/row.js';
import { axisOf } from './axis.js';
import { countClasses, itemPasses, valuesOf } from './filter.js';
import { callState, needsLook, rowsOf, tellStory } from './story.js';

const row = (seq: number, more: Partial<Row> = {}): Row => ({
  seq,
  start: seq * 100,
  end: seq * 100 + 99,
  class: 'intent',
  kind: 'notice',
  time: 1000 * seq,
  ...more,
});
const before = (seq: number, call: string, more: Partial<Row> = {}) =>
  row(seq, { kind: 'tool.before', tool: 'Bash', call, ...more });
const after = (seq: number, call: string) => row(seq, { kind: 'tool.after', tool: 'Bash', call });

describe('the story', () => {
  it('pairs calls that run side by side by their ids, not by their order', () => {
    const items = tellStory([before(0, 'a'), before(1, 'b'), after(2, 'b'), after(3, 'a')]);
    expect(items.map((item) => rowsOf(item).map((one) => one.seq))).toEqual([
      [0, 3],
      [1, 2],
    ]);
  });

  it('puts decisions and effects of a call beside it, and leaves those of no call where they stand', () => {
    const items = tellStory([
      before(0, 'a'),
      row(1, { class: 'decision', kind: 'rule.allow', call: 'a' }),
      row(2, { class: 'effect', kind: 'exec', call: 'a' }),
      row(3, { class: 'effect', kind: 'net' }),
    ]);
    expect(items).toMatchObject([
      { type: 'call', decisions: [{ seq: 1 }], effects: [{ seq: 2 }] },
      { type: 'line', seq: 3 },
    ]);
  });

  it('gives a call that failed before it ran the report of its batch', () => {
    const [call] = tellStory([before(0, 'a'), row(1, { kind: 'tool.batch', calls: ['a'] })]);
    expect(call?.type === 'call' && callState(call, true)).toBe('reported');
  });

  it('shows a batch that reports calls nobody announced', () => {
    expect(tellStory([row(0, { kind: 'tool.batch', calls: ['never-seen'] })])).toMatchObject([
      { type: 'line', seq: 0 },
    ]);
  });

  it.each([
    [[before(0, 'a'), after(1, 'a')], false, 'returned'],
    [[before(0, 'a'), row(1, { kind: 'tool.failed', call: 'a' })], false, 'failed'],
    [[before(0, 'a')], false, 'running'],
    [[before(0, 'a')], true, 'never'],
  ] as const)('%#: a call is %s', (rows, isOver, state) => {
    const [call] = tellStory(rows);
    expect(call?.type === 'call' && callState(call, isOver)).toBe(state);
  });

  it('never takes a line that is unclassified for part of a call, and lets only intent speak', () => {
    const items = tellStory([
      before(0, 'a'),
      row(1, { class: 'unclassified', kind: 'tool.after', call: 'a' }),
      row(2, { class: 'recorder', kind: 'prompt', text: 'hello' }),
      row(3, { kind: 'prompt', text: 'hello' }),
    ]);
    expect(items.map((item) => item.type)).toEqual(['call', 'line', 'line', 'say']);
  });

  it('tells every entry once, in the order in which it or its call began', () => {
    const kind = fc.constantFrom('tool.before', 'tool.after', 'tool.failed', 'prompt', 'seal', 'notice', 'exec');
    const some = fc.record({
      kind,
      class: fc.constantFrom('intent', 'effect', 'decision', 'recorder', 'unclassified'),
      call: fc.constantFrom('a', 'b', undefined),
      text: fc.constantFrom('x', undefined),
    });
    fc.assert(
      fc.property(fc.array(some, { maxLength: 40 }), (parts) => {
        const rows = parts.map((part, seq) => row(seq, part as Partial<Row>));
        const items = tellStory(rows);
        expect(items.flatMap((item) => rowsOf(item).map((one) => one.seq)).sort((a, b) => a - b)).toEqual(
          rows.map((one) => one.seq),
        );
        expect(items.map((item) => item.seq)).toEqual(items.map((item) => item.seq).toSorted((a, b) => a - b));
      }),
    );
  });

  it('sends a reader to lines that are none, gaps, alarms and refusals', () => {
    expect(
      [
        row(0),
        row(1, { class: 'unclassified' }),
        row(2, { class: 'recorder', kind: 'gap' }),
        row(3, { kind: 'gap' }),
        row(4, { class: 'decision', kind: 'rule.deny' }),
      ]
        .filter(needsLook)
        .map((one) => one.seq),
    ).toEqual([1, 2, 4]);
  });
});

describe('filters', () => {
  const items = tellStory([
    before(0, 'a'),
    after(1, 'a'),
    row(2, { class: 'effect', kind: 'exec', call: 'a' }),
    row(3, { class: 'recorder', kind: 'seal' }),
  ]);
  const shown = (filter: Partial<Parameters<typeof itemPasses>[1]>) =>
    items.filter((item) => itemPasses(item, { hidden: new Set(), ...filter })).map((item) => item.seq);

  it('keep an item while one of its entries passes', () => {
    expect(shown({ hidden: new Set(['intent']) })).toEqual([0, 3]);
    expect(shown({ hidden: new Set(['intent', 'effect']) })).toEqual([3]);
    expect(shown({ kind: 'tool.after' })).toEqual([0]);
    expect(shown({ tool: 'Read' })).toEqual([]);
    expect(shown({ found: new Set([2]) })).toEqual([0]);
  });

  it('know their values and counts', () => {
    const rows = items.flatMap(rowsOf);
    expect(valuesOf(rows, 'kind')).toEqual(['exec', 'seal', 'tool.after', 'tool.before']);
    expect(countClasses(rows)).toEqual({ intent: 2, decision: 0, effect: 1, recorder: 1, unclassified: 0 });
  });
});

describe('the time axis', () => {
  it('draws no more marks than there are pixels, whatever the number of entries', () => {
    const items = tellStory(Array.from({ length: 20_000 }, (_, seq) => row(seq, { time: seq * 7 })));
    const axis = axisOf(items, 1000);
    expect(axis?.marks.length).toBeLessThanOrEqual(1000);
    expect(axis?.ticks.length).toBeGreaterThan(2);
    expect(axis?.ticks.length).toBeLessThan(12);
  });

  it('stands a single moment', () => {
    expect(axisOf(tellStory([row(0, { time: 5 })]), 1000)).toMatchObject({ from: 5, to: 5, marks: [{ x: 0 }] });
    expect(axisOf([], 1000)).toBeUndefined();
  });

  it('keeps every mark inside, with a clock that runs backwards', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1e13 }), { minLength: 1, maxLength: 60 }), (times) => {
        const axis = axisOf(tellStory(times.map((time, seq) => before(seq, `c${String(seq % 7)}`, { time }))), 900);
        for (const mark of axis?.marks ?? []) expect(mark.x >= 0 && mark.x + mark.width <= 902).toBe(true);
      }),
    );
  });
});
