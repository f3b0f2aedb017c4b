import {
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { formatTime, isSessionId } from '@nd7/entry';
import { makeFolders, tryLock } from '@nd7/kernel';

/** A payload that could not be recorded while no recorder answered (docs/protocol/hook-socket.md, `run/missed`). */
export interface Missed {
  /** Milliseconds. */
  at: number;
  agent: string;
  /** Undefined where the shim could not tell. */
  session: string | undefined;
  event: string | undefined;
  reason: string;
}

/** Lines a file of markers may hold; a shim that fails for days writes no more than can be told. */
const MAX_LINES = 100_000;

/**
 * Takes the markers that lie there now: the file is renamed first, so that what comes meanwhile begins a new one, and read under its lock, so
 * that a line on its way is there. `done` removes what was taken, once gap entries tell of it; until then a later call gives it again.
 */
export async function takeMissed(home: string): Promise<{ missed: Missed[]; done(): void }> {
  const run = join(home, 'run');
  try {
    renameSync(join(run, 'missed'), join(run, `missed.${Date.now()}-${process.pid}`));
  } catch {
    // None.
  }
  const files = names(run).filter((name) => name.startsWith('missed.'));
  const missed: Missed[] = [];
  for (const name of files) missed.push(...(await lines(join(run, name))).slice(0, MAX_LINES - missed.length));
  return {
    missed,
    done: () => {
      for (const name of files) rmSync(join(run, name), { force: true });
    },
  };
}

/** Notes a payload that could not be recorded. Where that fails too nothing more can be done: never throws. */
export function markMissed(home: string, missed: Missed): void {
  const fields = [formatTime(missed.at), missed.agent, missed.session ?? '-', missed.event ?? '-', missed.reason];
  const line = fields.map((field) => field.slice(0, 200).replace(/[\t\n\r]/g, ' ')).join('\t');
  try {
    makeFolders(join(home, 'run'), 0o700);
    const path = join(home, 'run', 'missed');
    for (let attempt = 0; attempt < 100; attempt++) {
      const fd = openSync(path, 'a', 0o600);
      try {
        // Whoever takes the file has renamed it: a line written to it after that would be read by nobody.
        if (!tryLock(fd) || statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(fd).ino) continue;
        writeSync(fd, `${line}\n`);
        return;
      } finally {
        closeSync(fd);
      }
    }
  } catch {
    // The caller's answer already says that nothing was recorded.
  }
}

async function lines(path: string): Promise<Missed[]> {
  const fd = openSync(path, 'r');
  let text: string;
  try {
    for (let waited = 0; !tryLock(fd) && waited < 1_000; waited += 5)
      await new Promise((resolve) => setTimeout(resolve, 5));
    text = readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [time = '', agent = '', session = '', event = '-', reason = ''] = line.split('\t');
      const at = Date.parse(time);
      return {
        at: Number.isNaN(at) ? Date.now() : at,
        agent: agent === '' ? 'unknown' : agent,
        session: isSessionId(session) ? session : undefined,
        event: event === '-' ? undefined : event,
        reason: reason === '' ? 'unknown' : reason,
      };
    });
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}
