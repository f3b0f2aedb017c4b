import { isAbsolute } from 'node:path';
import type { Clock } from '@nd7/entry';
import type { HookReading } from '@nd7/hooks';
import type { Journal } from '@nd7/journal';
import { recorderDraft } from './draft.js';
import type { DraftMaker, JournalDraft } from './draft.js';
import type { Inside, Joined } from './inside.js';
import { Duplicates } from './duplicates.js';
import type { Losses } from './losses.js';
import type { Speaker } from './peer.js';

/** How long an entry that nobody waits for may be in the system's memory before it is synced: the group commit window. */
export const COMMIT_WINDOW_MS = 100;

/** So many folders of user settings are believed of one session: an agent may name any. */
const MAX_NAMED = 16;

/** Folders that a hook's environment names; absolute, or not to be used. */
export interface Places {
  project: string | undefined;
  userSettings: string | undefined;
}

/** What became of one payload. */
export type Recorded = { ok: true; session: string; seq: number; firstTool: boolean } | { ok: false; error: Error };

/**
 * One open session of the recorder. Payloads become entries in the order of the calls (the journal writes what waits together in one
 * go); those that a client waits for are on the disk before `record` resolves, the rest within COMMIT_WINDOW_MS. What could not be
 * written is told by a gap entry before the next one that can.
 */
export class SessionWriter {
  private readonly duplicates = new Duplicates();
  private commit: NodeJS.Timeout | undefined;
  private toolSeen = false;
  private active = 0;
  private readonly quiet: (() => void)[] = [];
  /** The journal has failed for good: this writer must be dropped and the session opened again. */
  broken = false;
  /** Set while the log's last word is the recorder's session.end. */
  ended = false;
  /** The client whose end is the session's end; the newest that spoke. */
  client: Speaker['client'];
  /** The client, where a hook has named it. */
  named: Speaker['client'];
  /** Milliseconds; of the newest payload. */
  lastTaken: number;
  transcriptPath: string | undefined;
  /** Folder of the client's project settings. */
  project: string | undefined;
  /** Folders of the client's user settings, besides the usual ones: those that its hooks have named. */
  readonly userSettings = new Set<string>();
  /** Marks a copy of what stood in the log before this recorder held it; set while such a copy can come. */
  markCopy: ((draft: JournalDraft) => JournalDraft) | undefined;
  /** Whether it speaks from a confined session whose settings go before the person's and the project's. */
  isAttached = false;
  /** Confined sessions that it has been noted to speak from. */
  private readonly runs = new Set<string>();
  /** Call ids that hooks told of; what a transcript has beside them was made in silence. */
  readonly calls = new Set<string>();

  constructor(
    readonly journal: Journal,
    readonly agent: string,
    private readonly losses: Losses,
    private readonly make: DraftMaker,
    private readonly clock: Clock,
    /** Called when new entries stand in the log. */
    private readonly onAppended: (session: SessionWriter) => void,
  ) {
    this.lastTaken = clock.now();
  }

  get id(): string {
    return this.journal.session;
  }

  /** Learns from a payload whose session this is. */
  meet(reading: HookReading, speaker: Speaker, { project, userSettings }: Places, from?: Inside): void {
    this.isAttached = from?.isAttached ?? false;
    this.client = speaker.client ?? this.client;
    if (speaker.isNamed) this.named = speaker.client;
    this.transcriptPath = reading.facts.transcriptPath ?? this.transcriptPath;
    this.project = project ?? this.project;
    if (userSettings !== undefined && isAbsolute(userSettings) && this.userSettings.size < MAX_NAMED)
      this.userSettings.add(userSettings);
  }

  /**
   * Notes, once, that this chain speaks from inside a confined session: which, and how far that one's chain was. The other chain is told how far
   * this one is. What cannot be noted is told again with the next payload.
   */
  async join(from: Inside & { joined(one: Joined): void }): Promise<void> {
    if (this.runs.has(from.run)) return;
    this.runs.add(from.run);
    try {
      const { run, entries, head } = from;
      await this.note('session.confined', { run, entries, head });
      from.joined({ session: this.id, agent: this.agent, entries: this.journal.entries, head: this.journal.head });
    } catch {
      this.runs.delete(from.run);
    }
  }

  /** Takes one payload; resolves when it is recorded as durably as its kind asks, or could not be. Never rejects. */
  async record(reading: HookReading, speaker: Speaker): Promise<Recorded> {
    const took = this.clock.now();
    this.lastTaken = took;
    const firstTool = reading.kind === 'tool.before' && !this.toolSeen;
    if (firstTool) this.toolSeen = true;
    for (const id of reading.facts.callIds ?? []) this.calls.add(id);
    let known: (seq: number | undefined) => void = () => undefined;
    try {
      const original = await this.duplicates.first(reading, took, new Promise((resolve) => (known = resolve)));
      const peer = { ...speaker.peer, ...reading.marks, ...(original === undefined ? {} : { duplicate_of: original }) };
      const draft = this.make(reading, peer, took);
      const marked = original === undefined ? (this.markCopy?.(draft) ?? draft) : draft;
      const seq = await this.append(marked, reading.decisive);
      known(seq);
      this.ended = false;
      return { ok: true, session: this.id, seq, firstTool };
    } catch (cause) {
      known(undefined);
      const error = cause instanceof Error ? cause : new Error(String(cause));
      this.losses.add((error as { code?: string }).code ?? error.name, took, reading.kind);
      return { ok: false, error };
    }
  }

  /** Appends an entry of the recorder about itself, durable. Rejects with the journal's error. */
  async note(kind: string, data: Record<string, unknown>): Promise<number> {
    const seq = await this.append(recorderDraft(this.clock.now(), kind, data), true);
    this.ended = kind === 'session.end';
    return seq;
  }

  /** Appends the gap entry for what was lost, now instead of before the next entry. */
  async tellLosses(): Promise<void> {
    const lost = this.losses.take();
    if (lost === undefined) return;
    try {
      await this.append(recorderDraft(this.clock.now(), 'gap', lost.data), true);
    } catch (error) {
      this.losses.putBack(lost);
      throw error;
    }
  }

  /** Makes everything durable. */
  async sync(): Promise<void> {
    clearTimeout(this.commit);
    this.commit = undefined;
    await this.journal.sync();
  }

  /** Seals what is written and makes it durable. */
  async seal(): Promise<{ entries: number; head: string }> {
    const head = await this.journal.seal();
    return { entries: head.entries, head: head.hash };
  }

  /** Waits for what is under way, tells what was lost, seals and closes; the session may be opened again. */
  async close(): Promise<void> {
    if (this.active > 0) await new Promise<void>((resolve) => this.quiet.push(resolve));
    clearTimeout(this.commit);
    if (!this.broken) await this.tellLosses().catch(() => undefined);
    await this.journal.close({ seal: true });
  }

  private async append(draft: JournalDraft, durable: boolean): Promise<number> {
    this.active++;
    const lost = this.losses.take();
    const drafts = lost === undefined ? [draft] : [recorderDraft(this.clock.now(), 'gap', lost.data), draft];
    try {
      const appended = await this.journal.append(drafts, { sync: durable });
      if (!durable) this.commit ??= setTimeout(() => void this.commitNow(), COMMIT_WINDOW_MS);
      this.onAppended(this);
      return appended.at(-1)?.seq ?? -1;
    } catch (error) {
      if (lost !== undefined) this.losses.putBack(lost);
      this.broken ||= this.journal.stopped !== undefined;
      throw error;
    } finally {
      this.active--;
      if (this.active === 0) for (const resolve of this.quiet.splice(0)) resolve();
    }
  }

  private async commitNow(): Promise<void> {
    this.commit = undefined;
    // A sync that fails stops the journal; the next append says so, and the gap is told once the session is open again.
    await this.journal.sync().catch(() => (this.broken = true));
  }
}
