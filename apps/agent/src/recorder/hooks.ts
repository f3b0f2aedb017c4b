import { existsSync } from 'node:fs';
import type { Clock } from '@nd7/entry';
import { NO_OPINION, readHook } from '@nd7/hooks';
import type { HookReading } from '@nd7/hooks';
import type { Home } from '@nd7/journal';
import type { Peer } from '@nd7/kernel';
import type { RecorderConfig } from './config.js';
import { environmentOf } from './frames.js';
import type { Answer, Request } from './frames.js';
import { configFor, insideOf, mayName, speakerInside } from './inside.js';
import type { Inside, Joined } from './inside.js';
import { speaker, unnamedSession } from './peer.js';
import type { Speaker } from './peer.js';
import { answerSilencing, answerUnpinned, answerUnrecorded } from './policy.js';
import type { Places, Recorded, SessionWriter } from './session.js';
import type { Sessions } from './sessions.js';
import { isMoot, silencedBy } from './settings-watch.js';
import type { ShipLoop } from './ship-loop.js';
import type { Watch } from './watch.js';

/** How long the first tool call of a session waits for the receipt that pins the session's first key. */
const PIN_WAIT_MS = 500;

/** What of the recorder it takes to answer hooks. */
export interface HookParts {
  home: Home;
  clock: Clock;
  sessions: Sessions;
  watch: Watch;
  config(): RecorderConfig;
  /** Resolves when what ships has been loaded, where this machine is enrolled. */
  shipping(): Promise<unknown>;
  shipLoop(): ShipLoop | undefined;
  warn(line: string): void;
}

/** What a payload becomes, and what its agent is answered: an entry of its session, as durable as its kind asks, before it is answered. */
export class Hooks {
  constructor(private readonly parts: HookParts) {}

  /** A hook that the front of a confined session hands on. The answer says besides which chain has joined the session by it. */
  async hookInside(request: Request, peer: Peer): Promise<Answer> {
    const from = insideOf(request, peer, this.parts.home.root);
    let joined: Joined | undefined;
    const answer = await this.hook(request, peer, { ...from, joined: (one) => (joined = one) });
    return json({ answer, ...(joined === undefined ? {} : { joined }) });
  }

  async hook(request: Request, peer: Peer, from?: FromInside): Promise<Answer> {
    const env = environmentOf(request);
    const agent = request.meta.get('agent') ?? '';
    const reading = readHook(request.payload, { agent, env, ...optional('took', request.meta.get('took')) });
    const { adapter } = reading;
    const named = (name: string | undefined): string | undefined => (name === undefined ? undefined : env[name]);
    const claimed = named(adapter.env.pid);
    const who = from === undefined ? speaker(peer.pid, peer.uid, claimed) : speakerInside(from, peer.uid, claimed);
    const places = { project: named(adapter.env.project), userSettings: named(adapter.env.userSettings) };
    const outcome = await this.record(reading, who, places, from);
    const config = configFor(this.parts.config(), from);
    if (!outcome.ok) {
      this.parts.warn(`not recorded (${reading.kind}): ${outcome.error.message}`);
      return answerUnrecorded(reading, config, outcome.error);
    }
    const writer = this.parts.sessions.get(outcome.asked);
    if (reading.kind === 'session.end' && writer !== undefined) void this.end(writer, reading);
    if (reading.facts.event === 'ConfigChange' && writer !== undefined)
      return this.configChange(reading, writer, config);
    return reading.kind === 'tool.before' ? this.awaitPin(reading, outcome) : NO_OPINION;
  }

  /** Records under the payload's session; an id that may not become a folder goes to the session of unnamed payloads. */
  private async record(
    reading: HookReading,
    who: Speaker,
    places: Places,
    from: FromInside | undefined,
  ): Promise<Recorded & { asked: string }> {
    const unnamed = unnamedSession(reading.adapter.agent, who.client);
    let asked = reading.session ?? unnamed;
    const fallBack = (): void => {
      Object.assign(reading.marks, { session_claimed: asked, session_from: 'recorder' });
      asked = unnamed;
    };
    const open = this.parts.sessions.get(asked);
    if (from !== undefined && !mayName(asked, from, open?.ended === false ? open.client : undefined)) fallBack();
    const start = {
      agent: reading.adapter.agent,
      ...optional('cwd', reading.facts.cwd),
      ...optional('project', places.project),
    };
    for (let attempt = 0; ; attempt++) {
      try {
        const writer = await this.parts.sessions.writer(asked, reading.adapter.agent, start);
        writer.meet(reading, who, places, from);
        if (from !== undefined) await writer.join(from);
        this.parts.watch.mark(asked, writer);
        this.parts.watch.wake();
        const outcome = await writer.record(reading, who);
        if (!writer.broken) return { ...outcome, asked };
        // Somebody cut the log, or the disk failed: this writer has stopped. Opening again recovers what is there.
        const code = (outcome.ok ? undefined : (outcome.error as { code?: string }).code) ?? '';
        this.parts.sessions.drop(asked, writer);
        await writer.journal.close().catch(() => undefined);
        if (outcome.ok || attempt > 0 || code === 'io') return { ...outcome, asked };
        this.parts.sessions.losses(asked).withdraw(reading.kind);
      } catch (error) {
        const code = (error as { code?: string }).code;
        if ((code === 'session-case' || code === 'session-id') && asked !== unnamed) {
          fallBack();
          continue;
        }
        this.parts.sessions.losses(asked).add(code ?? 'error', this.parts.clock.now(), reading.kind);
        return { ok: false, error: error instanceof Error ? error : new Error(String(error)), asked };
      }
    }
  }

  private async end(writer: SessionWriter, reading: HookReading): Promise<void> {
    try {
      await this.parts.watch.listenForSilence(writer, true);
      await writer.note('session.end', { reason: 'client ended', ...optional('client_reason', reading.facts.reason) });
      await writer.seal();
      this.parts.sessions.markEnded(writer);
    } catch (error) {
      this.parts.warn(`ending ${writer.id}: ${message(error)}`);
    }
  }

  /** A settings change that would silence the recorder is refused where recording is required, and an alarm either way. */
  private async configChange(reading: HookReading, writer: SessionWriter, config: RecorderConfig): Promise<Answer> {
    const file = reading.facts.filePath;
    const silencing = file === undefined ? undefined : silencedBy(file, this.parts.home.root);
    if (silencing === undefined || isMoot(silencing, writer)) return NO_OPINION;
    const { alarm, answer } = answerSilencing(reading, config, silencing);
    this.parts.watch.told(writer, silencing);
    await writer.note('alarm', alarm).catch((error: unknown) => this.parts.warn(message(error)));
    return answer;
  }

  /** The first tool call waits a moment for the receipt that pins the session's key; where the policy wants one, so does every other until it is there. */
  private async awaitPin(reading: HookReading, recorded: { session: string; firstTool: boolean }): Promise<Answer> {
    const isRequired = this.parts.config().pin === 'required';
    if (!isRequired && !recorded.firstTool) return NO_OPINION;
    const began = performance.now();
    await within(this.parts.shipping(), PIN_WAIT_MS);
    const left = Math.max(0, PIN_WAIT_MS - (performance.now() - began));
    const pinned = await this.parts.shipLoop()?.pinned(recorded.session, left);
    return pinned === true || !isRequired ? NO_OPINION : answerUnpinned(reading, existsSync(this.parts.home.vaultFile));
  }
}

/** A hook from inside, and who is told when a chain has joined its session. */
type FromInside = Inside & { joined(one: Joined): void };

function optional<K extends string>(key: K, value: string | undefined): Partial<Record<K, string>> {
  return value === undefined ? {} : ({ [key]: value } as Partial<Record<K, string>>);
}

/** Resolves when the work is done, or after so many milliseconds. */
async function within(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}

function json(value: unknown): Answer {
  return { exit: 0, stdout: `${JSON.stringify(value)}\n`, stderr: '' };
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
