import type { Clock, Random } from '@nd7/entry';
import { continueSession, openSession, readReceipts } from '@nd7/journal';
import type { EndReason, Home, Journal } from '@nd7/journal';
import { genesis } from '@nd7/chain';
import { parseReceipt } from '@nd7/receipt';
import type { KeyPair } from '@nd7/signing';
import { SecretMemory } from '@nd7/detach';
import type { DetachRules } from '@nd7/detach';
import { draftMaker, rememberSecrets } from './draft.js';
import { COPY_WINDOW_MS, markCopy } from './duplicates.js';
import { Losses } from './losses.js';
import type { Lost } from './losses.js';
import { markClosed } from './open-marks.js';
import { SessionWriter } from './session.js';

/** What opening a session takes. */
export interface SessionOptions {
  clock: Clock;
  random: Random;
  machine: KeyPair;
  /** nd7's version, for entry 0. */
  version: string;
  /** What a policy holds back, as it is now. */
  rules(): DetachRules;
}

/** The open sessions of one recorder, by the id the agent uses. */
export class Sessions {
  private readonly open = new Map<string, Promise<SessionWriter>>();
  private readonly writers = new Map<string, SessionWriter>();
  private readonly lost = new Map<string, Losses>();
  /** What was done to a log while it was open here, by the agent's id: told once it is open again. */
  private readonly changed = new Map<string, string>();

  /** What was lost without a word of whose it was: told in the next session that is opened. */
  readonly unplaced = new Losses();
  /** Called when `unplaced` has found its place. */
  onPlaced: (() => void) | undefined;

  constructor(
    private readonly home: Home,
    private readonly options: SessionOptions,
    private readonly onAppended: (session: SessionWriter) => void,
  ) {}

  /** Open sessions, by the agent's id. */
  all(): [string, SessionWriter][] {
    return [...this.writers];
  }

  get(id: string): SessionWriter | undefined {
    return this.writers.get(id);
  }

  /** What was lost of a session, open or not. */
  losses(id: string): Losses {
    let losses = this.lost.get(id);
    if (losses === undefined) this.lost.set(id, (losses = new Losses()));
    return losses;
  }

  /** The writer of a session, opened (and begun) if need be. Rejects with the journal's error; nothing is kept open then. */
  writer(id: string, agent: string, start: Record<string, unknown>): Promise<SessionWriter> {
    const options = { ...this.options, start: { ...start, nd7: this.options.version } };
    return this.open.get(id) ?? this.keep(id, this.begin(id, agent, openSession(this.home, id, options)));
  }

  private keep(id: string, writer: Promise<SessionWriter>): Promise<SessionWriter> {
    this.open.set(id, writer);
    writer.then(
      (ready) => this.writers.set(id, ready),
      () => this.open.delete(id),
    );
    return writer;
  }

  /** Closes a session: what was lost is told, the tail sealed. A journal that fails here is dropped all the same. */
  async close(id: string): Promise<void> {
    const writer = this.drop(id);
    if (writer === undefined) return;
    try {
      await writer.close();
      this.onAppended(writer); // the seal
    } finally {
      if (writer.ended) markClosed(this.home.root, id);
      if (this.lost.get(id)?.any === false && !this.open.has(id)) this.lost.delete(id);
    }
  }

  /** The session has its end: a later recorder need not look for its client. */
  markEnded(writer: SessionWriter): void {
    markClosed(this.home.root, writer.journal.asked);
  }

  /** Seals a session that is not open here; 0 entries where that chain has ended for good. */
  async sealClosed(session: string): Promise<{ entries: number; head: string }> {
    const journal = await openSession(this.home, session, this.options);
    try {
      // A chain that cannot go on leads to its continuation here: it is shipped as far as it is sealed.
      if (journal.session !== session) return { entries: 0, head: '' };
      const { entries, hash } = await journal.seal();
      return { entries, head: hash };
    } finally {
      await journal.close();
    }
  }

  /** Begins the chain that continues `session` after what was last receipted of it, and puts it in the place of the old one. */
  async continueAfter(session: string, why: EndReason): Promise<SessionWriter> {
    const [asked = session, old] = this.all().find(([, writer]) => writer.id === session) ?? [];
    if (old !== undefined) {
      this.drop(asked);
      await old.close().catch(() => undefined);
    }
    const journal = continueSession(this.home, { ...lastReceipted(this.home, session), why }, this.options);
    const writer = await this.keep(asked, this.begin(asked, old?.agent ?? 'unknown', journal));
    if (old !== undefined)
      Object.assign(writer, {
        client: old.client,
        named: old.named,
        transcriptPath: old.transcriptPath,
        project: old.project,
        userSettings: old.userSettings,
      });
    return writer;
  }

  /** Forgets a writer whose journal failed, unless another has taken its place; the next payload opens the session again, which recovers it. */
  drop(id: string, only?: SessionWriter): SessionWriter | undefined {
    const writer = this.writers.get(id);
    if (only !== undefined && writer !== only) return undefined;
    this.writers.delete(id);
    this.open.delete(id);
    const failure = writer?.journal.stopped;
    if (failure?.code === 'changed') this.changed.set(id, failure.message);
    return writer;
  }

  private async begin(id: string, agent: string, opening: Promise<Journal>): Promise<SessionWriter> {
    const { clock, random, rules } = this.options;
    const journal = await opening;
    const memory =
      journal.opened === 'created' ? new SecretMemory() : await rememberSecrets(this.home, journal.session);
    const make = draftMaker({ memory, rules, random });
    const writer = new SessionWriter(journal, agent, this.losses(id), make, clock, this.onAppended);
    if (journal.opened === 'resumed') {
      writer.markCopy = (draft) => markCopy(this.home, journal.session, draft);
      setTimeout(() => (writer.markCopy = undefined), COPY_WINDOW_MS).unref();
    }
    // Begun before this recorder held it: by an earlier recorder, by fall-back hooks, or it is resumed.
    if (journal.opened === 'resumed' && journal.entries > 1)
      await writer.note('session.resume', { by: 'recorder', after: journal.entries }).catch(() => undefined);
    const detail = this.changed.get(id);
    if (detail !== undefined)
      await writer.note('alarm', { reason: 'log changed', detail }).then(
        () => this.changed.delete(id),
        () => undefined,
      );
    if (this.unplaced.any) {
      this.losses(id).putBack(this.unplaced.take() as Lost);
      await writer.tellLosses().then(
        () => this.onPlaced?.(),
        () => undefined,
      );
    }
    return writer;
  }
}

/** The newest point of a session that a receipt on this disk speaks of; its beginning where there is none. */
function lastReceipted(home: Home, session: string): { session: string; entries: number; head: string } {
  for (const { text } of readReceipts(home, session).reverse()) {
    const statement = parseReceipt(text)?.statement;
    if (statement?.type === 'head' && statement.session === session)
      return { session, entries: statement.to, head: statement.head };
  }
  return { session, entries: 0, head: genesis(session) };
}
