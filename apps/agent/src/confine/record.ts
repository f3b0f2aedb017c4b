import { randomBytes } from 'node:crypto';
import type { EgressDecision } from '@nd7/egress';
import { formatTime, type EntryDraft } from '@nd7/entry';
import { machineKey, openHome, openSession, type Home, type Journal } from '@nd7/journal';
import type { Ruleset } from '@nd7/policy';
import { systemClock } from '@nd7/signing';
import { fullDisk, reasonOf } from '../cli/full-disk.js';
import { CliError } from '../cli/io.js';
import { VERSION } from '../cli/version.js';
import { endDeadSessions } from '../recorder/doors.js';
import { forgetNews, newsOf } from '../recorder/kept-names.js';
import { Losses } from '../recorder/losses.js';

const SOON_MS = 100;
/** A chain that could not be begun is tried again so much later at the soonest: each try costs the session a write that waits. */
const AGAIN_MS = 1000;

/**
 * The record of one confined session: a chain of its own, with the boundary in front and the end of the program behind. What cannot be
 * written refuses what it would have told of where the policy requires recording; else that goes on, and a gap entry tells of it as soon as
 * one can be written: also where the chain itself could not be begun. What holds is told again then.
 */
export class RunRecord {
  /** What the session is called, recorded or not. */
  readonly id = `run-${randomBytes(8).toString('hex')}`;
  readonly #losses = new Losses();
  #home: Home | undefined;
  #opening: Promise<void> | undefined;
  #journal: Journal | undefined;
  /** When the next try to begin the chain may come, where one has failed. */
  #notBefore = -Infinity;
  /** Why the chain is not begun. */
  #whyNot = 'failed';
  #isSwept = false;
  /** What holds, while no chain says it. */
  #boundary: Omit<EntryDraft, 'time'> | undefined;
  #syncing: NodeJS.Timeout | undefined;

  private constructor(
    private readonly nd7Home: string,
    private readonly recording: Ruleset['recording'],
    private readonly warn: (text: string) => void,
  ) {}

  /**
   * A record whose chain is still to be opened: by `open`, or by the first entry. `warn` is told once when something is lost. Throws `CliError` where the
   * policy requires recording and nd7's home cannot be written.
   */
  static begin(nd7Home: string, recording: Ruleset['recording'], warn: (text: string) => void): RunRecord {
    const record = new RunRecord(nd7Home, recording, warn);
    try {
      record.#home = openHome(nd7Home);
    } catch (error) {
      record.#notBegun(error);
    }
    return record;
  }

  /** The same with its chain open. */
  static async open(...begin: Parameters<(typeof RunRecord)['begin']>): Promise<RunRecord> {
    const record = RunRecord.begin(...begin);
    await record.open();
    return record;
  }

  /** Opens the chain; one that could not be is tried again later. Throws `CliError` where the policy requires recording and it cannot be. */
  open(): Promise<void> {
    if (this.#journal === undefined && performance.now() >= this.#notBefore) this.#opening ??= this.#open();
    return this.#opening ?? Promise.resolve();
  }

  async #open(): Promise<void> {
    try {
      const home = (this.#home ??= openHome(this.nd7Home));
      if (!this.#isSwept) await endDeadSessions(home, 'another session started').catch(() => undefined);
      for (const news of newsOf(home.root)) {
        this.warn(`of session ${news.session}, which was killed:`);
        for (const line of news.lines) this.warn(line);
        forgetNews(home.root, news);
      }
      this.#isSwept = true;
      this.#journal = await openSession(home, this.id, {
        machine: machineKey(home),
        start: { agent: 'nd7-run', version: VERSION },
        // Nothing runs before what holds is on the disk, and with it what this began.
        isHasty: true,
      });
    } catch (error) {
      this.#opening = undefined;
      this.#notBegun(error);
    }
  }

  /** Throws `CliError` where the policy requires recording. */
  #notBegun(error: unknown): void {
    if (this.recording === 'required') throw unrecorded('the session', error, this.nd7Home);
    if (this.#notBefore === -Infinity) this.#warn('the session is not recorded', error);
    this.#notBefore = performance.now() + AGAIN_MS;
    this.#whyNot = fullDisk(error) ?? (error as { code?: string }).code ?? 'failed';
  }

  /** The chain's id; undefined where there is none, or none yet. */
  get session(): string | undefined {
    return this.#journal?.session;
  }

  /** How far the chain is. */
  get place(): { entries: number; head: string } {
    return { entries: this.#journal?.entries ?? 0, head: this.#journal?.head ?? '' };
  }

  /**
   * Appends an entry and waits until it is on the disk (without `sync`: until it is written; `soon`: the same, and it is on the disk within 100 ms); `what` it
   * tells of is for the error. Throws `CliError` where recording is required.
   */
  async note(
    kind: string,
    data: Record<string, unknown>,
    what: string,
    source = 'recorder:nd7',
    peer?: Record<string, unknown>,
    { sync = true }: { sync?: boolean | 'soon' } = {},
  ): Promise<void> {
    const draft = { source, kind, data: JSON.stringify(data), ...(peer === undefined ? {} : { peer }) };
    await this.#write(what, draft, async (journal, drafts) => {
      await journal.append(drafts, { sync: sync === true });
      if (sync === 'soon') this.#syncSoon(journal);
    });
  }

  /** Writes an entry, before it what it may have to tell of losses. */
  async #write(
    what: string,
    draft: Omit<EntryDraft, 'time'>,
    write: (journal: Journal, drafts: EntryDraft[]) => Promise<unknown>,
  ): Promise<void> {
    await this.open();
    const now = systemClock.now();
    if (this.#journal === undefined) {
      this.#losses.add(this.#whyNot, now, draft.kind);
      if (draft.kind === 'enforcement') this.#boundary = draft;
      return;
    }
    const time = formatTime(now);
    const lost = this.#losses.take();
    const gap = lost && { source: 'recorder:nd7', kind: 'gap', data: JSON.stringify(lost.data) };
    const drafts = [gap, this.#boundary, draft].filter((one) => one !== undefined).map((one) => ({ time, ...one }));
    try {
      await write(this.#journal, drafts);
      this.#boundary = undefined;
    } catch (error) {
      if (this.recording === 'required') throw unrecorded(what, error, this.nd7Home);
      if (lost === undefined) this.#warn(`${what} is not recorded`, error);
      else this.#losses.putBack(lost);
      this.#losses.add((error as { code?: string }).code ?? 'failed', now, draft.kind);
    }
  }

  #warn(what: string, error: unknown): void {
    this.warn(`${what}: ${reasonOf(error, this.nd7Home)}`);
  }

  /**
   * Appends an answer of the proxy. It is on the disk before it takes effect; one that only says again what stands there is written before, and on the disk
   * within 100 ms. Throws as `note` does.
   */
  answer({ asker, ...decision }: EgressDecision, isRepeated: boolean): Promise<void> {
    const how = { sync: isRepeated ? ('soon' as const) : true };
    const data = { ...decision, ...asker?.entry };
    return this.note('network', data, 'an answer of the proxy', 'decision:egress', undefined, how);
  }

  /** Appends what went through connections that have ended; on the disk within 100 ms. */
  traffic(kind: string, data: Record<string, unknown>): Promise<void> {
    return this.note(kind, data, 'what went through a connection', 'effect:egress', undefined, { sync: 'soon' });
  }

  /** One for all that come meanwhile. Where it fails, the journal has stopped, and the next entry says so. */
  #syncSoon(journal: Journal): void {
    this.#syncing ??= setTimeout(() => {
      this.#syncing = undefined;
      journal.sync().catch(() => undefined);
    }, SOON_MS);
  }

  /** While the program runs: makes ready what its end will need. Without it the end takes longer, and that is all. */
  ready(): void {
    this.#journal?.ready().catch(() => undefined);
  }

  /** Notes how the program ended and seals the chain; what is left to do then is `close`. Throws `CliError` where recording is required and that fails. */
  async end({ code, signal }: { code: number | null; signal: NodeJS.Signals | null }): Promise<void> {
    const data = JSON.stringify({ reason: 'program ended', code, signal });
    const draft = { source: 'recorder:nd7', kind: 'session.end', data };
    await this.#write(`the program’s end (${code ?? signal})`, draft, (journal, drafts) => journal.end(drafts));
  }

  /** Seals the chain, where that was not done, and gives it back. Throws `CliError` where recording is required and that fails. */
  async close(): Promise<void> {
    clearTimeout(this.#syncing);
    try {
      // One that could not be begun has nothing to say any more.
      await (this.#notBefore === -Infinity ? this.open() : this.#opening);
      await this.#journal?.close({ seal: true });
    } catch (error) {
      if (this.recording === 'required') throw unrecorded('the end of the session', error, this.nd7Home);
      if (!this.#losses.any) this.#warn('the record of the session is not sealed', error);
    }
  }
}

/** What is told where the policy requires what cannot be recorded. */
export function unrecorded(what: string, error: unknown, nd7Home: string): CliError {
  return new CliError(
    1,
    `${what} cannot be recorded, and the policy requires it: ${reasonOf(error, nd7Home)}`,
    'Mend that, or say "recording": "best-effort" in your policy.',
    'unrecorded',
  );
}
