import type { AnyClass } from '../../ui/Evidence.js';
import type { Row } from '../../worker/row.js';
import { eachRow, type Item } from './story.js';

/** What rows are shown. `found`: entries whose bytes hold the text that is looked for; undefined while nothing is. */
export interface Filter {
  hidden: ReadonlySet<AnyClass>;
  kind?: string | undefined;
  tool?: string | undefined;
  found?: ReadonlySet<number> | undefined;
}

/** Nothing is filtered: everything is shown as it is. */
export function hidesNothing(filter: Filter): boolean {
  return (
    filter.hidden.size === 0 && filter.kind === undefined && filter.tool === undefined && filter.found === undefined
  );
}

export function passes(row: Row, filter: Filter): boolean {
  if (filter.hidden.has(row.class)) return false;
  if (filter.kind !== undefined && row.kind !== filter.kind) return false;
  if (filter.tool !== undefined && row.tool !== filter.tool) return false;
  return filter.found === undefined || filter.found.has(row.seq);
}

/** An item stays when one of its entries passes. */
export function itemPasses(item: Item, filter: Filter): boolean {
  let some = false;
  eachRow(item, (row) => {
    some ||= passes(row, filter);
  });
  return some;
}

export function countClasses(rows: readonly Row[]): Record<AnyClass, number> {
  const counts: Record<AnyClass, number> = { intent: 0, decision: 0, effect: 0, recorder: 0, unclassified: 0 };
  for (const row of rows) counts[row.class] += 1;
  return counts;
}

/** The values that a filter can take, in the alphabet's order. */
export function valuesOf(rows: readonly Row[], of: 'kind' | 'tool'): string[] {
  return [...new Set(rows.map((row) => row[of]).filter((value) => value !== undefined))].sort();
}
