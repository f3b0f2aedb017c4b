import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';
import { makeFolders, tryLock } from '@nd7/kernel';
import { machineKey, openSession, readHead, type Home, type Journal } from '@nd7/journal';
import { systemClock } from '@nd7/signing';
import { hasKeptNames } from './kept-names.js';
import { recorderDraft } from './draft.js';
import { lastEntries } from './firing.js';

/** The folder of a confined session's door: the one part of nd7's home that is shown inside. */
export interface DoorFolder {
  path: string;
  /** The folder beside it that is never shown inside, for what widens the session: `run/c-…`, 0700. */
  control: string;
  /** Takes it away again. */
  release(): void;
}

const LOCK = /^(s-[0-9a-f]{16})\.lock$/;

/**
 * Makes the folder of a session, `run/s-<first 16 hex of BLAKE3(session id)>`, 0700. It lives as long as the lock beside it is held, which the
 * kernel gives back for a killed process too. Throws the system's error.
 */
export function takeDoor(home: string, session: string): DoorFolder {
  makeFolders(join(home, 'run'), 0o700);
  const path = folderOf(home, session);
  const lock = takeLock(`${path}.lock`);
  const control = controlOf(path);
  const release = (): void => {
    for (const folder of [path, control]) rmSync(folder, { recursive: true, force: true });
    rmSync(`${path}.lock`, { force: true });
    closeSync(lock);
  };
  try {
    ftruncateSync(lock, 0);
    writeSync(lock, session);
    for (const folder of [path, control]) {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { mode: 0o700 });
      chmodSync(folder, 0o700);
    }
  } catch (error) {
    // A host that goes on would hold it for all the sessions after this one.
    release();
    throw error;
  }
  return { path, control, release };
}

function controlOf(door: string): string {
  return join(dirname(door), basename(door).replace(/^s-/, 'c-'));
}

function folderOf(home: string, session: string): string {
  return join(home, 'run', `s-${blake3Hex(Buffer.from(session)).slice(0, 16)}`);
}

/** Whether a session's folder is there, or what is left of it. */
export function hasDoor(home: string, session: string): boolean {
  return existsSync(`${folderOf(home, session)}.lock`);
}

/** Whether a process holds the lock of a session's door, by the kernel's word (proc(5), fdinfo; Linux only). */
export function holdsDoor(home: string, session: string, pid: number): boolean {
  const door = statSync(`${folderOf(home, session)}.lock`, { throwIfNoEntry: false });
  if (door === undefined) return false;
  return openFiles(pid).some((fd) => {
    try {
      const file = statSync(`/proc/${pid}/fd/${fd}`);
      if (file.ino !== door.ino || file.dev !== door.dev) return false;
      return /^lock:.*\bFLOCK\b/m.test(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1'));
    } catch {
      return false; // closed meanwhile
    }
  });
}

function openFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
}

/**
 * Takes away the folders of sessions whose front has died; answers which sessions those are. `ended` is called for each, while its lock is held and before it
 * goes: whoever dies meanwhile, or fails, leaves it for the next. Rejects with the first failure when all have been looked at.
 */
export async function sweepDoors(home: string, ended: (session: string) => Promise<void>): Promise<string[]> {
  const swept: string[] = [];
  let failure: unknown;
  for (const name of locks(home)) {
    const path = join(home, 'run', name);
    const lock = lockOf(path);
    if (lock === undefined) continue;
    try {
      const session = readFileSync(lock, 'utf8');
      const door = path.slice(0, -'.lock'.length);
      for (const folder of [door, controlOf(door)]) rmSync(folder, { recursive: true, force: true });
      if (session !== '') {
        await ended(session);
        swept.push(session);
      }
      rmSync(path, { force: true });
    } catch (error) {
      failure ??= error;
    } finally {
      closeSync(lock);
    }
  }
  if (failure !== undefined) throw failure as Error;
  return swept;
}

/** Sessions whose front has died and that nobody has swept; one that was killed before it had a name has none. */
export function deadDoors(home: string): string[] {
  return locks(home).flatMap((name) => {
    const lock = lockOf(join(home, 'run', name));
    if (lock === undefined) return [];
    try {
      return [readFileSync(lock, 'utf8') || name];
    } finally {
      closeSync(lock);
    }
  });
}

/** Whether another confined session of this home runs besides the one whose folder this is. */
export function othersRun(home: string, own: string): boolean {
  return locks(home).some((name) => {
    const path = join(home, 'run', name);
    if (path === `${own}.lock`) return false;
    const lock = lockOf(path);
    if (lock !== undefined) closeSync(lock);
    return lock === undefined;
  });
}

/** Writes the end of confined sessions whose front could not: it was killed. Answers which have got one. Rejects as `sweepDoors`. */
export async function endDeadSessions(home: Home, noticed: string): Promise<string[]> {
  const written: string[] = [];
  await sweepDoors(home.root, async (session) => {
    const entries = lastEntries(home, session);
    if (entries.length === 0) return compareLeft(home, session, undefined);
    const hasEnd = entries.some(({ source, kind }) => source === 'recorder:nd7' && kind === 'session.end');
    // Killed between its end and what follows it: the key that its last seal has retired would stay.
    if (hasEnd && readHead(home, session)?.entries === (entries.at(-1)?.seq ?? -1) + 1) return;
    const journal = await openSession(home, session, { machine: machineKey(home), start: {} });
    const end = recorderDraft(systemClock.now(), 'session.end', { reason: 'process gone', noticed });
    await compareLeft(home, session, hasEnd ? undefined : journal);
    if (!hasEnd) await journal.append([end], { sync: true });
    await journal.close({ seal: true });
    if (!hasEnd) written.push(session);
  });
  return written;
}

/** What it had still to compare, recorded before its end; what that takes is only loaded where it is needed. */
async function compareLeft(home: Home, session: string, journal: Journal | undefined): Promise<void> {
  if (!hasKeptNames(home.root, session)) return;
  const { compareKept } = await import('../confine/left-names.js');
  await compareKept(home.root, session, async (kind, data, _what, source) => {
    await journal?.append([{ ...recorderDraft(systemClock.now(), kind, data), source }], { sync: false });
  });
}

/** The lock of a folder that nobody holds, as an open file; undefined where somebody does, or where it has gone in this moment. */
function lockOf(path: string): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r+');
  } catch {
    return undefined;
  }
  // The file may have gone, and another come in its place, before it was locked.
  if (tryLock(fd) && statSync(path, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino) return fd;
  closeSync(fd);
  return undefined;
}

function locks(home: string): string[] {
  try {
    return readdirSync(join(home, 'run')).filter((name) => LOCK.test(name));
  } catch {
    return [];
  }
}

/** Whoever sweeps may take the file away between its making and its lock: it counts only while its name leads to it. */
function takeLock(path: string): number {
  for (;;) {
    const fd = openSync(path, 'a+', 0o600);
    if (tryLock(fd) && statSync(path, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino) return fd;
    closeSync(fd);
  }
}
