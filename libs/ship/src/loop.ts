import type { Clock, Random } from '@nd7/entry';
import type { Signer } from '@nd7/tlog';
import { join } from 'node:path';
import { VaultClient } from './client.js';
import type { SessionSource } from './cut.js';
import { messageOf } from './disk.js';
import { ShipError, isShipError } from './error.js';
import { backOff, pause, type RetryPlan, type Sleep } from './retry.js';
import type { Alarm, ShipReport } from './report.js';
import { Shipper } from './shipper.js';
import { standingOf, type Standing, type Tracked } from './tracked.js';
import { checkKey, trustOf, type VaultFile } from './vault-file.js';

export interface ShipLoopOptions {
  /** `$ND7_HOME`. */
  home: string;
  vault: VaultFile;
  /** The machine's key. */
  signer: Signer;
  clock: Clock;
  random: Random;
  /** A session's log. May throw: it is asked again at the next try. */
  source(session: string): SessionSource | Promise<SessionSource>;
  /** From the first notice to the cut, milliseconds; a session whose first key is not pinned is shipped at once. */
  delayMs?: number;
  retry?: RetryPlan;
  receiptWaitMs?: number;
  timeoutMs?: number;
  sleep?: Sleep;
  onAlarm?: (session: string, alarm: Alarm) => void;
  onShipped?: (session: string, report: ShipReport) => void;
  /** A session that is given up until it is flushed. */
  onFailure?: (session: string, error: ShipError) => void;
}

/** Waits between tries of one session that do not get through. */
const BACK_OFF: RetryPlan = { attempts: Infinity, baseMs: 1000, capMs: 60_000 };
/** Sessions kept in mind; those with something left to do are never forgotten. */
const REMEMBERED = 64;
/** Steady shipping seals no oftener than this, milliseconds (docs/format.md, "When"). */
const BETWEEN = 2000;
/** Passes under way at once. */
const WIDTH = 2;

/**
 * Ships many sessions as their entries come: the recorder tells it of entries, it cuts, sends and waits, tries again with growing pauses, and gives a session
 * up on a ShipError until somebody asks for it. It never throws into its caller.
 */
export class ShipLoop {
  readonly #tracked = new Map<string, Tracked>();
  readonly #stop = new AbortController();
  readonly #client: VaultClient;
  readonly #queue: (() => void)[] = [];
  #free = WIDTH;

  constructor(private readonly options: ShipLoopOptions) {
    const { vault, signer, clock, random, timeoutMs } = options;
    checkKey(vault, signer);
    const access = { machine: vault.machine, token: vault.token, signer };
    this.#client = new VaultClient({
      url: vault.url,
      access,
      clock,
      random,
      signal: this.#stop.signal,
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
  }

  /** New entries stand in a session's log. */
  notice(session: string): void {
    const tracked = this.#track(session);
    if (tracked.error !== undefined || this.#stop.signal.aborted) return;
    if (tracked.running !== undefined) tracked.again = true;
    else if (tracked.timer === undefined)
      this.#schedule(
        tracked,
        tracked.shipper?.isPinned === true ? this.#pause(tracked, this.options.delayMs ?? 1000) : 0,
      );
  }

  /** True as soon as a verified receipt pins the session's first key; false after the time, or at once where it is given up. */
  async pinned(session: string, timeoutMs: number): Promise<boolean> {
    const tracked = this.#track(session);
    const isPinned = (): boolean => tracked.shipper?.isPinned === true;
    if (isPinned()) return true;
    this.notice(session);
    return new Promise((resolve) => {
      const settle = (answer: boolean): void => {
        clearTimeout(timer);
        tracked.watchers.delete(look);
        resolve(answer);
      };
      const look = (): void => {
        if (isPinned()) settle(true);
        else if (tracked.error !== undefined || this.#stop.signal.aborted) settle(false);
      };
      const timer = setTimeout(() => settle(isPinned()), timeoutMs);
      tracked.watchers.add(look);
      look();
    });
  }

  /** Ships what there is now, of all sessions it has been told of where none is named; those given up are tried again. Resolves when that is done or has failed. */
  async flush(
    sessions?: readonly string[],
  ): Promise<Record<string, ShipReport | { session: string; state: 'failed'; code: string; problem: string }>> {
    const all = (sessions ?? [...this.#tracked.keys()]).map((session) => this.#track(session));
    await Promise.all(
      all.map(async (tracked) => {
        delete tracked.error;
        await tracked.running;
        this.#schedule(tracked, undefined);
        await (tracked.running ??= this.#run(tracked));
      }),
    );
    return Object.fromEntries(all.map((tracked) => [tracked.session, this.#outcome(tracked)]));
  }

  /** Sessions of which something is still to be shipped; those given up are not among them. */
  unfinished(): string[] {
    return [...this.#tracked.values()].flatMap(({ session, running, timer, error, report }) => {
      const isDone = running === undefined && timer === undefined && report?.state === 'shipped';
      return isDone || error !== undefined ? [] : [session];
    });
  }

  /** A session that was given up goes on as another chain: says so at the vault, once. A vault that cannot hear it or has closed it itself is not bothered again. */
  async conclude(session: string): Promise<void> {
    await this.#tracked
      .get(session)
      ?.shipper?.conclude()
      .catch(() => undefined);
  }

  /** For `nd7 status`. */
  status(): { url: string; origin: string; sessions: Standing[] } {
    const { url, origin } = this.options.vault;
    return { url, origin, sessions: [...this.#tracked.values()].map(standingOf) };
  }

  /** Ends what is under way. What was not acknowledged is on the disk and goes on at the next start. */
  async stop(): Promise<void> {
    this.#stop.abort();
    for (const tracked of this.#tracked.values()) this.#schedule(tracked, undefined);
    await Promise.all([...this.#tracked.values()].map(({ running }) => running));
    for (const tracked of this.#tracked.values()) for (const watcher of [...tracked.watchers]) watcher();
  }

  #track(session: string): Tracked {
    const known = this.#tracked.get(session);
    if (known !== undefined) return known;
    const tracked: Tracked = { session, again: false, failures: 0, watchers: new Set() };
    this.#tracked.set(session, tracked);
    this.#forgetOld();
    return tracked;
  }

  /** A recorder lives for weeks: of sessions that are shipped and quiet only the newest are kept in mind. What a forgotten one needs is on the disk. */
  #forgetOld(): void {
    for (const [session, { running, timer, error, report, watchers }] of this.#tracked) {
      if (this.#tracked.size <= REMEMBERED) return;
      const isQuiet = running === undefined && timer === undefined && error === undefined && watchers.size === 0;
      if (isQuiet && report?.state === 'shipped') this.#tracked.delete(session);
    }
  }

  /** The next pass in so many milliseconds; none with undefined. */
  #schedule(tracked: Tracked, delay: number | undefined): void {
    clearTimeout(tracked.timer);
    delete tracked.timer;
    if (delay === undefined || this.#stop.signal.aborted) return;
    tracked.timer = setTimeout(() => {
      delete tracked.timer;
      tracked.running ??= this.#run(tracked);
    }, delay);
  }

  async #run(tracked: Tracked): Promise<void> {
    tracked.again = false;
    tracked.began = this.options.clock.now();
    const delay = await this.#inTurn(() => this.#pass(tracked));
    delete tracked.running;
    for (const watcher of [...tracked.watchers]) watcher();
    if (tracked.error === undefined && (delay !== undefined || tracked.again))
      this.#schedule(tracked, delay ?? this.#pause(tracked, 0));
  }

  /** How long to wait for the next pass: the time asked for, and not before BETWEEN ms after the last began, since each pass makes a seal. */
  #pause(tracked: Tracked, delayMs: number): number {
    const since = this.options.clock.now() - (tracked.began ?? -Infinity);
    return Math.max(delayMs, Math.min(BETWEEN, BETWEEN - since));
  }

  /** One pass; how long to wait before the next, where one is needed. */
  async #pass(tracked: Tracked): Promise<number | undefined> {
    const { onShipped, onFailure, random } = this.options;
    try {
      if (this.#stop.signal.aborted) return undefined;
      if (tracked.shipper === undefined) {
        tracked.shipper = await this.#shipper(tracked.session);
        // A pin that is on the disk already waits for no vault.
        await tracked.shipper.load();
        for (const watcher of [...tracked.watchers]) watcher();
      }
      const report = await tracked.shipper.ship();
      tracked.report = report;
      delete tracked.problem;
      if (report.problem !== undefined) tracked.problem = report.problem;
      if (report.segments.length > 0) onShipped?.(tracked.session, report);
      tracked.failures = report.state === 'offline' ? tracked.failures + 1 : 0;
      if (report.state === 'shipped') return undefined;
      if (report.state === 'pending') return 1000;
      return Math.max(backOff(tracked.failures, BACK_OFF, random), report.retryAfter ?? 0);
    } catch (error) {
      if (isShipError(error) && error.code !== 'io') {
        tracked.error = error;
        onFailure?.(tracked.session, error);
        return undefined;
      }
      // The log or the disk did not let us: that may pass.
      tracked.failures += 1;
      tracked.problem = messageOf(error);
      return backOff(tracked.failures, BACK_OFF, random);
    }
  }

  async #shipper(session: string): Promise<Shipper> {
    const { home, vault, signer, clock, random, retry, receiptWaitMs, sleep = pause, onAlarm } = this.options;
    return new Shipper({
      source: await this.options.source(session),
      client: this.#client,
      signer,
      origin: vault.origin,
      trust: trustOf(vault),
      outbox: join(home, 'outbox', session),
      receipts: join(home, 'sessions', session, 'receipts'),
      clock,
      random,
      sleep,
      signal: this.#stop.signal,
      ...(retry && { retry }),
      ...(receiptWaitMs !== undefined && { receiptWaitMs }),
      ...(onAlarm && {
        onEvent: (event) => {
          if (event.type === 'alarm') onAlarm(session, event.alarm);
        },
      }),
    });
  }

  async #inTurn<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  #outcome(tracked: Tracked): ShipReport | { session: string; state: 'failed'; code: string; problem: string } {
    const { session, error, report, problem } = tracked;
    if (error !== undefined) return { session, state: 'failed', code: error.code, problem: error.message };
    if (report === undefined || problem !== report.problem)
      return { session, state: 'failed', code: 'io', problem: problem ?? 'nothing was tried' };
    return report;
  }
}
