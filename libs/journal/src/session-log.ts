import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { blake3Hex } from '@nd7/blake3';
import { sealMessage, type Head } from '@nd7/chain';
import { formatTime, printEntry, toHex, type Clock, type EntryDraft, type Random } from '@nd7/entry';
import { tryLock, unlock } from '@nd7/kernel';
import { writeAll, type Disk } from './disk.js';
import { errnoOf, JournalError } from './failure.js';
import type { Home } from './home.js';
import { SessionKeys, type SessionKey } from './session-keys.js';
import { walkTail, type Place } from './tail.js';
import { keepTorn, undeclared } from './torn.js';

/** A seal comes at the latest so many entries after the one before it (docs/format.md, "Seals"). */
const SEAL_ENTRIES = 256;
/** And after so many bytes: a segment ends with a seal, and the vault takes 8 MiB. */
const SEAL_BYTES = 1 << 20;

/** Where an appended entry came to stand. */
export interface Appended {
  seq: number;
  hash: string;
}

export interface LogParts {
  home: Home;
  session: string;
  disk: Disk;
  clock: Clock;
  random: Random;
}

/** Lines that wait to be written in one go, and where the chain will stand after them. */
export interface Batch {
  place: Place;
  lines: Uint8Array[];
  /** Keys that seals of this batch retire. */
  retired: Retired[];
  /** Files and folders of keys that were made for it and not synced. */
  unsynced: string[];
}

/** A key to destroy once the log is durable up to `bytes`, where the seal that retires it ends. */
export interface Retired {
  index: number;
  bytes: number;
}

/**
 * The file of one session's log and the rules of touching it. Whoever reads `place` to append, or writes, does it inside `locked`: other
 * processes append to the same file, and everything known about its end is known again only after `catchUp`.
 */
export class SessionLog {
  /** Written inside `locked` only. */
  place: Place;
  /** Tails kept aside since this log was opened. */
  tornTails = 0;
  readonly keys: SessionKeys;
  readonly fd: number;
  readonly #parts: LogParts;
  #key: SessionKey | undefined;
  #ready: { key: SessionKey; facts: string | undefined } | undefined;
  /** One user of the lock at a time in this process: the kernel gives it twice to the same open file. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parts: LogParts, place: Place) {
    this.#parts = parts;
    this.place = place;
    this.keys = new SessionKeys(parts.home, parts.session);
    this.fd = openSync(
      parts.home.logFile(parts.session),
      constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW,
      0o600,
    );
  }

  /** Runs `work` while this process, and this call in it, holds the session's lock. Throws JournalError `locked` after `wait` ms. */
  locked<T>(wait: number, work: () => T | Promise<T>): Promise<T> {
    const turn = this.#turn.then(async () => {
      await this.#lock(wait);
      try {
        return await work();
      } finally {
        unlock(this.fd);
      }
    });
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #lock(wait: number): Promise<void> {
    let pause = 1;
    for (let waited = 0; !tryLock(this.fd); waited += pause) {
      if (waited >= wait) {
        throw new JournalError(
          'locked',
          `another process has held session ${this.#parts.session} for ${wait} ms: look for a hanging nd7 process`,
        );
      }
      pause = Math.min(pause * 2, 20);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /**
   * Takes in what others appended since, and keeps a torn tail aside. Throws JournalError `changed` when the file is shorter than it was or
   * its name is gone.
   */
  async catchUp(): Promise<void> {
    const { size, nlink } = fstatSync(this.fd);
    if (size === this.place.bytes && nlink > 0) return;
    const where = this.#parts.home.logFile(this.#parts.session);
    if (nlink === 0) throw new JournalError('changed', `${where} was removed while it was being written`);
    if (size < this.place.bytes)
      throw new JournalError(
        'changed',
        `${where} was cut from ${this.place.bytes} to ${size} bytes while it was being written`,
      );
    const tail = await walkTail(this.fd, this.place, size, this.#parts.session);
    this.place = tail.place;
    if (tail.fault) await this.mendTail(size);
  }

  /**
   * Moves what stands after `place` aside and declares it, after what `first` adds. The gap is written over the tail and the rest is cut off
   * after that: at no moment does the log end cleanly without saying what it lost. Tails that a crash kept but did not declare are declared too.
   */
  async mendTail(size: number, first?: (batch: Batch) => void): Promise<void> {
    const { home, session, disk, random } = this.#parts;
    const folder = home.sessionDir(session);
    if (size > this.place.bytes) {
      await keepTorn(disk, folder, this.place.entries, { fd: this.fd, from: this.place.bytes, to: size }, random);
      disk.step('torn-kept');
    }
    const batch = this.batch();
    const tails = await undeclared(folder, this.place.entries);
    first?.(batch);
    for (const kept of tails) this.add(batch, this.#own('gap', { reason: 'torn-tail', ...kept }));
    if (batch.lines.length === 0) return;
    // O_APPEND would put it behind the tail.
    const fd = openSync(home.logFile(session), 'r+');
    try {
      writeAll(disk, fd, Buffer.concat(batch.lines), this.place.bytes);
      disk.step('gap-written');
      disk.truncate(fd, batch.place.bytes);
      disk.step('torn-cut');
    } finally {
      closeSync(fd);
    }
    this.tornTails += tails.length;
    this.place = batch.place;
  }

  batch(): Batch {
    return { place: this.place, lines: [], retired: [], unsynced: [] };
  }

  /** Adds an entry to a batch, before it a seal where one is due. Throws EntryError for a draft that breaks the grammar; the batch is as before then. */
  add(batch: Batch, draft: EntryDraft): Appended {
    const { key, entries, bytes, sealedTo, sealedBytes } = batch.place;
    const due = entries - (sealedTo ?? 0) >= SEAL_ENTRIES || bytes - sealedBytes >= SEAL_BYTES;
    if (key !== null && due) this.addSeal(batch);
    return this.#push(batch, draft, batch.place.key);
  }

  /** Adds entry 0, which names the first key. */
  addFirst(batch: Batch, draft: EntryDraft, key: SessionKey): Appended {
    this.#key = key;
    const first = this.#push(batch, draft, key.pair.publicKey);
    batch.place = { ...batch.place, sealedAt: Date.parse(draft.time) };
    return first;
  }

  /** Adds a seal: makes the next key, stores it, signs by the present one. Without `sync` what leads to it is the caller's to sync: `batch.unsynced`. */
  addSeal(batch: Batch, options: { sync?: boolean } = {}): Appended {
    const { session, disk, clock } = this.#parts;
    const { entries, head } = batch.place;
    const present = this.keyOf(batch.place.key);
    let next = this.#takeReady(present.index + 1);
    if (next === undefined) {
      next = this.keys.create(present.index + 1, options);
      if (options.sync === false) batch.unsynced.push(...this.keys.pathsOf(next.index));
    }
    disk.step('next-key-made');
    const sig = toHex(present.pair.sign(sealMessage(session, entries, head, next.pair.publicKey)));
    const sealed = this.#push(batch, this.#own('seal', { next: next.pair.publicKey, sig }), next.pair.publicKey);
    batch.place = { ...batch.place, sealedTo: sealed.seq, sealedBytes: batch.place.bytes, sealedAt: clock.now() };
    batch.retired.push({ index: present.index, bytes: batch.place.bytes });
    this.#key = next;
    return sealed;
  }

  #push(batch: Batch, draft: EntryDraft, key: string | null): Appended {
    const { place } = batch;
    const line = printEntry(place.entries, place.head, draft);
    const hash = blake3Hex(line);
    const ended = new Uint8Array(line.length + 1);
    ended.set(line);
    ended[line.length] = 10;
    batch.lines.push(ended);
    batch.place = { ...place, entries: place.entries + 1, head: hash, bytes: place.bytes + ended.length, key };
    return { seq: place.entries, hash };
  }

  /** Makes the key that the next seal names, where nothing waits for it. Answers with what has to be synced for it to last. Throws JournalError `key-lost`. */
  readyKey(): string[] {
    const { index } = this.keyOf(this.place.key);
    // Made anew it would be gone for a moment, in which what syncs the first one finds nothing.
    if (this.#ready?.key.index === index + 1 && this.#ready.facts === this.keys.factsOf(index + 1)) return [];
    const key = this.keys.create(index + 1, { sync: false });
    this.#ready = { key, facts: this.keys.factsOf(key.index) };
    return this.keys.pathsOf(key.index);
  }

  /** Others may have sealed meanwhile, and made a key of their own in its place. */
  #takeReady(index: number): SessionKey | undefined {
    const ready = this.#ready;
    this.#ready = undefined;
    if (ready?.key.index !== index || ready.facts === undefined) return undefined;
    return ready.facts === this.keys.factsOf(index) ? ready.key : undefined;
  }

  /** The signing key with this public half. Throws JournalError `key-lost`. */
  keyOf(publicKey: string | null): SessionKey {
    if (publicKey !== null && this.#key?.pair.publicKey !== publicKey) this.#key = this.keys.find(publicKey);
    if (publicKey === null || !this.#key) {
      throw new JournalError(
        'key-lost',
        `the signing key of session ${this.#parts.session} is gone from ${this.#parts.home.sessionKeys(this.#parts.session)}: the session goes on under a new id`,
      );
    }
    return this.#key;
  }

  /**
   * Writes a batch with one write(2) at the end of the file. All of it stands there afterwards, or nothing: a write that the disk broke
   * off is cut back. Throws JournalError `no-space` (the log is as before), `io` (it cannot be said how it is).
   */
  write(batch: Batch): void {
    const { disk, home, session } = this.#parts;
    if (batch.lines.length === 0) return;
    try {
      writeAll(disk, this.fd, batch.lines.length === 1 ? (batch.lines[0] as Uint8Array) : Buffer.concat(batch.lines));
    } catch (error) {
      const where = home.logFile(session);
      try {
        disk.truncate(this.fd, this.place.bytes);
      } catch (cause) {
        throw new JournalError('io', `${where} could neither be written nor cut back: ${text(cause)}`, { cause });
      }
      const errno = errnoOf(error);
      if (errno === 'ENOSPC' || errno === 'EDQUOT' || errno === 'EFBIG') {
        throw new JournalError('no-space', `no space left to append to ${where} (${errno}): make room on that disk`, {
          cause: error,
        });
      }
      throw new JournalError('io', `${where} could not be written: ${text(error)}`, { cause: error });
    }
    this.place = batch.place;
    disk.step('entries-written');
    if (batch.retired.length > 0) disk.step('seal-written');
  }

  headHint(): Head & { bytes: number } {
    return { entries: this.place.entries, hash: this.place.head, bytes: this.place.bytes };
  }

  #own(kind: string, data: Record<string, unknown>): EntryDraft {
    return { time: formatTime(this.#parts.clock.now()), source: 'recorder:nd7', kind, data: JSON.stringify(data) };
  }

  close(): void {
    closeSync(this.fd);
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
