import { uptime } from 'node:os';
import { formatTime, type Clock, type Random } from '@nd7/entry';
import type { Signer } from '@nd7/tlog';
import { HEARTBEAT_SESSIONS } from '@nd7/vault-api';
import { VaultClient } from './client.js';
import { messageOf } from './disk.js';
import type { VaultFile } from './vault-file.js';

/** What a machine says of one session: the prefix that is on its disk, so that a later, shorter one is noticed. */
export interface SessionMark {
  session: string;
  entries: number;
  /** Hash after the last of them, 64 hex. */
  head: string;
}

/** Why a machine will not be heard for a while: nothing is to be done, its recorder was stopped, the host goes to sleep, nd7 was detached. */
export type AwayReason = 'idle' | 'stopped' | 'sleep' | 'uninstalled';

export interface HeartOptions {
  vault: VaultFile;
  /** The machine's key. */
  signer: Signer;
  clock: Clock;
  random: Random;
  /** Sessions that are open here or not wholly shipped, each once, newest first; beyond a thousand they are not told. None: there is nothing to do. */
  sessions(): Promise<readonly SessionMark[]>;
  /** Between heartbeats, milliseconds; they come up to a fifth sooner, so that machines do not beat together. */
  intervalMs?: number;
  /** From the first entry after a rest, or from when there may be nothing left to do, to the heartbeat that says so, milliseconds. */
  soonMs?: number;
  /** For one heartbeat, milliseconds. */
  timeoutMs?: number;
  /** Milliseconds this host has been up, and of them those it was awake; only differences count. */
  running?(): { up: number; awake: number };
  /** Told after each try. */
  onBeat?(status: HeartStatus): void;
}

/** For `nd7 status`; snake_case. */
export interface HeartStatus {
  interval_seconds: number;
  /** When the vault took the last one, by this machine's clock. */
  last: string | null;
  /** What was announced with it. */
  away?: AwayReason;
  /** Seconds this machine's clock is ahead of the vault's. */
  clock_ahead_seconds?: number;
  /** Tries since then that came to nothing, and why the last did. */
  failures: number;
  problem?: string;
}

/** A machine with something to do is heard again within this time, milliseconds. */
export const HEARTBEAT_MS = 60_000;
const SOON_MS = 1_000;
/** So often it looks again where something is still under way. */
const MORE_LOOKS = 3;
/** A host that lost so much time to suspension says so. */
const SLEPT_MS = 15_000;
/** A recorder that is told to stop waits no longer for the vault. */
const LEAVING_MS = 2_000;

/**
 * The heartbeats of one machine: while a session is open or unshipped the vault hears within HEARTBEAT_MS that the machine is there and how far each session
 * is; then one that announces rest, after which no timer runs. It never throws into its caller: a vault that cannot be reached is in `status`.
 */
export class Heart {
  readonly #client: VaultClient;
  readonly #stop = new AbortController();
  readonly #interval: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer fires, ms of `performance.now()`. */
  #due = Infinity;
  #looks = 0;
  #turn: Promise<unknown> = Promise.resolve();
  #last: number | undefined;
  #ran: { up: number; awake: number } | undefined;
  #away: AwayReason | undefined;
  #ahead: number | undefined;
  #failures = 0;
  #problem: string | undefined;

  constructor(private readonly options: HeartOptions) {
    const { vault, signer, clock, random, timeoutMs = 15_000 } = options;
    this.#interval = options.intervalMs ?? HEARTBEAT_MS;
    this.#client = new VaultClient({
      url: vault.url,
      access: { machine: vault.machine, token: vault.token, signer },
      clock,
      random,
      timeoutMs,
      signal: this.#stop.signal,
    });
  }

  /** There is something to do: ends a rest. Costs nothing while there is none. */
  wake(): void {
    if (this.#timer === undefined) this.#schedule(this.options.soonMs ?? SOON_MS);
  }

  /** There may be nothing to do any more: looks soon, and announces it. */
  settle(): void {
    const isResting = this.#timer === undefined && this.#away !== undefined;
    this.#looks = MORE_LOOKS;
    if (!isResting) this.#schedule(this.options.soonMs ?? SOON_MS, true);
  }

  /**
   * Says that the machine will not be heard for a while; `sessions` are those left open, where they are not open any more as far as `options.sessions` knows. Tries
   * once, 2 s at most; false where the vault did not take it. After `sleep` it goes on beating: a machine that does is awake.
   */
  async away(reason: AwayReason, sessions?: readonly SessionMark[]): Promise<boolean> {
    this.#schedule(reason === 'sleep' ? this.#pause() : undefined);
    const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), LEAVING_MS).unref());
    return Promise.race([this.#inTurn(() => this.#beat(reason, sessions)), late]);
  }

  /** Ends what is under way and sends nothing any more. */
  async stop(): Promise<void> {
    this.#schedule(undefined);
    this.#stop.abort();
    await this.#turn;
  }

  status(): HeartStatus {
    return {
      interval_seconds: this.#interval / 1000,
      last: this.#last === undefined ? null : formatTime(this.#last),
      ...(this.#away !== undefined && { away: this.#away }),
      ...(this.#ahead !== undefined && { clock_ahead_seconds: Math.round(this.#ahead / 1000) }),
      failures: this.#failures,
      ...(this.#problem !== undefined && { problem: this.#problem }),
    };
  }

  /** The next look in so many milliseconds, unless one comes sooner; none with undefined. `ifIdle`: it beats only where there is nothing to do. */
  #schedule(delay: number | undefined, ifIdle = false): void {
    if (this.#stop.signal.aborted) return;
    const due = performance.now() + (delay ?? Infinity);
    if (delay !== undefined && due >= this.#due) return;
    const instead = ifIdle ? this.#due : undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#due = due;
    if (delay === undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#due = Infinity;
      void this.#inTurn(() => this.#tick(instead));
    }, delay);
  }

  /** Beats. With `instead`, when the next heartbeat was due, only where there is nothing to do; else that one comes as it was due. */
  async #tick(instead: number | undefined): Promise<void> {
    if (instead !== undefined) {
      if (!(await this.#isIdle())) {
        this.#schedule(instead === Infinity ? this.#pause() : Math.max(0, instead - performance.now()));
        // What is under way may be done in a moment, and nobody tells of that.
        if (this.#looks-- > 0) this.#schedule(5 * (this.options.soonMs ?? SOON_MS), true);
        return;
      }
      if (this.#away === 'idle') return; // announced meanwhile
    }
    const isTaken = await this.#beat();
    if (!isTaken || this.#away === undefined) this.#schedule(this.#pause());
  }

  async #isIdle(): Promise<boolean> {
    try {
      return (await this.options.sessions()).length === 0;
    } catch {
      return false;
    }
  }

  /** One heartbeat; true where the vault took it. Never rejects. */
  async #beat(reason?: AwayReason, left?: readonly SessionMark[]): Promise<boolean> {
    const { clock, running = hostRunning, onBeat } = this.options;
    try {
      const sessions = (left ?? (await this.options.sessions())).slice(0, HEARTBEAT_SESSIONS);
      const away = reason ?? (sessions.length === 0 ? 'idle' : undefined);
      const [ran, now] = [running(), clock.now()];
      const slept = this.#slept(ran, now);
      const { time } = await this.#client.heartbeat({
        time: formatTime(now),
        sessions,
        ...(away === undefined
          ? { interval: Math.max(1, Math.ceil(this.#interval / 1000)) }
          : { away: { reason: away } }),
        ...(slept && { slept }),
      });
      const theirs = Date.parse(time);
      this.#ahead = Number.isNaN(theirs) ? undefined : (now + clock.now()) / 2 - theirs;
      [this.#last, this.#ran, this.#away, this.#failures, this.#problem] = [now, ran, away, 0, undefined];
    } catch (error) {
      this.#failures += 1;
      this.#problem = messageOf(error);
    }
    onBeat?.(this.status());
    return this.#failures === 0;
  }

  /** Whether the host was suspended since the last heartbeat; that it was away is known already where it had announced it. */
  #slept(ran: { up: number; awake: number }, now: number): { from: string; to: string } | undefined {
    if (this.#ran === undefined || this.#last === undefined || this.#away !== undefined) return undefined;
    const lost = ran.up - this.#ran.up - (ran.awake - this.#ran.awake);
    return lost < SLEPT_MS ? undefined : { from: formatTime(this.#last), to: formatTime(now) };
  }

  /** Also after one that was not taken: a vault that is back hears of everybody within one interval. */
  #pause(): number {
    const [random = 0] = this.options.random(1);
    return this.#interval * (1 - random / 1280);
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(task);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}

/** The kernel's clock of uptime counts suspended time, the one of timers does not (Linux). */
function hostRunning(): { up: number; awake: number } {
  return { up: uptime() * 1000, awake: performance.now() };
}
