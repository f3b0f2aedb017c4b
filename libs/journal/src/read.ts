import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, statSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { parseHeadFile, type Head } from '@nd7/chain';
import { isHex, isSessionId, MAX_LINE, readEntry, type EntryView } from '@nd7/entry';
import { errnoOf, JournalError } from './failure.js';
import type { Home } from './home.js';
import type { Continues } from './journal.js';
import { readBytes } from './tail.js';

/** A session folder as it stands, nothing of it verified. */
export interface SessionFiles {
  session: string;
  /** Bytes of log.jsonl and when it was last written, ms. */
  bytes: number;
  modified: number;
  head: (Head & { bytes: number }) | undefined;
}

/** A head file has about a hundred bytes. */
const LONGEST_HEAD = 65_536;

const RECEIPT = /^([1-9][0-9]{0,15})\.tlog-proof$/;

/**
 * Every session of this home that has a log, the last written first. Folders with other names are passed over. Throws JournalError `unreadable` where
 * nobody may look: that is not the same as nothing recorded.
 */
export function listSessions(home: Home): SessionFiles[] {
  return sessionNames(home)
    .filter(isSessionId)
    .flatMap((session) => {
      const stat = statOf(home.logFile(session));
      return stat?.isFile()
        ? [{ session, bytes: stat.size, modified: stat.mtimeMs, head: readHead(home, session) }]
        : [];
    })
    .sort((a, b) => b.modified - a.modified || (a.session < b.session ? -1 : 1));
}

/** head.json; undefined where there is none or it is not of the form: the log's length then rests on nothing. */
export function readHead(home: Home, session: string): (Head & { bytes: number }) | undefined {
  let fd: number;
  try {
    fd = openSync(home.headFile(session), constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    return parseHeadFile(readBytes(fd, 0, LONGEST_HEAD)); // a longer one is cut off, and is none then
  } catch {
    return undefined; // a folder, a pipe
  } finally {
    closeSync(fd);
  }
}

/** The receipts kept for a session, by the count of entries they cover, as they stand. */
export function readReceipts(home: Home, session: string): { entries: number; text: Uint8Array }[] {
  return receiptCounts(home, session).map((entries) => ({
    entries,
    text: readFileSync(join(home.receiptsDir(session), `${entries}.tlog-proof`)),
  }));
}

/** How many entries each kept receipt covers, ascending; the receipts themselves are not opened. */
export function receiptCounts(home: Home, session: string): number[] {
  return names(home.receiptsDir(session))
    .flatMap((name) => (RECEIPT.test(name) ? [parseInt(name, 10)] : []))
    .sort((a, b) => a - b);
}

/** Entry 0 as it stands; undefined where there is no whole first line. */
export function readFirst(home: Home, session: string): EntryView | undefined {
  let fd: number;
  try {
    fd = openSync(home.logFile(session), 'r');
  } catch {
    return undefined;
  }
  try {
    return firstLine(fd);
  } finally {
    closeSync(fd);
  }
}

export function firstLine(fd: number): EntryView | undefined {
  for (let size = 8192; ; size *= 8) {
    const head = readBytes(fd, 0, size);
    const end = head.indexOf(10);
    if (end >= 0) return readEntry(head.subarray(0, end));
    if (head.length < size || size > MAX_LINE) return undefined;
  }
}

/** What an entry 0 says about keys and about the chain before it; only the recorder's own word counts. */
export function startOf(first: EntryView | undefined): { machine?: string; continues?: Continues } {
  if (first?.source !== 'recorder:nd7' || first.kind !== 'session.start' || first.data === undefined) return {};
  const { machine, continues } = JSON.parse(first.data) as { machine?: unknown; continues?: unknown };
  const c = continues as Partial<Record<keyof Continues, unknown>> | null | undefined;
  return {
    ...(typeof machine === 'string' && { machine }),
    ...(typeof c?.session === 'string' &&
      isSessionId(c.session) &&
      Number.isSafeInteger(c.entries) &&
      typeof c.head === 'string' &&
      isHex(c.head, 32) && { continues: { session: c.session, entries: c.entries as number, head: c.head } }),
  };
}

/** Every so many entries an offset is remembered. */
const STRIDE = 64;
const CHUNK = 1 << 18;

/**
 * Reads runs of entries by their numbers, for shipping and for showing. It counts newlines and checks nothing. One reader remembers where
 * entries begin, so that reading on costs what is read. It may stay open while the log grows; bytes after the last newline are not yet an entry.
 */
export class SessionReader {
  readonly #fd: number;
  /** Offset of entry k × STRIDE. */
  readonly #index: number[] = [0];
  #count = 0;
  #scanned = 0;

  constructor(
    home: Home,
    readonly session: string,
  ) {
    try {
      this.#fd = openSync(home.logFile(session), 'r');
    } catch (error) {
      throw new JournalError('no-session', `there is no session ${session} in ${home.sessions}`, { cause: error });
    }
  }

  /** How many entries the log has now. */
  entries(): number {
    const { size } = fstatSync(this.#fd);
    // A log that became shorter is another log: begin anew.
    if (size < this.#scanned) [this.#index.length, this.#count, this.#scanned] = [1, 0, 0];
    for (let at = this.#scanned; at < size; at += CHUNK) {
      const chunk = readBytes(this.#fd, at, Math.min(at + CHUNK, size));
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, end + 1)) {
        this.#count++;
        this.#scanned = at + end + 1;
        if (this.#count % STRIDE === 0) this.#index.push(this.#scanned);
      }
    }
    return this.#count;
  }

  /** The exact bytes of entries `from` (included) to `to` (excluded), newlines included. Throws RangeError past the end. */
  range(from: number, to: number): Uint8Array {
    if (!Number.isSafeInteger(from) || from < 0 || to < from || to > this.entries()) {
      throw new RangeError(`entries ${from} to ${to} of session ${this.session}, which has ${this.#count}`);
    }
    const start = this.#offset(from);
    return readBytes(this.#fd, start, this.#offset(to));
  }

  #offset(entry: number): number {
    if (entry === this.#count) return this.#scanned;
    let at = this.#index[Math.floor(entry / STRIDE)] as number;
    for (let skip = entry % STRIDE; skip > 0;) {
      const chunk = readBytes(this.#fd, at, at + CHUNK);
      let end = -1;
      while (skip > 0 && (end = chunk.indexOf(10, end + 1)) >= 0) {
        skip--;
        if (skip === 0) return at + end + 1;
      }
      at += chunk.length;
      if (chunk.length === 0) break;
    }
    return at;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function sessionNames(home: Home): string[] {
  try {
    return readdirSync(home.sessions);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return [];
    throw new JournalError(
      'unreadable',
      `${home.sessions} cannot be read (${errno ?? String(error)}): run nd7 as the user it belongs to, or set ND7_HOME to a folder of your own`,
      { cause: error },
    );
  }
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
