import { lastHeartbeat } from './heartbeat.js';
import type { HeartStatus } from '@nd7/ship';
import type { Check } from './checks.js';

/** A clock that differs by more makes times in the log and at the vault tell two stories; at 300 s the vault refuses every request. */
const CLOCK_SECONDS = 60;

/** The newest heartbeat of this machine: as the recorder has it, or as the one before kept it; undefined where there was none. */
export function heartbeatOf(home: string, recorder: Record<string, unknown> | undefined): HeartStatus | undefined {
  const ship = recorder?.['ship'] as { heartbeat?: HeartStatus } | null | undefined;
  return ship?.heartbeat ?? lastHeartbeat(home);
}

/** Whether the vault hears of this machine, for `nd7 doctor`. */
export function heartbeatCheck(home: string, recorder: Record<string, unknown> | undefined): Check {
  const name = 'heartbeat';
  const beat = heartbeatOf(home, recorder);
  const since = beat?.last ?? undefined;
  if (beat !== undefined && beat.failures > 0)
    return {
      name,
      state: 'bad',
      text: `the vault has taken none ${since === undefined ? 'yet' : `since ${since}`} (${beat.failures} tries): ${beat.problem ?? 'no reason is known'}`,
      next: 'see that the vault can be reached and the clock is right; until then the vault takes this machine for quiet',
    };
  if (since === undefined)
    return {
      name,
      state: 'note',
      text: 'none was sent yet',
      next: 'a recorder sends the first one as soon as it runs',
    };
  if (beat?.away === undefined && recorder === undefined)
    return {
      name,
      state: 'bad',
      text: `the last was taken at ${since}, no rest was announced, and no recorder runs: it was killed`,
      next: 'the next hook starts a new one; until then the vault takes this machine for quiet',
    };
  const ahead = beat?.clock_ahead_seconds ?? 0;
  if (Math.abs(ahead) > CLOCK_SECONDS)
    return {
      name,
      state: 'note',
      text: `taken at ${since}, and this machine's clock is ${Math.abs(ahead)} s ${ahead > 0 ? 'ahead of' : 'behind'} the vault's`,
      next: 'set the clock (NTP): from 300 s on the vault refuses what this machine sends',
    };
  return {
    name,
    state: 'ok',
    text: `the last was taken at ${since}${beat?.away === undefined ? '' : `; announced: ${AWAY[beat.away]}`}`,
  };
}

/** What an announcement means, for people. */
export const AWAY: Record<NonNullable<HeartStatus['away']>, string> = {
  idle: 'at rest, nothing to do',
  stopped: 'the recorder was stopped',
  sleep: 'asleep',
  uninstalled: 'nd7 was detached',
};
