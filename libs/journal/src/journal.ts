import { formatHeadFile, type Head } from '@nd7/chain';
import type { Clock, EntryDraft } from '@nd7/entry';
import { writeBlobs, type Blob } from './blobs.js';
import { replaceFile, type Disk } from './disk.js';
import { diskError, JournalError } from './failure.js';
import type { Home } from './home.js';
import { readHead } from './read.js';
import type { Appended, Batch, Retired, SessionLog } from './session-log.js';

/** A seal comes at the latest so long after the one before it, while entries come. */
const SEAL_MS = 60_000;

/** An entry draft and the detached values that it names. */
export type JournalDraft = EntryDraft & { blobs?: readonly Blob[] };

/** Whom a chain that could not go on handed over to, as it stands in `data.continues` of the new chain's entry 0. */
export interface Continues {
  session: string;
  entries: number;
  head: string;
}

export interface JournalParts {
  home: Home;
  log: SessionLog;
  disk: Disk;
  clock: Clock;
  lockWaitMs: number;
  session: string;
  asked: string;
  opened: Journal['opened'];
  continues?: Continues;
  /** What of the chain's beginning is on its way to the disk: nothing is durable before. Undefined where it is there. */
  beginning?: Promise<unknown>;
}

type Operation =
  | { kind: 'append'; drafts: readonly JournalDraft[]; amend?: Amend }
  | { kind: 'seal'; isLast?: boolean }
  | { kind: 'ready' };

/** Changes drafts once nobody else can append any more: what it reads of the log then is what they will follow. Their blobs stay as they are. */
type Amend = (drafts: readonly JournalDraft[]) => readonly JournalDraft[];

interface Waiting {
  operation: Operation;
  resolve(appended: Appended[]): void;
  reject(error: unknown): void;
}

/**
 * One open session. Calls may overlap: entries get their numbers in the order of the calls, those that wait together are written
 * together, and one fdatasync serves all who wait for one.
 *
 * After an fsync or write failure of the disk the journal stops for good: what the kernel dropped cannot be asked for again, and a second
 * fsync would claim success. The error of that moment goes to everybody who waits; later calls get `stopped` with it as their cause.
 */
export class Journal {
  /** The id of the chain in fact written to. */
  readonly session: string;
  /** The id that was asked for: another one where that chain could not go on. */
  readonly asked: string;
  /** `created`: entry 0 was written now; `continued`: so it was, in place of a chain that could not go on. */
  readonly opened: 'created' | 'resumed' | 'continued';
  readonly continues: Continues | undefined;

  readonly #home: Home;
  readonly #log: SessionLog;
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #lockWait: number;

  #queue: Waiting[] = [];
  #draining: Promise<void> | undefined;
  /** What has been synced; only grows. */
  #durable: Head & { bytes: number } = { entries: 0, hash: '', bytes: 0 };
  #syncs: { want: number; resolve(): void; reject(error: unknown): void }[] = [];
  #syncing: Promise<void> | undefined;
  #retired: Retired[] = [];
  #tidying: Promise<void> = Promise.resolve();
  #headEntries = 0;
  #stopped: JournalError | undefined;
  #closed = false;
  /** What has to be on the disk besides the log: nothing new in that is durable before. */
  #besides: Promise<unknown> | undefined;
  #isEnding = false;

  /** Use `openSession`. */
  constructor(parts: JournalParts) {
    this.#home = parts.home;
    this.#log = parts.log;
    this.#disk = parts.disk;
    this.#clock = parts.clock;
    this.#lockWait = parts.lockWaitMs;
    this.session = parts.session;
    this.asked = parts.asked;
    this.opened = parts.opened;
    this.continues = parts.continues;
    this.#besides = parts.beginning;
    if (parts.beginning === undefined) this.#durable = parts.log.headHint();
    this.#headEntries = readHead(this.#home, this.session)?.entries ?? 0;
  }

  /** Entries in the log, as far as this process knows: another one may have appended since. */
  get entries(): number {
    return this.#log.place.entries;
  }
  get head(): string {
    return this.#log.place.head;
  }
  /** Bytes of the log. */
  get bytes(): number {
    return this.#log.place.bytes;
  }
  get sealedTo(): number | null {
    return this.#log.place.sealedTo;
  }
  /** Entries after the last seal. */
  get unsealed(): number {
    const { entries, sealedTo } = this.#log.place;
    return sealedTo === null ? entries : entries - sealedTo - 1;
  }
  /** The prefix that is known to be on the disk. */
  get durable(): Head & { bytes: number } {
    return this.#durable;
  }
  /** Tails that were torn and kept aside since this was opened. */
  get tornTails(): number {
    return this.#log.tornTails;
  }
  /** Why this journal has stopped; undefined while it works. */
  get stopped(): JournalError | undefined {
    return this.#stopped;
  }

  /**
   * Appends entries, all of one call next to each other unless a seal falls due between them. With `sync` it resolves when they are on the disk. `amend` is
   * called with the session's lock held, and sees in the file all that was appended before.
   * Rejects with EntryError for a draft that breaks the grammar, JournalError `locked` or `no-space` (nothing was written: try again), or
   * one of those that stop the journal.
   */
  async append(
    drafts: readonly JournalDraft[],
    { sync = false, amend }: { sync?: boolean; amend?: Amend } = {},
  ): Promise<Appended[]> {
    const appended = await this.#enqueue({ kind: 'append', drafts, ...(amend && { amend }) });
    if (sync) await this.sync();
    return appended;
  }

  /**
   * Seals what stands in the log and resolves when the seal is on the disk, the old key destroyed and head.json written: the head after the
   * seal. Where the last entry is a seal already, that one serves.
   */
  async seal(): Promise<Head> {
    const [sealed] = await this.#enqueue({ kind: 'seal' });
    await this.sync();
    await this.#tidy(true);
    if (!sealed) throw new TypeError('a seal appends one entry');
    return { entries: sealed.seq + 1, hash: sealed.hash };
  }

  /** Makes the key of the next seal ahead of need, while nobody waits: that seal then costs a signature. A crash leaves a key that no seal names. */
  async ready(): Promise<void> {
    await this.#enqueue({ kind: 'ready' });
  }

  /**
   * The last entries of a session and the seal behind them: one write, and one wait for the disk. Resolves when they are durable; that the old key is
   * destroyed and head.json written, `close` sees to. Nothing is to be appended afterwards. Rejects as `append`.
   */
  async end(drafts: readonly JournalDraft[]): Promise<void> {
    this.#isEnding = true;
    await Promise.all([
      this.#enqueue({ kind: 'append', drafts }),
      // In the same tick: they are written together.
      this.#enqueue({ kind: 'seal', isLast: true }),
    ]);
    await this.sync();
  }

  /** Resolves when everything appended before this call is on the disk. Callers that wait at the same time share one fdatasync. */
  sync(): Promise<void> {
    if (this.#stopped) return Promise.reject(this.#refusal());
    const want = this.#log.place.bytes;
    if (this.#durable.bytes >= want) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#syncs.push({ want, resolve, reject });
      this.#syncing ??= this.#runSyncs();
    });
  }

  /** For a timer: seals where the last seal is 60 s old, else brings head.json up to date. */
  async maintain(): Promise<void> {
    if (this.#stopped) return;
    if (this.unsealed > 0 && this.#clock.now() - this.#log.place.sealedAt >= SEAL_MS) await this.seal();
    else {
      await this.sync();
      await this.#tidy(this.#durable.entries > this.#headEntries);
    }
  }

  /** Finishes what is under way, syncs, writes head.json (with `seal`, or where one is due, a seal before it) and gives the file back. */
  async close(options: { seal?: boolean } = {}): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    try {
      await this.#draining;
      if (this.#stopped) return;
      const due = this.unsealed > 0 && this.#clock.now() - this.#log.place.sealedAt >= SEAL_MS;
      if (this.unsealed > 0 && (options.seal === true || due))
        await this.seal().catch(async (error: unknown) => {
          // What stands in the log is to be on the disk without its seal too.
          await this.sync().catch(() => undefined);
          throw error;
        });
      await this.sync();
      await this.#tidy(this.#durable.entries > this.#headEntries);
    } finally {
      this.#stopped ??= new JournalError('stopped', `session ${this.session} is closed`);
      await this.#draining;
      await this.#syncing?.catch(() => undefined);
      await this.#tidying.catch(() => undefined);
      this.#log.close();
    }
  }

  #enqueue(operation: Operation): Promise<Appended[]> {
    if (this.#stopped) return Promise.reject(this.#refusal());
    return new Promise((resolve, reject) => {
      this.#queue.push({ operation, resolve, reject });
      this.#draining ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    await Promise.resolve(); // calls of the same tick go in one write
    while (this.#queue.length > 0) {
      const waiting = this.#queue.splice(0);
      try {
        const ready = await this.#blobsOf(waiting);
        const done = await this.#log.locked(this.#lockWait, () => this.#write(ready));
        for (const settle of done) settle();
      } catch (error) {
        const failure = this.#failed(error);
        for (const one of waiting) one.reject(failure);
      }
    }
    // At once: whoever comes from here on starts another turn.
    this.#draining = undefined;
  }

  /** Writes the blobs of all that wait; those whose blobs could not be written are told so and left out. */
  async #blobsOf(waiting: Waiting[]): Promise<Waiting[]> {
    const ready: Waiting[] = [];
    for (const one of waiting) {
      try {
        if (one.operation.kind === 'append')
          await writeBlobs(
            this.#disk,
            this.#home,
            one.operation.drafts.flatMap((d) => d.blobs ?? []),
          );
        ready.push(one);
      } catch (error) {
        one.reject(diskError(error, this.#home.blobs));
      }
    }
    return ready;
  }

  /** With the lock held: numbers the drafts and writes them. Returns what is to be told to whom once the lock is given back. */
  async #write(waiting: Waiting[]): Promise<(() => void)[]> {
    if (this.#stopped) throw this.#stopped;
    await this.#log.catchUp();
    const batch = this.#log.batch();
    const settle: (() => void)[] = [];
    for (const one of waiting) {
      const mark = { place: batch.place, lines: batch.lines.length, retired: batch.retired.length };
      try {
        const appended = this.#add(batch, one.operation);
        settle.push(() => one.resolve(appended));
      } catch (error) {
        if (error instanceof JournalError) throw error;
        // One bad draft refuses its whole call and nobody else's.
        batch.place = mark.place;
        batch.lines.length = mark.lines;
        batch.retired.length = mark.retired;
        settle.push(() => one.reject(error));
      }
    }
    this.#log.write(batch);
    this.#retired.push(...batch.retired);
    return settle;
  }

  #add(batch: Batch, operation: Operation): Appended[] {
    if (operation.kind === 'append') {
      const { drafts, amend = (same) => same } = operation;
      return amend(drafts).map((draft) => this.#log.add(batch, draft));
    }
    if (operation.kind === 'ready') {
      this.#alsoSync(this.#log.readyKey());
      return [];
    }
    const { sealedTo, entries, head } = batch.place;
    if (sealedTo !== null && sealedTo === entries - 1) return [{ seq: sealedTo, hash: head }];
    const sealed = this.#log.addSeal(batch, { sync: operation.isLast !== true });
    this.#alsoSync(batch.unsynced.splice(0));
    return [sealed];
  }

  #alsoSync(paths: readonly string[]): void {
    if (paths.length === 0) return;
    this.#besides = Promise.all([this.#besides, ...paths.map((path) => this.#disk.fsyncLater(path))]);
    this.#besides.catch(() => undefined); // The sync that waits for it tells of it.
  }

  async #runSyncs(): Promise<void> {
    try {
      while (this.#syncs.length > 0) {
        const upTo = this.#log.headHint();
        try {
          await Promise.all([this.#besides, this.#disk.datasync(this.#log.fd)]);
        } catch (error) {
          const failure = this.#failed(
            new JournalError('io', `${this.#home.logFile(this.session)} could not be made durable: ${message(error)}`, {
              cause: error,
            }),
          );
          for (const one of this.#syncs.splice(0)) one.reject(failure);
          break;
        }
        this.#disk.step('entries-synced');
        if (upTo.bytes > this.#durable.bytes) this.#durable = upTo;
        const still = this.#syncs.filter((one) => one.want > upTo.bytes);
        const done = this.#syncs.filter((one) => one.want <= upTo.bytes);
        this.#syncs = still;
        for (const one of done) one.resolve();
        if (!this.#isEnding && this.#retired.some((key) => key.bytes <= upTo.bytes))
          void this.#tidy(true).catch(() => undefined);
      }
    } finally {
      // At once, as above.
      this.#syncing = undefined;
    }
  }

  /** Destroys the keys whose successors are on the disk; then, with `head`, writes head.json for the durable prefix. One at a time. */
  #tidy(head: boolean): Promise<void> {
    this.#tidying = this.#tidying
      .catch(() => undefined)
      .then(async () => {
        const { bytes } = this.#durable;
        const due = this.#retired.filter((key) => key.bytes <= bytes);
        if (due.length > 0) {
          this.#disk.step('seal-synced');
          for (const key of due) this.#log.keys.destroy(key.index);
          this.#retired = this.#retired.filter((key) => !due.includes(key));
          this.#disk.step('old-key-destroyed');
        }
        if (head) await this.#log.locked(this.#lockWait, () => this.#writeHead());
      });
    return this.#tidying;
  }

  #writeHead(): void {
    const head = this.#durable;
    const present = readHead(this.#home, this.session);
    if (present === undefined || present.entries < head.entries) {
      replaceFile(this.#disk, this.#home.headFile(this.session), Buffer.from(formatHeadFile(head)), () =>
        this.#disk.step('head-written'),
      );
      this.#disk.step('head-renamed');
    }
    this.#headEntries = Math.max(head.entries, present?.entries ?? 0);
  }

  /** Notes a failure that the journal does not survive; returns what to tell those who waited. */
  #failed(error: unknown): unknown {
    if (!(error instanceof JournalError)) return error;
    if (error.code !== 'locked' && error.code !== 'no-space') this.#stopped ??= error;
    return error;
  }

  #refusal(): JournalError {
    const why = this.#stopped;
    if (why === undefined || why.code === 'stopped')
      return new JournalError('stopped', `session ${this.session} is closed`);
    return new JournalError('stopped', `session ${this.session} has stopped: ${why.message}`, { cause: why });
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
