import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSessionId } from '@nd7/entry';
import { makeFolders } from '@nd7/kernel';
import { bootId } from './peer.js';
import type { Client } from './peer.js';

/** What a later recorder must know of a session that was open when this one died. */
export interface OpenMark {
  session: string;
  agent: string;
  client: Client | undefined;
  /** Whether a hook has named it. */
  isNamed: boolean;
}

function folder(home: string): string {
  return join(home, 'run', 'open');
}

/** Marks a session as open. A hint, not evidence: it is not synced, and losing it costs only the session's closing entry. */
export function markOpen(home: string, mark: OpenMark): void {
  makeFolders(folder(home), 0o700);
  writeFileSync(join(folder(home), mark.session), JSON.stringify({ ...mark, boot: bootId() }), { mode: 0o600 });
}

export function markClosed(home: string, session: string): void {
  rmSync(join(folder(home), session), { force: true });
}

/** The sessions that were open; a client of an earlier boot is given as undefined. Unreadable marks are removed. */
export function openMarks(home: string): OpenMark[] {
  let names: string[];
  try {
    names = readdirSync(folder(home)).filter(isSessionId);
  } catch {
    return [];
  }
  return names.flatMap((session) => {
    try {
      const mark = JSON.parse(readFileSync(join(folder(home), session), 'utf8')) as Record<string, unknown>;
      const client = mark['client'] as { pid?: unknown; start?: unknown } | undefined;
      const known = mark['boot'] === bootId() && typeof client?.pid === 'number' && typeof client.start === 'string';
      return [
        {
          session,
          agent: typeof mark['agent'] === 'string' ? mark['agent'] : 'unknown',
          client: known ? { pid: client.pid as number, start: client.start as string } : undefined,
          isNamed: known && mark['isNamed'] === true,
        },
      ];
    } catch {
      markClosed(home, session);
      return [];
    }
  });
}
