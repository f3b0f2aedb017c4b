import type { Clock, Random } from '@nd7/entry';
import { adapterFor, NO_OPINION } from '@nd7/hooks';
import { chainOf } from '@nd7/journal';
import type { EndReason, Home } from '@nd7/journal';
import type { Peer } from '@nd7/kernel';
import type { AwayReason, SessionMark } from '@nd7/ship';
import type { KeyPair } from '@nd7/signing';
import type { RecorderConfig } from './config.js';
import { endDeadSessions, hasDoor } from './doors.js';
import type { Answer, Request } from './frames.js';
import { markOf } from './heartbeat.js';
import { Hooks } from './hooks.js';
import { HOOK_INSIDE } from './inside.js';
import { takeMissed } from './missed.js';
import { openMarks } from './open-marks.js';
import { clientAlive, isBelow, speaker } from './peer.js';
import type { SessionWriter } from './session.js';
import { Sessions } from './sessions.js';
import type { LogFailure, ShipHost, ShipLoop } from './ship-loop.js';
import { Watch } from './watch.js';

/** Why a chain ends, by what was found when it was shipped. */
const END_OF: Record<LogFailure, EndReason> = {
  fork: 'forked',
  disagrees: 'forked',
  'log-behind': 'shortened',
  'log-broken': 'broken',
};

export interface RecorderOptions {
  home: Home;
  clock: Clock;
  random: Random;
  machine: KeyPair;
  config(): RecorderConfig;
  version: string;
  /** How often open sessions are looked at, ms. */
  lookMs?: number;
  /** Says what a person should know, on the recorder's own log. */
  warn(line: string): void;
}

/**
 * The resident recorder: every payload becomes an entry of its session, in order, as durable as its kind asks, before it is
 * answered; sessions are ended, sealed and closed when their clients are gone. It knows nothing of sockets: server.ts calls `answer`.
 */
export class Recorder implements ShipHost {
  private readonly sessions: Sessions;
  private readonly watch: Watch;
  private readonly hooks: Hooks;
  private shipLoop: ShipLoop | undefined;
  private shipLoading: Promise<unknown> = Promise.resolve();
  private readonly started: number;
  private stopping = false;

  constructor(private readonly options: RecorderOptions) {
    this.started = options.clock.now();
    this.sessions = new Sessions(options.home, { ...options, rules: () => options.config().detach }, (session) => {
      this.shipLoop?.notice(session.id);
      if (this.sessions.all().length === 0) this.shipLoop?.settle();
    });
    this.watch = new Watch({
      sessions: this.sessions,
      clock: options.clock,
      home: options.home,
      lookMs: options.lookMs,
      warn: options.warn,
    });
    this.hooks = new Hooks({
      home: options.home,
      clock: options.clock,
      sessions: this.sessions,
      watch: this.watch,
      config: options.config,
      shipping: () => this.shipLoading,
      shipLoop: () => this.shipLoop,
      warn: options.warn,
    });
  }

  get home(): string {
    return this.options.home.root;
  }

  /** How often the open sessions have been looked at. */
  get looks(): number {
    return this.watch.looks;
  }

  /** Takes up what an earlier recorder left: sessions that were open, entries the shim could not hand over. */
  async recover(): Promise<void> {
    for (const mark of openMarks(this.home)) {
      try {
        const writer = await this.sessions.writer(mark.session, mark.agent, {});
        writer.client = mark.client;
        if (mark.isNamed) writer.named = mark.client;
        if (mark.client === undefined || !clientAlive(mark.client)) {
          const reason = mark.client === undefined ? 'client unknown' : 'process gone';
          await writer.note('session.end', { reason, noticed: 'recorder started' });
          await this.sessions.close(mark.session);
        }
      } catch (error) {
        this.options.warn(`session ${mark.session} cannot be taken up again: ${message(error)}`);
      }
    }
    await this.tellMissed();
    await this.endDead('recorder started');
    this.watch.wake();
  }

  /** The front of a confined session has hung up: where it was killed, its end is written. Its lock may be given back a moment later. */
  async frontGone(session: string): Promise<void> {
    for (let attempt = 0; attempt < 50 && hasDoor(this.home, session); attempt++) {
      await this.endDead('its front hung up');
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Ends the confined sessions whose front was killed. */
  async endDead(noticed: string): Promise<void> {
    try {
      for (const session of await endDeadSessions(this.options.home, noticed)) this.shipLoop?.notice(session);
    } catch (error) {
      this.options.warn(`ending confined sessions: ${message(error)}`);
    }
  }

  /** Answers one request. Never rejects: whatever goes wrong becomes an answer. */
  async answer(request: Request, peer: Peer): Promise<Answer> {
    try {
      switch (request.op) {
        case 'hook':
          return await this.hooks.hook(request, peer);
        case HOOK_INSIDE:
          return await this.hooks.hookInside(request, peer);
        case 'status':
          return json(this.status());
        case 'ship':
          return await this.flush(request);
        case 'sleep':
          return json({ announced: (await this.shipLoop?.away('sleep')) ?? false });
        default:
          return { exit: 2, stdout: '', stderr: `nd7: this recorder does not know "${request.op.slice(0, 40)}"` };
      }
    } catch (error) {
      this.options.warn(`${request.op}: ${message(error)}`);
      if (request.op !== 'hook') return { exit: 1, stdout: '', stderr: `nd7: ${message(error)}` };
      // Nothing of it could even be read: it may have announced a call.
      this.sessions.unplaced.add('internal', this.options.clock.now(), 'unknown');
      const text = `nd7 could not record this payload, and recording is required: ${message(error)}`;
      return this.options.config().recording === 'required' ? { exit: 2, stdout: '', stderr: text } : NO_OPINION;
    }
  }

  /** Seals and closes every session and tells the vault that this machine will not be heard; nothing is accepted any more. */
  async stop(reason: AwayReason = 'stopped'): Promise<void> {
    this.stopping = true;
    this.watch.stop();
    const left = this.sessions.all().flatMap(([, writer]) => (writer.ended ? [] : [writer.id]));
    for (const [id] of this.sessions.all())
      await this.sessions.close(id).catch((error: unknown) => this.options.warn(`closing ${id}: ${message(error)}`));
    await this.endDead('recorder stopped');
    const marks = left.flatMap((session) => markOf(this.options.home, session));
    if (this.shipLoop !== undefined && !(await this.shipLoop.away(reason, marks)))
      this.options.warn('the vault could not be told that this recorder stops: it will miss this machine');
    await this.shipLoop?.stop();
  }

  /** Somebody asks this recorder to stop. From within an agent whose session is open that is an alarm in the session. */
  async askedToStop(peer: Peer): Promise<void> {
    for (const [, writer] of this.sessions.all()) {
      if (writer.client === undefined || writer.ended || !isBelow(peer.pid, writer.client, true)) continue;
      const detail = 'a process below the client asked the recorder to stop while the session is open';
      const { peer: by } = speaker(peer.pid, peer.uid, undefined);
      await writer
        .note('alarm', { reason: 'recorder stopped', detail, by })
        .catch((error: unknown) => this.options.warn(message(error)));
    }
  }

  /** The sessions that are open here, each with what is on the disk of it. */
  async open(): Promise<SessionMark[]> {
    const marks: SessionMark[] = [];
    for (const [, writer] of this.sessions.all().reverse()) {
      // What a power cut could still take must not be promised. A journal that has failed says what it had.
      await writer.sync().catch(() => undefined);
      const { entries, hash } = writer.journal.durable;
      marks.push({ session: writer.id, entries, head: hash });
    }
    return marks;
  }

  /** Takes a loop that ships from now on, or none. */
  ship(loop: ShipLoop | undefined): void {
    void this.shipLoop?.stop();
    this.shipLoop = loop;
    for (const [, writer] of this.sessions.all()) loop?.notice(writer.id);
  }

  /** A loop that ships is being loaded, where this machine is enrolled: the first tool call waits for that as it waits for a pin. */
  shipSoon(loading: Promise<unknown>): void {
    this.shipLoading = loading;
  }

  async seal(session: string): Promise<{ entries: number; head: string }> {
    const open = this.openAs(session);
    return open === undefined ? this.sessions.sealClosed(session) : open.seal();
  }

  async goOn(session: string, reason: LogFailure, detail: string): Promise<void> {
    if (chainOf(this.options.home, session).session !== session) return;
    const wasOpen = this.openAs(session) !== undefined;
    const writer = await this.sessions.continueAfter(session, END_OF[reason]);
    await writer.note('alarm', { reason, detail, session });
    if (wasOpen) this.watch.wake();
    else await this.sessions.close(writer.journal.asked);
  }

  async note(session: string, kind: string, data: Record<string, unknown>): Promise<void> {
    const open = this.openAs(session);
    if (open !== undefined) return void (await open.note(kind, data));
    await (await this.sessions.writer(session, 'unknown', {})).note(kind, data);
    await this.sessions.close(session);
  }

  /** The writer of a chain, by the chain's own id. */
  private openAs(session: string): SessionWriter | undefined {
    return this.sessions.all().find(([, writer]) => writer.id === session)?.[1];
  }

  private async flush(request: Request): Promise<Answer> {
    if (this.shipLoop === undefined)
      return { exit: 1, stdout: json({ error: 'not-enrolled' }).stdout, stderr: 'nd7: this machine is not enrolled' };
    const asked = JSON.parse(request.payload.toString('utf8') || '{}') as { sessions?: string[] };
    for (const [, writer] of this.sessions.all()) await writer.sync().catch(() => undefined);
    return json(await this.shipLoop.flush(asked.sessions));
  }

  /** Gap entries for what the shim could not hand over while no recorder answered. */
  async tellMissed(): Promise<void> {
    const { missed, done } = await takeMissed(this.home);
    const sessions = new Set<string>();
    for (const { session, agent, at, event, reason } of missed) {
      const kind = event === undefined ? 'unknown' : adapterFor(agent).kindOf({ event });
      if (session === undefined) this.sessions.unplaced.add(reason, at, kind);
      else {
        sessions.add(session);
        this.sessions.losses(session).add(reason, at, kind);
      }
    }
    for (const session of sessions) {
      const agent = missed.find((one) => one.session === session)?.agent ?? 'unknown';
      try {
        await (await this.sessions.writer(session, agent, { agent })).tellLosses();
      } catch (error) {
        this.options.warn(`missed entries of ${session} cannot be told yet: ${message(error)}`);
        return; // the markers stay for the next recorder
      }
    }
    if (!this.sessions.unplaced.any) done();
    else this.sessions.onPlaced = done;
  }

  private status(): Record<string, unknown> {
    return {
      pid: process.pid,
      version: this.options.version,
      started: new Date(this.started).toISOString(),
      home: this.home,
      stopping: this.stopping,
      recording: this.options.config().recording,
      sessions: this.sessions.all().map(([id, writer]) => ({
        session: writer.id,
        ...(id === writer.id ? {} : { agent_session: id }),
        agent: writer.agent,
        entries: writer.journal.entries,
        head: writer.journal.head,
        sealed_to: writer.journal.sealedTo,
        last_time: new Date(writer.lastTaken).toISOString(),
        ended: writer.ended,
        ...(writer.client === undefined ? {} : { client_pid: writer.client.pid }),
      })),
      ship: this.shipLoop?.status() ?? null,
    };
  }
}

function json(value: unknown): Answer {
  return { exit: 0, stdout: `${JSON.stringify(value)}\n`, stderr: '' };
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
