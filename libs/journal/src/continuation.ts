import { statSync } from 'node:fs';
import { isSessionId } from '@nd7/entry';
import type { Home } from './home.js';
import { readFirst, startOf } from './read.js';

const LONGEST = 128;

/** `<id>.r<n>`, the id cut to fit (docs/format.md, "A chain that cannot go on"). */
export function continuationId(original: string, n: number): string {
  const suffix = `.r${n}`;
  return original.slice(0, LONGEST - suffix.length) + suffix;
}

/**
 * The chains that one asked-for id stands for: the first of them, and the newest, which is the one to append to. Which follows which stands in the
 * entries 0 (`data.continues`); a session that merely is called `<id>.r1` is none of them.
 */
export function chainOf(home: Home, asked: string): { original: string; session: string } {
  const original = firstOf(home, asked);
  let session = asked;
  for (let n = 1; ; n++) {
    const name = continuationId(original, n);
    if (isUnused(home, name)) return { original, session };
    const before = startOf(readFirst(home, name)).continues?.session;
    if (before !== undefined && firstOf(home, before) === original) session = name;
  }
}

/** The first continuation id of `original` that no chain bears yet. */
export function unusedContinuation(home: Home, original: string): string {
  for (let n = 1; ; n++) {
    const name = continuationId(original, n);
    if (isUnused(home, name)) return name;
  }
}

/** Goes back from continuation to what it continues. The number in each name must fall, so that no log can send this in circles. */
function firstOf(home: Home, session: string): string {
  let at = session;
  for (let limit = Infinity; ;) {
    const n = Number(/\.r([1-9][0-9]{0,8})$/.exec(at)?.[1] ?? 0);
    if (n === 0 || n >= limit) return at;
    const before = startOf(readFirst(home, at)).continues?.session;
    if (before === undefined) return at;
    limit = n;
    at = before;
  }
}

/** A folder that a crash left without an entry is as good as none. */
function isUnused(home: Home, session: string): boolean {
  return !isSessionId(session) || (statSync(home.logFile(session), { throwIfNoEntry: false })?.size ?? 0) === 0;
}
