import { closeSync, existsSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { certMessage } from '@nd7/chain';
import { formatTime, toHex, type Clock, type Random } from '@nd7/entry';
import { tryLock } from '@nd7/kernel';
import { systemClock, systemRandom, type KeyPair } from '@nd7/signing';
import { chainOf, unusedContinuation } from './continuation.js';
import { makeFolder, realDisk, syncFolder, type Disk } from './disk.js';
import { diskError, JournalError } from './failure.js';
import type { Home } from './home.js';
import { Journal, type Continues } from './journal.js';
import { firstLine, readHead, receiptCounts, startOf } from './read.js';
import { SessionLog, type Batch, type LogParts } from './session-log.js';
import { machineKey } from './session-keys.js';
import { beginning, lastSeal, walkTail } from './tail.js';

export interface OpenOptions {
  /** More members of entry 0's `data`, written only where the session is new: the recorder's version, the agent, … */
  start?: Record<string, unknown>;
  /** Default: the home's machine key, made on first use. */
  machine?: KeyPair;
  clock?: Clock;
  random?: Random;
  /**
   * Where the session is new: answers before entry 0 and what leads to it are on the disk. That is under way meanwhile, and the first sync waits for it:
   * a caller that acts on nothing before has waited for one disk instead of five.
   */
  isHasty?: boolean;
  /** How long an append waits for another process's lock before it fails with `locked`. Default 5,000 ms. */
  lockWaitMs?: number;
  /** The seam for tests that break the disk or kill the process. */
  disk?: Disk;
}

/**
 * Why a chain cannot go on: its signing key is gone; it is shorter than its own head or a receipt say, or differs from them (the machine was
 * restored from an older image, or somebody wrote to it), or than the vault says; the machine has another key now; the vault holds another history; what
 * was shipped was changed and does not check out.
 */
export type EndReason = 'key-lost' | 'shortened' | 'machine-changed' | 'forked' | 'broken';

/**
 * Opens a session for appending, makes it where it is new, and brings back what a crash left: a torn tail is kept aside and declared, the
 * head is found by walking from the last seal, of two session keys the one that the log does not name is destroyed. A chain that cannot go on
 * is left as it is, and a new one, `<id>.r<n>`, continues it; asking for the old id leads there from then on (`journal.session`).
 *
 * Throws JournalError: `session-id`, `session-case`, `locked`, `no-space`, `io`, `machine-key-lost`.
 */
export async function openSession(home: Home, asked: string, options: OpenOptions = {}): Promise<Journal> {
  const o = complete(home, options);
  const { session } = chainOf(home, asked);
  const opened = await openChain(home, asked, session, o);
  if (opened instanceof Journal) return opened;
  return continueChain(home, asked, opened, { ...o, isHasty: false });
}

/**
 * Begins the chain that continues one which cannot go on, and returns it open: after a vault's fork answer, with the longest prefix that
 * a receipt covers.
 */
export function continueSession(
  home: Home,
  from: Continues & { why: EndReason },
  options: OpenOptions = {},
): Promise<Journal> {
  return continueChain(home, from.session, from, { ...complete(home, options), isHasty: false });
}

type Complete = Required<Omit<OpenOptions, 'machine'>> & { machine: KeyPair };

function complete(home: Home, o: OpenOptions): Complete {
  return {
    start: o.start ?? {},
    machine: o.machine ?? machineKey(home),
    clock: o.clock ?? systemClock,
    random: o.random ?? systemRandom,
    isHasty: o.isHasty ?? false,
    lockWaitMs: o.lockWaitMs ?? 5_000,
    disk: o.disk ?? realDisk,
  };
}

/** Number of a chain's first signing key. */
const FIRST_KEY = 0;

/** The journal, or why and where the chain ends. */
async function openChain(
  home: Home,
  asked: string,
  session: string,
  o: Complete,
  existing: 'resumed' | 'continued' = 'resumed',
): Promise<Journal | (Continues & { why: EndReason })> {
  if (!existsSync(home.logFile(session))) await makeSession(home, session, o);
  return withLog(home, session, o, async (log, parts) => {
    const { size } = fstatSync(log.fd);
    const common = { home, log, disk: o.disk, clock: o.clock, lockWaitMs: o.lockWaitMs, session, asked };
    const counted = Math.max(readHead(home, session)?.entries ?? 0, ...receiptCounts(home, session));
    if (size === 0 && counted === 0) {
      return new Journal({ ...common, opened: 'created', ...(await writeFirst(log, parts, o, o.start)) });
    }
    if (o.isHasty) for (const path of [home.sessionDir(session), home.sessions]) syncFolder(o.disk, path);
    const why = await recover(log, size, counted, parts, { ...o, isHasty: false });
    if (why === undefined) {
      const { continues } = startOf(firstLine(log.fd));
      return new Journal({ ...common, opened: existing, ...(continues && { continues }) });
    }
    const whole = await walkTail(log.fd, beginning(session), size, session);
    return { session, entries: whole.place.entries, head: whole.place.head, why };
  });
}

/** Opens the log, runs `work` under its lock, and closes it again unless a journal came of it. */
async function withLog<T>(
  home: Home,
  session: string,
  o: Complete,
  work: (log: SessionLog, parts: LogParts) => Promise<T>,
): Promise<T> {
  const parts: LogParts = { home, session, disk: o.disk, clock: o.clock, random: o.random };
  let log: SessionLog | undefined;
  let kept = false;
  try {
    const open = (log = new SessionLog(parts, beginning(session)));
    const result = await open.locked(o.lockWaitMs, () => work(open, parts));
    kept = result instanceof Journal;
    return result;
  } catch (error) {
    throw diskError(error, home.sessionDir(session));
  } finally {
    if (!kept) log?.close();
  }
}

/**
 * Finds where the chain stands and mends its end. `counted` is what the head and the receipts count: so much was on the disk once, and no
 * crash can have taken it. Returns why the chain cannot go on, undefined when it can.
 */
async function recover(
  log: SessionLog,
  size: number,
  counted: number,
  parts: LogParts,
  o: Complete,
): Promise<EndReason | undefined> {
  const { home, session } = parts;
  const head = readHead(home, session);
  const from = lastSeal(log.fd, Math.min(size, head?.bytes ?? 0), session);
  const against = head && head.entries >= from.entries ? head : undefined;
  const tail = await walkTail(log.fd, from, size, session, against);
  if (tail.fault === 'head-mismatch' || tail.place.entries < counted) return 'shortened';
  log.place = tail.place;
  if (tail.place.entries === 0) {
    // Nothing but a torn first line: the session begins now.
    await log.mendTail(size, firstEntry(log, parts, o, o.start));
  } else {
    if (startOf(firstLine(log.fd)).machine !== o.machine.publicKey) return 'machine-changed';
    if (tail.place.key === null || log.keys.find(tail.place.key) === undefined) return 'key-lost';
    await log.mendTail(size);
  }
  // The seal that put this key in force may still be in memory only: the key before it may not go sooner than that is on the disk.
  await o.disk.datasync(log.fd);
  log.keys.destroyOthers(log.keyOf(log.place.key).index);
  return undefined;
}

/** Answers, where the caller is hasty, with what is still on its way to the disk besides the log itself. */
async function writeFirst(
  log: SessionLog,
  parts: LogParts,
  o: Complete,
  more: Record<string, unknown>,
): Promise<{ beginning?: Promise<unknown> }> {
  const { home, session, disk } = parts;
  const batch = log.batch();
  firstEntry(log, parts, o, more)(batch);
  log.write(batch);
  if (!o.isHasty) {
    await disk.datasync(log.fd);
    return {};
  }
  const paths = [...log.keys.pathsOf(FIRST_KEY), home.sessionDir(session), home.sessions];
  const beginning = Promise.all(paths.map((path) => disk.fsyncLater(path)));
  beginning.catch(() => undefined); // The first sync tells of it.
  return { beginning };
}

/** Makes the session's first key and adds entry 0, which names it, to a batch. */
function firstEntry(
  log: SessionLog,
  { home, session, disk, clock }: LogParts,
  { machine, isHasty }: Complete,
  more: Record<string, unknown>,
): (batch: Batch) => void {
  return (batch) => {
    if (log.keys.prepare() && !isHasty) syncFolder(disk, join(home.keys, 'sessions'));
    log.keys.destroyOthers(undefined);
    const key = log.keys.create(FIRST_KEY, { sync: !isHasty });
    disk.step('first-key-made');
    const cert = toHex(machine.sign(certMessage(session, key.pair.publicKey)));
    const data = JSON.stringify({ ...more, machine: machine.publicKey, key: key.pair.publicKey, cert });
    log.addFirst(batch, { time: formatTime(clock.now()), source: 'recorder:nd7', kind: 'session.start', data }, key);
  };
}

/** Makes the session's folder, under the lock of the folder of sessions: two ids that differ only by case may not both come to be. */
function makeSession(home: Home, session: string, o: Complete): Promise<void> {
  return withSessions(home, o, () => {
    const lower = session.toLowerCase();
    const like = readdirSync(home.sessions).find((name) => name.toLowerCase() === lower);
    if (like !== undefined && like !== session) {
      throw new JournalError(
        'session-case',
        `session ${session} differs from the existing ${like} only by case: on many disks they would be one folder`,
      );
    }
    makeFolder(home.sessionDir(session));
    closeSync(openSync(home.logFile(session), 'a', 0o600));
    if (!o.isHasty) for (const path of [home.sessionDir(session), home.sessions]) syncFolder(o.disk, path);
    o.disk.step('folder-made');
  });
}

async function withSessions<T>(home: Home, o: Complete, work: () => T | Promise<T>): Promise<T> {
  const fd = openSync(home.sessions, 'r');
  try {
    for (let waited = 0; !tryLock(fd); waited += 5) {
      if (waited >= o.lockWaitMs)
        throw new JournalError(
          'locked',
          `another process has held ${home.sessions} for ${o.lockWaitMs} ms: look for a hanging nd7 process`,
        );
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return await work();
  } finally {
    closeSync(fd);
  }
}

async function continueChain(
  home: Home,
  asked: string,
  from: Continues & { why: EndReason },
  o: Complete,
): Promise<Journal> {
  const continues: Continues = { session: from.session, entries: from.entries, head: from.head };
  const { name, made } = await withSessions(home, o, async () => {
    const now = chainOf(home, asked);
    if (now.session !== from.session) return { name: now.session, made: false }; // somebody else was faster
    const session = unusedContinuation(home, now.original);
    makeFolder(home.sessionDir(session));
    await withLog(home, session, o, (log, parts) =>
      writeFirst(log, parts, o, { ...o.start, continues, why: from.why }),
    );
    syncFolder(o.disk, home.sessionDir(session));
    syncFolder(o.disk, home.sessions);
    return { name: session, made: true };
  });
  const opened = await openChain(home, asked, name, o, made ? 'continued' : 'resumed');
  if (opened instanceof Journal) return opened;
  if (made)
    throw new JournalError(
      'io',
      `session ${name} was begun and cannot go on at once (${opened.why}): look at the disk under ${home.root}`,
    );
  return continueChain(home, asked, opened, o);
}
