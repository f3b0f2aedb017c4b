import { Members } from './members.js';

/** What an entry says of itself, unescaped; a member that is missing, no string or too long for its form is absent. */
export interface LastEntry {
  time?: string;
  source?: string;
  kind?: string;
}

/** Reads a line that has passed the strict check. */
export function lastOf(bytes: Uint8Array, start: number, end: number): LastEntry {
  const found: LastEntry = {};
  const members = new Members(bytes, start, end);
  while (members.next()) {
    for (const name of ['time', 'source', 'kind'] as const) {
      if (!members.keyIs(name)) continue;
      const text = members.text(80);
      if (text !== null) found[name] = text;
    }
    if (found.time !== undefined && found.source !== undefined && found.kind !== undefined) break;
  }
  return found;
}
