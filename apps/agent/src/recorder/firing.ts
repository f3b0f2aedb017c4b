import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { EntryView } from '@nd7/entry';
import { readEntry } from '@nd7/entry';
import { describeEntry } from '@nd7/hooks';
import { listSessions } from '@nd7/journal';
import type { Home } from '@nd7/journal';

/** A hook event that was heard, and when last. */
export interface Fired {
  agent: string;
  event: string;
  last_time: string;
  session: string;
  /** Entries of it among those looked at. */
  entries: number;
}

/** How far back is looked: the newest sessions, the end of each. */
const SESSIONS = 20;
const TAIL = 512 * 1024;

/** The hook events that really fired lately, newest first: what stands in the logs, not what is configured. */
export function firedLately(home: Home): Fired[] {
  const fired = new Map<string, Fired>();
  for (const { session } of listSessions(home).slice(0, SESSIONS))
    for (const view of lastEntries(home, session)) {
      if (view.class !== 'intent' || view.producer === undefined || view.time === undefined) continue;
      const event = describeEntry(view).event ?? view.kind ?? 'unknown';
      const key = `${view.producer}\n${event}`;
      const known = fired.get(key) ?? { agent: view.producer, event, last_time: '', session, entries: 0 };
      known.entries++;
      if (view.time > known.last_time) Object.assign(known, { last_time: view.time, session });
      fired.set(key, known);
    }
  return [...fired.values()].sort((a, b) => (a.last_time < b.last_time ? 1 : -1));
}

/**
 * The newest entries of a session, from the last bytes of its log, only those whose line has `mention` in it where it is given; a session that
 * cannot be read has none.
 */
export function lastEntries(home: Home, session: string, mention?: string): EntryView[] {
  let fd: number | undefined;
  try {
    fd = openSync(home.logFile(session), 'r');
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, TAIL));
    readSync(fd, bytes, 0, bytes.length, size - bytes.length);
    const whole = size <= TAIL ? 0 : bytes.indexOf(10) + 1;
    return lines(bytes.subarray(whole))
      .filter((line) => mention === undefined || line.includes(mention))
      .map((line) => readEntry(line));
  } catch {
    return [];
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function lines(bytes: Buffer): Buffer[] {
  const out: Buffer[] = [];
  for (let at = 0, end = bytes.indexOf(10); end >= 0; at = end + 1, end = bytes.indexOf(10, at))
    out.push(bytes.subarray(at, end));
  return out;
}
