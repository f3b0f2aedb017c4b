import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { HeartStatus } from '@nd7/ship';
import type { Io } from '../cli/io.js';
import type { Fired } from '../recorder/firing.js';

/** What is not yet under a receipt, over all sessions of the home. */
interface Unshipped {
  entries: number;
  sessions: number;
  /** Age of the oldest log that has such entries, by its last write; 0 when there are none. */
  seconds: number;
}

/** What the recorder says of shipping one session. */
interface ShipState {
  session: string;
  /** Why it was given up. */
  code?: string;
  problem?: string;
}

/** `nd7 status`: does the recorder run, do hooks really fire, what is not shipped. */
export function register(program: Command, io: Io): void {
  program
    .command('status')
    .description('is the recorder running, which hooks really fire, what is not shipped yet')
    .action(() => status(io));
}

async function status(io: Io): Promise<void> {
  const { askJson } = await import('../recorder/client.js');
  const { firedLately } = await import('../recorder/firing.js');
  const { attachedFiles } = await import('@nd7/hooks');
  const { Home, listSessions } = await import('@nd7/journal');
  const { heartbeatOf } = await import('../recorder/heartbeat-check.js');
  const { counted, troublesLately } = await import('../recorder/troubles.js');
  const home = new Home(io.home);
  const recorder = await askJson(io.home, 'status', {}, 5_000);
  const { attachedForEverybody } = await import('../recorder/managed.js');
  const everybody = attachedForEverybody(io.env, io.cwd);
  const attached = [...new Set([...attachedFiles(io.home), ...(everybody === undefined ? [] : [everybody])])];
  const fired = firedLately(home);
  const enrolled = statSync(home.vaultFile, { throwIfNoEntry: false }) !== undefined;
  const unshipped = await unshippedOf(home);
  const receipt = await lastReceipt(home);
  const sessions = listSessions(home).length;
  const heartbeat = enrolled ? heartbeatOf(io.home, recorder) : undefined;
  const troubles = troublesLately(home);
  if (io.isJson) {
    io.json({
      home: io.home,
      recorder: recorder ?? null,
      attached,
      sessions,
      hooks: fired,
      enrolled,
      unshipped: enrolled ? unshipped : null,
      last_receipt: receipt ?? null,
      heartbeat: heartbeat ?? null,
      troubles,
    });
    return;
  }
  if (recorder === undefined) io.out(`Recorder   ${io.paint('yellow', 'not running')} (the next hook starts it)`);
  else {
    const open = recorder['sessions'] as unknown[];
    io.out(
      `Recorder   ${io.paint('green', 'running')}, process ${String(recorder['pid'])}, ${open.length} open ${open.length === 1 ? 'session' : 'sessions'}, recording ${String(recorder['recording'])}`,
    );
  }
  io.out(`Home       ${io.home}, ${sessions} ${sessions === 1 ? 'session' : 'sessions'}`);
  io.out(
    `Attached   ${attached.length === 0 ? io.paint('yellow', 'nowhere: run `nd7 init`') : attached.map((file) => (file === everybody ? `${file} (for everybody)` : file)).join(', ')}`,
  );
  showFired(io, fired);
  if (!enrolled) io.out('Vault      this machine is not enrolled: what is recorded rests on this disk alone');
  else {
    const behind =
      unshipped.entries === 0
        ? io.paint('green', 'everything is shipped')
        : `${unshipped.entries} entries of ${unshipped.sessions} ${unshipped.sessions === 1 ? 'session' : 'sessions'} not shipped, for ${unshipped.seconds} s`;
    io.out(
      `Vault      ${behind}${receipt === undefined ? '; no receipt yet' : `; last receipt ${receipt.time} (${receipt.session}, ${receipt.entries} entries)`}`,
    );
    const { sessions: shipping = [] } = (recorder?.['ship'] ?? {}) as { sessions?: ShipState[] };
    for (const { session, code, problem } of shipping.filter((one) => one.problem !== undefined).slice(0, 10))
      io.out(`           ${io.paint('red', `${session}: ${code === undefined ? '' : `${code}: `}${problem}`)}`);
    await showHeartbeat(io, heartbeat, recorder !== undefined);
  }
  const { alarms, last } = troubles;
  if (last !== undefined)
    io.out(
      `Alarms     ${io.paint(alarms > 0 ? 'red' : 'yellow', counted(troubles))} in the newest sessions; the last ${last.time} in ${last.session}, entry ${last.entry}: ${last.text}`,
    );
}

async function showHeartbeat(io: Io, beat: HeartStatus | undefined, isRunning: boolean): Promise<void> {
  const { AWAY } = await import('../recorder/heartbeat-check.js');
  if (beat?.last === undefined || beat.last === null) io.out('Heartbeat  the vault has taken none yet');
  else {
    const seconds = Math.max(0, Math.round((Date.now() - Date.parse(beat.last)) / 1000));
    const after =
      beat.away !== undefined
        ? `announced: ${AWAY[beat.away]}`
        : isRunning
          ? `every ${beat.interval_seconds} s`
          : io.paint('red', 'and no recorder runs: the vault misses this machine');
    io.out(`Heartbeat  last taken ${seconds} s ago, ${after}`);
  }
  if (beat !== undefined && beat.failures > 0)
    io.out(`           ${io.paint('red', `${beat.failures} since then were not taken: ${beat.problem ?? ''}`)}`);
}

function showFired(io: Io, fired: readonly Fired[]): void {
  if (fired.length === 0) {
    io.out('Hooks      none has fired yet');
    return;
  }
  io.out('Hooks that fired lately:');
  for (const { agent, event, last_time, entries, session } of fired.slice(0, 40))
    io.out(
      `  ${agent.padEnd(12)} ${event.slice(0, 40).padEnd(22)} ${last_time}  ${String(entries).padStart(5)}  ${session}`,
    );
}

async function unshippedOf(home: import('@nd7/journal').Home): Promise<Unshipped> {
  const { listSessions, receiptCounts } = await import('@nd7/journal');
  const sum: Unshipped = { entries: 0, sessions: 0, seconds: 0 };
  for (const { session, head, modified } of listSessions(home)) {
    const covered = receiptCounts(home, session).at(-1) ?? 0;
    const missing = (head?.entries ?? 0) - covered;
    if (missing <= 0) continue;
    sum.entries += missing;
    sum.sessions++;
    sum.seconds = Math.max(sum.seconds, Math.max(0, Math.round((Date.now() - modified) / 1000)));
  }
  return sum;
}

async function lastReceipt(
  home: import('@nd7/journal').Home,
): Promise<{ session: string; entries: number; time: string } | undefined> {
  const { listSessions, receiptCounts } = await import('@nd7/journal');
  let newest: { session: string; entries: number; time: string } | undefined;
  for (const { session } of listSessions(home)) {
    const entries = receiptCounts(home, session).at(-1);
    if (entries === undefined) continue;
    const time = statSync(join(home.receiptsDir(session), `${entries}.tlog-proof`)).mtime.toISOString();
    if (newest === undefined || time > newest.time) newest = { session, entries, time };
  }
  return newest;
}
