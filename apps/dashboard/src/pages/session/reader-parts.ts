import { useEffect, useState } from 'react';
import type { Row } from '../../worker/row.js';
import { findText, type SessionBytes } from './bytes.js';
import { eachRow, type Item } from './story.js';

/** The entry that is current where the address names none. */
export function firstSeq(first: Item | { seq: number } | undefined): number {
  return first?.seq ?? 0;
}

/** What a row of the list is known by while the log grows. */
export function itemKey(item: Item | undefined): string {
  return item === undefined ? '' : item.type === 'call' ? `call ${item.id}` : String(item.seq);
}

/** Whether an item was said by a subagent, and is drawn in its lane; the line that starts one stands outside. */
export function isInLane(item: Item | undefined): boolean {
  const agent = item?.type === 'call' ? item.agent : item?.row.agent;
  const starts = item?.type === 'line' && item.row.kind === 'agent.start';
  return agent !== undefined && !starts;
}

/** Where each entry stands in the list that is shown; entries of a call stand where the call does. */
export function indexBy(items: readonly Item[], rows: readonly { seq: number }[], byRow: boolean): Map<number, number> {
  const index = new Map<number, number>();
  if (byRow) rows.forEach((row, i) => index.set(row.seq, i));
  else
    items.forEach((item, i) => {
      eachRow(item, (row) => {
        if (!index.has(row.seq)) index.set(row.seq, i);
      });
    });
  return index;
}

/** The times that the drawn part of the story spans. */
export function windowOf(
  items: readonly Item[],
  [first, last]: readonly [number, number],
): { from: number; to: number } | undefined {
  if (last - first + 1 >= items.length) return undefined;
  let [from, to] = [Infinity, -Infinity];
  for (const item of items.slice(first, last + 1))
    eachRow(item, ({ time }) => {
      if (time === undefined) return;
      from = Math.min(from, time);
      to = Math.max(to, time);
    });
  return from > to ? undefined : { from, to };
}

/** The entries that hold the text; undefined while none is looked for, or until they are found. */
export function useFound(
  bytes: SessionBytes,
  rows: readonly Row[],
  text: string | undefined,
): ReadonlySet<number> | undefined {
  const [found, setFound] = useState<ReadonlySet<number>>();
  useEffect(() => {
    const words = text?.trim() ?? '';
    setFound(undefined);
    if (words === '') return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      findText(bytes, rows, words, stop.signal)
        .then(setFound)
        .catch(() => undefined);
    }, 200);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [bytes, rows, text]);
  return found;
}
