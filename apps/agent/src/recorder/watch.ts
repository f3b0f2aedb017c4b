import type { Clock } from '@nd7/entry';
import { markOpen } from './open-marks.js';
import { clientAlive } from './peer.js';
import type { SessionWriter } from './session.js';
import type { Sessions } from './sessions.js';
import { SettingsWatch, settingsFiles } from './settings-watch.js';
import type { Silencing } from './settings-watch.js';
import { SilenceWatch } from './silence.js';

/** How often open sessions are looked at. With none open there is no timer. */
const LOOK_MS = 3_000;
/** A session whose client cannot be seen, or that has ended, is closed after so much silence; the next payload opens it again. */
const IDLE_CLOSE_MS = 10 * 60_000;
const ENDED_CLOSE_MS = 6_000;

export interface WatchOptions {
  sessions: Sessions;
  clock: Clock;
  home: string;
  /** Folder of the client's user settings. */
  userSettings: string;
  lookMs: number | undefined;
  warn(line: string): void;
}

/** What the watch keeps of one session. */
interface Observed {
  silence: SilenceWatch;
  settings: SettingsWatch;
  /** Silencings already told, by file and way. */
  told: Set<string>;
  /** The client the open mark names; 0: none is known. */
  marked: number | undefined;
}

/** Looks at the open sessions every few seconds: is the client still there, do its hooks still speak, is the tail sealed in time. */
export class Watch {
  private timer: NodeJS.Timeout | undefined;
  private readonly observed = new WeakMap<SessionWriter, Observed>();
  private stopped = false;
  /** Rounds so far. */
  looks = 0;

  constructor(private readonly options: WatchOptions) {}

  /** Starts looking, if it does not already. */
  wake(): void {
    if (this.stopped || this.timer !== undefined || this.options.sessions.all().length === 0) return;
    this.timer = setTimeout(() => void this.look(), this.options.lookMs ?? LOOK_MS);
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  /** A silencing that the ConfigChange hook has told of already. */
  told(session: SessionWriter, silencing: Silencing): void {
    this.of(session).told.add(`${silencing.how} ${silencing.file}`);
  }

  private async look(): Promise<void> {
    for (const [id, session] of this.options.sessions.all()) {
      try {
        await this.lookAt(id, session);
      } catch (error) {
        this.options.warn(`session ${id}: ${error instanceof Error ? error.message : String(error)}`);
        if (session.broken) this.options.sessions.drop(id, session);
      }
    }
    this.looks++;
    this.timer = undefined;
    this.wake();
  }

  private async lookAt(id: string, session: SessionWriter): Promise<void> {
    const { sessions, clock } = this.options;
    const quiet = clock.now() - session.lastTaken;
    if (session.client !== undefined && !clientAlive(session.client)) {
      await this.listenForSilence(session, true);
      if (!session.ended) await session.note('session.end', { reason: 'process gone', client: session.client });
      return sessions.close(id);
    }
    if (session.ended && quiet > ENDED_CLOSE_MS) return sessions.close(id);
    if (session.client === undefined && quiet > IDLE_CLOSE_MS) return sessions.close(id);
    this.mark(id, session);
    await this.listenForSilence(session);
    if (sessions.losses(id).any) await session.tellLosses();
    await session.journal.maintain();
  }

  /** Notes on the disk whose session this is, for a later recorder; does nothing while that has not changed. */
  mark(id: string, session: SessionWriter): void {
    const isNew = !this.observed.has(session);
    const observed = this.of(session);
    if (isNew) observed.silence.look(session.transcriptPath, session.calls, this.options.clock.now());
    const client = session.client?.pid ?? 0;
    if (observed.marked === client) return;
    observed.marked = client;
    markOpen(this.options.home, { session: id, agent: session.agent, client: session.client });
  }

  /** Alarms for what was done in silence; `isLast` before the session's end is written. */
  async listenForSilence(session: SessionWriter, isLast = false): Promise<void> {
    if (session.agent !== 'claude-code' || session.ended) return;
    const observed = this.of(session);
    const now = this.options.clock.now();
    const calls = observed.silence.look(session.transcriptPath, session.calls, now, isLast);
    if (calls.length > 0)
      await session.note('alarm', {
        reason: 'hooks silent',
        detail: 'the client made tool calls that no hook told of',
        tool_use_ids: calls.slice(0, 100),
        calls: calls.length,
      });
    for (const silencing of observed.settings.look(settingsFiles(session.project, this.options.userSettings))) {
      const key = `${silencing.how} ${silencing.file}`;
      if (observed.told.has(key)) continue;
      observed.told.add(key);
      await session.note('alarm', { reason: 'silencing', how: silencing.how, file: silencing.file });
    }
  }

  private of(session: SessionWriter): Observed {
    let observed = this.observed.get(session);
    if (observed === undefined) {
      observed = {
        silence: new SilenceWatch(),
        settings: new SettingsWatch(this.options.home),
        told: new Set(),
        marked: undefined,
      };
      this.observed.set(session, observed);
    }
    return observed;
  }
}
