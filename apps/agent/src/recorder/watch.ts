import { formatTime, type Clock } from '@nd7/entry';
import type { Home } from '@nd7/journal';
import { markOpen } from './open-marks.js';
import { clientAlive } from './peer.js';
import type { SessionWriter } from './session.js';
import type { Sessions } from './sessions.js';
import { usualSettingsFolders } from './settings-paths.js';
import { hasStatusLine, isMoot, SettingsWatch, settingsFiles } from './settings-watch.js';
import type { Silencing } from './settings-watch.js';
import { ProcessWatch, SilenceWatch } from './silence.js';
import { callsToldOf, lastToldAt } from './told-calls.js';

/** How often open sessions are looked at. With none open there is no timer. */
const LOOK_MS = 3_000;
/** A session whose client cannot be seen, or that has ended, is closed after so much silence; the next payload opens it again. */
const IDLE_CLOSE_MS = 10 * 60_000;
const ENDED_CLOSE_MS = 6_000;

export interface WatchOptions {
  sessions: Sessions;
  clock: Clock;
  home: Home;
  lookMs: number | undefined;
  warn(line: string): void;
}

/** What the watch keeps of one session. */
interface Observed {
  silence: SilenceWatch;
  programs: ProcessWatch;
  settings: SettingsWatch;
  /** Silencings already told, by file and way. */
  told: Set<string>;
  /** What the open mark says of the client. */
  marked: string | undefined;
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
      if (!session.ended)
        await session.note('session.end', {
          reason: 'process gone',
          client: session.client,
          isNamed: session.named !== undefined,
        });
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
    const mark = { session: id, agent: session.agent, client: session.client, isNamed: session.named !== undefined };
    const state = `${mark.client?.pid ?? ''} ${mark.isNamed}`;
    if (observed.marked === state) return;
    observed.marked = state;
    markOpen(this.options.home.root, mark);
  }

  /** Alarms for what was done in silence; `isLast` before the session's end is written. */
  async listenForSilence(session: SessionWriter, isLast = false): Promise<void> {
    if (session.agent !== 'claude-code' || session.ended) return;
    const observed = this.of(session);
    const now = this.options.clock.now();
    const { silent, hasTranscript } = observed.silence.look(session.transcriptPath, session.calls, now, isLast);
    // Told past this recorder, perhaps, or to the one before it: what counts is what stands in the log.
    const told = silent.length === 0 ? silent : callsToldOf(this.options.home, session.id);
    const calls = silent.filter((id) => !told.includes(id));
    if (calls.length > 0)
      await session.note('alarm', {
        reason: 'hooks silent',
        how: 'transcript',
        detail: 'the client made tool calls that no hook told of',
        tool_use_ids: calls.slice(0, 100),
        calls: calls.length,
      });
    if (!hasTranscript) await this.listenForPrograms(session, now);
    for (const silencing of observed.settings.look(this.settingsOf(session))) {
      const key = `${silencing.how} ${silencing.file}`;
      if (observed.told.has(key) || isMoot(silencing, session)) continue;
      observed.told.add(key);
      await session.note('alarm', { reason: 'silencing', how: silencing.how, file: silencing.file });
    }
  }

  /**
   * An alarm where the client's process goes on starting programs while its hooks are silent. One client may have several sessions. What a hook has not
   * named may be a program around the client, which has reasons of its own.
   */
  private async listenForPrograms(session: SessionWriter, now: number): Promise<void> {
    const { named: client } = session;
    if (client === undefined) return;
    const sessions = this.options.sessions.all().filter(([, one]) => one.named?.pid === client.pid);
    const heard = Math.max(...sessions.map(([, one]) => one.lastTaken));
    const since = this.of(session).programs.look(client, heard, now);
    // A status line is a program that the client runs on its own; and a hook may have been recorded past this recorder.
    if (since === undefined || hasStatusLine(this.settingsOf(session))) return;
    if (sessions.some(([, one]) => lastToldAt(this.options.home, one.id) > heard)) return;
    await session.note('alarm', {
      reason: 'hooks silent',
      how: 'process',
      detail: 'the client writes no transcript that can be read, and its programs go on while no hook speaks',
      client,
      heard: formatTime(heard),
      since: formatTime(since),
    });
  }

  private settingsOf({ project, userSettings }: SessionWriter): string[] {
    return settingsFiles(project, new Set([...usualSettingsFolders(), ...userSettings]));
  }

  private of(session: SessionWriter): Observed {
    let observed = this.observed.get(session);
    if (observed === undefined) {
      observed = {
        silence: new SilenceWatch(this.options.clock.now()),
        programs: new ProcessWatch(),
        settings: new SettingsWatch(this.options.home.root),
        told: new Set(),
        marked: undefined,
      };
      this.observed.set(session, observed);
    }
    return observed;
  }
}
