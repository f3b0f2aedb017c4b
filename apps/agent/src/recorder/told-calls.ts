import type { Home } from '@nd7/journal';
import { lastEntries } from './firing.js';

/** Ids of the tool calls that hooks told of, among the newest entries of a session's log. */
export function callsToldOf(home: Home, session: string): string[] {
  return lastEntries(home, session, '"tool_use_id"').flatMap(({ class: of, data }) => {
    if (of !== 'intent' || data === undefined) return [];
    const { tool_use_id: id, tool_calls: batch } = JSON.parse(data) as { tool_use_id?: unknown; tool_calls?: unknown };
    const inBatch = Array.isArray(batch)
      ? batch.map((call: unknown) => (call as { tool_use_id?: unknown } | null)?.tool_use_id)
      : [];
    return [id, ...inBatch].filter((one) => typeof one === 'string');
  });
}

/** When a hook spoke last by a session's log, ms; 0 where none is among its newest entries. */
export function lastToldAt(home: Home, session: string): number {
  const last = lastEntries(home, session).findLast(({ class: of }) => of === 'intent');
  return Date.parse(last?.time ?? '') || 0;
}
