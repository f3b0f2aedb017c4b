import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readHead } from '@nd7/journal';
import type { Home } from '@nd7/journal';
import type { HeartStatus, SessionMark } from '@nd7/ship';

function path(home: string): string {
  return join(home, 'run', 'heartbeat');
}

/** Keeps what became of the last heartbeat, for `nd7 status` when no recorder runs. A hint, not evidence: never throws, is not synced. */
export function keepHeartbeat(home: string, status: HeartStatus): void {
  try {
    writeFileSync(path(home), JSON.stringify(status), { mode: 0o600 });
  } catch {
    // The home is gone, or the disk is full: the gap entries tell of that.
  }
}

/** What was kept; undefined where nothing was, or it cannot be read. */
export function lastHeartbeat(home: string): HeartStatus | undefined {
  try {
    const kept = JSON.parse(readFileSync(path(home), 'utf8')) as Partial<HeartStatus> | null;
    const isOne =
      typeof kept?.interval_seconds === 'number' &&
      typeof kept.failures === 'number' &&
      (kept.last === null || typeof kept.last === 'string');
    return isOne ? (kept as HeartStatus) : undefined;
  } catch {
    return undefined;
  }
}

/** How far a session that is not open here stands by its head on the disk. */
export function markOf(home: Home, session: string): SessionMark[] {
  const head = readHead(home, session);
  return head === undefined ? [] : [{ session, entries: head.entries, head: head.hash }];
}
