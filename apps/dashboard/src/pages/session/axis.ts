import { eachRow, type Item } from './story.js';
import type { Row } from '../../worker/row.js';

export type Lane = 'main' | 'subagents' | 'effects' | 'decisions';
export const LANES: readonly Lane[] = ['main', 'subagents', 'effects', 'decisions'];

/** A mark on the axis, in pixels; `seq` is the entry a click leads to. */
export interface Mark {
  lane: Lane;
  x: number;
  width: number;
  seq: number;
}

export interface Axis {
  from: number;
  to: number;
  marks: Mark[];
  ticks: { x: number; at: number }[];
  /** Labels need seconds, or even thousandths. */
  detail: 'minutes' | 'seconds' | 'millis';
}

const S = 1000;
const MIN = 60 * S;
const H = 60 * MIN;
const STEPS = [
  10,
  20,
  50,
  100,
  200,
  500,
  S,
  2 * S,
  5 * S,
  10 * S,
  15 * S,
  30 * S,
  MIN,
  2 * MIN,
  5 * MIN,
  10 * MIN,
  15 * MIN,
  30 * MIN,
  H,
  2 * H,
  6 * H,
  12 * H,
  24 * H,
  7 * 24 * H,
];

/**
 * The whole session on one time axis of `width` pixels. The times are the recorder's and may run backwards: a mark stands where its own time
 * puts it. Marks of one lane that fall on the same pixel are one, so that a hundred thousand entries cost no more than the pixels.
 */
export function axisOf(items: readonly Item[], width: number): Axis | undefined {
  let [from, to] = [Infinity, -Infinity];
  const stretch = (row: Row) => {
    if (row.time === undefined) return;
    from = Math.min(from, row.time);
    to = Math.max(to, row.time);
  };
  for (const item of items) eachRow(item, stretch);
  if (from > to) return undefined;
  const span = Math.max(to - from, 1);
  const place = (time: number) => ((time - from) / span) * (width - 4);
  const marks = new Map<string, Mark>();
  const put = (lane: Lane, row: Row | undefined, end?: number) => {
    if (row?.time === undefined) return;
    const x = Math.round(place(row.time));
    const until = end === undefined ? x : Math.round(place(Math.max(end, row.time)));
    const mark = { lane, x, width: Math.max(2, until - x), seq: row.seq };
    const key = `${lane} ${String(x)}`;
    const there = marks.get(key);
    if (there === undefined || there.width < mark.width) marks.set(key, { ...mark, seq: there?.seq ?? mark.seq });
  };
  for (const item of items) {
    if (item.type === 'call') {
      const first = item.before ?? item.after ?? item.failed;
      put(item.agent === undefined ? 'main' : 'subagents', first, (item.after ?? item.failed ?? item.batch)?.time);
      for (const row of item.effects) put('effects', row);
      for (const row of item.decisions) put('decisions', row);
    } else if (item.row.class === 'effect') put('effects', item.row);
    else if (item.row.class === 'decision') put('decisions', item.row);
    else if (item.row.class === 'intent') put(item.row.agent === undefined ? 'main' : 'subagents', item.row);
  }
  const step = STEPS.find((one) => span / one <= Math.max(2, width / 150)) ?? span;
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push({ at, x: place(at) });
  return {
    from,
    to,
    marks: [...marks.values()],
    ticks,
    detail: step >= MIN ? 'minutes' : step >= S ? 'seconds' : 'millis',
  };
}
