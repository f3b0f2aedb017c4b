import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { Io } from '../cli/io.js';
import type { Fired } from '../recorder/firing.js';

/** What is not yet under a receipt, over all sessions of the home. */
interface Unshipped {
  entries: number;
  sessions: number;
  /** Age of the oldest log that has such entries, by its last write; 0 when there are none. */
  seconds: number;
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
  const home = new Home(io.home);
  const recorder = await askJson(io.home, 'status', {}, 5_000);
  const attached = attachedFiles(io.home);
  const fired = firedLately(home);
  const enrolled = statSync(home.vaultFile, { throwIfNoEntry: false }) !== undefined;
  const unshipped = await unshippedOf(home);
  const receipt = await lastReceipt(home);
  const sessions = listSessions(home).length;
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
  io.out(`Attached   ${attached.length === 0 ? io.paint('yellow', 'nowhere: run `nd7 init`') : attached.join(', ')}`);
  showFired(io, fired);
  if (!enrolled) io.out('Vault      this machine is not enrolled: what is recorded rests on this disk alone');
  else {
    const behind =
      unshipped.entries === 0
        ? io.paint('green', 'everything is shipped')
        : `${unshipped.entries} entries of ${unshipped.sessions} sessions not shipped, for ${unshipped.seconds} s`;
    io.out(
      `Vault      ${behind}${receipt === undefined ? '; no receipt yet' : `; last receipt ${receipt.time} (${receipt.session}, ${receipt.entries} entries)`}`,
    );
    const problem = (recorder?.['ship'] as { problem?: unknown } | null | undefined)?.problem;
    if (typeof problem === 'string') io.out(`           ${io.paint('red', problem)}`);
  }
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
  const { listSessions, readReceipts } = await import('@nd7/journal');
  const sum: Unshipped = { entries: 0, sessions: 0, seconds: 0 };
  for (const { session, head, modified } of listSessions(home)) {
    const covered = readReceipts(home, session).at(-1)?.entries ?? 0;
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
  const { listSessions, readReceipts } = await import('@nd7/journal');
  let newest: { session: string; entries: number; time: string } | undefined;
  for (const { session } of listSessions(home)) {
    const entries = readReceipts(home, session).at(-1)?.entries;
    if (entries === undefined) continue;
    const time = statSync(join(home.receiptsDir(session), `${entries}.tlog-proof`)).mtime.toISOString();
    if (newest === undefined || time > newest.time) newest = { session, entries, time };
  }
  return newest;
}
