import { listSessions } from '@nd7/journal';
import type { Home } from '@nd7/journal';
import { safeLine } from '../show/safe.js';
import { lastEntries } from './firing.js';

/** Gaps and alarms among the newest entries of the newest sessions. */
export interface Troubles {
  gaps: number;
  alarms: number;
  last?: { kind: 'gap' | 'alarm'; session: string; entry: number; time: string; text: string };
}

/** `2 alarms, 1 gap`. */
export function counted({ gaps, alarms }: Troubles): string {
  const of = (count: number, word: string): string => `${String(count)} ${word}${count === 1 ? '' : 's'}`;
  return `${of(alarms, 'alarm')}, ${of(gaps, 'gap')}`;
}

/** How far back is looked: the newest sessions, the end of each. */
const SESSIONS = 20;

/** What recorders have told of lately that a person should look into. Nothing of it is verified. */
export function troublesLately(home: Home): Troubles {
  const found: Troubles = { gaps: 0, alarms: 0 };
  for (const { session } of listSessions(home).slice(0, SESSIONS))
    for (const { source, kind, seq = 0, time = '', data = '' } of lastEntries(home, session, '"recorder:nd7"')) {
      if (source !== 'recorder:nd7' || (kind !== 'gap' && kind !== 'alarm')) continue;
      found[kind === 'gap' ? 'gaps' : 'alarms']++;
      if (time >= (found.last?.time ?? ''))
        found.last = { kind, session, entry: seq, time, text: safeLine(data.slice(0, 200)) };
    }
  return found;
}
