import { hostname } from 'node:os';
import type { Sql } from 'postgres';
import type { CheckpointSigner } from '../signer/signer.js';
import { Leadership } from './leadership.js';
import { readOrigin, type TenantDatabase } from './tables.js';
import { BATCH, TeamSequencer, type Round, type Step } from './team-sequencer.js';
import { Wakes } from './wakes.js';

/** How the sequencer paces itself; all in milliseconds. */
export interface Pace {
  /**
   * Under load a batch begins at most so long after the one before it, or when it is full: sooner where rounds are quick, so that rounds take
   * about a third of the time. The first leaf after a pause never waits.
   */
  batch: number;
  /** Locks are tried, new teams found and led logs looked at (for wakes that were lost) so often. */
  tick: number;
  /** A log whose leaves wait this long has a leader that does not lead: another process begins a term without the lock. */
  stall: number;
}

export const PACE: Pace = { batch: 250, tick: 1000, stall: 10_000 };

/** What the sequencer tells the operator. The metrics listen too. */
export interface SequencerEvents {
  step?(team: string, step: Step, detail: { size: number; leaves: number }): void | Promise<void>;
  round?(team: string, round: Round): void;
  failed?(team: string, error: unknown): void;
}

export interface SequencerOptions {
  sql: Sql;
  /** A client of one connection, for the locks (Leadership). */
  lockSql: Sql;
  db: TenantDatabase;
  signer: CheckpointSigner;
  wakes: Wakes;
  /** First half of the origins. */
  vaultName: string;
  pace?: Partial<Pace>;
  batch?: number;
  events?: SequencerEvents;
  name?: string;
}

/** One log in this process. Written by this class only; a team has one round at a time (`running`). */
interface Team {
  sequencer: TeamSequencer;
  /** The term this process leads in, undefined while another leads. */
  epoch: number | undefined;
  running: Promise<void> | undefined;
  /** Wakes since the last round began. */
  wakes: number;
  startedAt: number;
  /** How long the last round took. */
  took: number;
  timer: NodeJS.Timeout | undefined;
  /** Not to be led before this time (ms since the epoch), after having been deposed. */
  notBefore: number;
  /** No round before this time (performance.now), after one that failed or was held. */
  retryAt: number;
  failures: number;
  /** Idle ticks: a log where nothing happens is looked at less and less often. */
  idle: number;
  skip: number;
}

/**
 * Leads the logs it can get, one round of `TeamSequencer` after the other. Any number of replicas may run one; see Leadership for who
 * leads and README.md for why it does not matter to safety.
 */
export class Sequencer {
  private readonly teams = new Map<string, Team>();
  private readonly leadership: Leadership;
  private readonly pace: Pace;
  private ticking: Promise<void> | undefined;
  private tickTimer: NodeJS.Timeout | undefined;
  private stopped = true;
  private readonly suspectedAt = new Map<string, number>();

  constructor(private readonly options: SequencerOptions) {
    this.pace = { ...PACE, ...options.pace };
    this.leadership = new Leadership(
      options.lockSql,
      options.db,
      options.name ?? `${hostname()}/${String(process.pid)}`,
    );
  }

  async start(): Promise<void> {
    this.stopped = false;
    await this.options.wakes.listen((team) => {
      this.schedule(team);
    });
    await this.tick();
  }

  /** Lets the rounds in progress end, gives the locks back. */
  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.tickTimer);
    for (const team of this.teams.values()) clearTimeout(team.timer);
    await this.ticking;
    await Promise.allSettled([...this.teams.values()].map(({ running }) => running));
    await this.leadership.close();
  }

  /** A leaf of the team was committed: sequences it here, or tells whoever leads. */
  wake(team: string): void {
    if (this.teams.get(team)?.epoch !== undefined) this.schedule(team);
    else this.options.wakes.send(team);
    if (!this.teams.has(team)) void this.tick(); // a team made since the last look
  }

  /** The logs this process leads now. */
  leading(): string[] {
    return [...this.teams].filter(([, team]) => team.epoch !== undefined).map(([name]) => name);
  }

  /**
   * Somebody has waited in vain for a leaf of this team. If leaves have waited for `stall` and no term is younger than that, this process
   * begins one: a paused leader keeps its lock, and must not keep the log.
   */
  async suspect(name: string): Promise<void> {
    const now = Date.now();
    if (this.stopped || now - (this.suspectedAt.get(name) ?? 0) < this.pace.stall / 4) return;
    this.suspectedAt.set(name, now);
    const team = this.teams.get(name);
    if (team === undefined || team.epoch !== undefined) return;
    try {
      const state = await this.options.signer.state(this.origin(name));
      if (!state.ok || !(await this.isStalled(name))) return;
      team.epoch = await this.leadership.beginTerm(name);
      this.schedule(name);
    } catch (error) {
      this.options.events?.failed?.(name, error);
    }
  }

  private isStalled(name: string): Promise<boolean> {
    return this.options.db.tenant(name, async (tx) => {
      const [row] = await tx<{ stalled: boolean | null }[]>`
        select (select max(made) from nd7.log_epoch where team = ${name}) < clock_timestamp() - ${this.pace.stall} * interval '1 millisecond' and (
          exists (
            select from nd7.log_queue q where q.team = ${name} and q.made < clock_timestamp() - ${this.pace.stall} * interval '1 millisecond'
              and q.leaf_id > coalesce((select queue_floor from nd7.log_checkpoint where team = ${name} order by size desc limit 1), 0)
              and (select l.leaf_index from nd7.log_leaf l where l.team = q.team and l.leaf_id = q.leaf_id) is null
          ) or exists (
            select from nd7.log_checkpoint c where c.team = ${name} and c.made < clock_timestamp() - ${this.pace.stall} * interval '1 millisecond'
              and c.size > (select coalesce(max(size), 0) from nd7.log_publication where team = ${name})
          )
        ) as stalled`;
      return row?.stalled === true;
    });
  }

  /** One look at a time; the next is due a tick after it. */
  private tick(): Promise<void> {
    if (this.stopped) return Promise.resolve();
    clearTimeout(this.tickTimer);
    this.ticking ??= this.look()
      .catch((error: unknown) => {
        this.options.events?.failed?.('', error);
      })
      .finally(() => {
        this.ticking = undefined;
        if (this.stopped) return;
        clearTimeout(this.tickTimer);
        this.tickTimer = setTimeout(() => void this.tick(), this.pace.tick);
      });
    return this.ticking;
  }

  /** Finds teams, seeks their locks, looks at the logs it leads. */
  private async look(): Promise<void> {
    const names = await this.options.sql<{ team: string }[]>`select team from nd7.teams() as t (team)`;
    for (const { team } of names) if (!this.teams.has(team)) await this.trying(team, () => this.add(team));
    const now = Date.now();
    const wanted = [...this.teams].filter(([, team]) => team.notBefore <= now).map(([name]) => name);
    for (const name of await this.leadership.seek(wanted)) {
      const team = this.teams.get(name);
      if (team !== undefined) team.epoch = undefined;
    }
    for (const [name, team] of this.teams) {
      if (this.leadership.holds(name) && team.epoch === undefined) {
        await this.trying(name, async () => {
          team.epoch = await this.leadership.beginTerm(name);
        });
        team.skip = 0;
      }
      if (team.epoch === undefined || team.running !== undefined || (team.skip -= 1) > 0) continue;
      team.skip = Math.min(15, (team.idle += 1));
      this.schedule(name);
    }
  }

  /** One team's trouble is not the others'. */
  private async trying(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.options.events?.failed?.(name, error);
    }
  }

  private async add(name: string): Promise<void> {
    const { db, signer, batch, events } = this.options;
    const origin = await db.tenant(name, (tx) => readOrigin(tx, name));
    if (origin === undefined) return; // its log is made by `nd7-vault team create`, perhaps in this moment
    if (origin !== this.origin(name))
      throw new Error(
        `the log of team ${name} is ${origin}: this vault's name (ND7_VAULT_NAME) gives it another origin, and origins are never renamed`,
      );
    const sequencer = new TeamSequencer({
      db,
      signer,
      team: name,
      origin,
      batch: batch ?? BATCH,
      onStep: async (step, detail) => {
        if (step === 'published') this.options.wakes.tell(name);
        await events?.step?.(name, step, detail);
      },
    });
    this.teams.set(name, {
      sequencer,
      epoch: undefined,
      running: undefined,
      wakes: 0,
      startedAt: -Infinity,
      took: 0,
      timer: undefined,
      notBefore: 0,
      retryAt: 0,
      failures: 0,
      idle: 0,
      skip: 0,
    });
  }

  /** A round is due: at once after a pause, else at the pace. */
  private schedule(name: string): void {
    const team = this.teams.get(name);
    if (this.stopped || team?.epoch === undefined) return;
    team.wakes += 1;
    if (team.running !== undefined) return;
    const due =
      team.wakes >= (this.options.batch ?? BATCH) ? 0 : team.startedAt + Math.min(this.pace.batch, 3 * team.took);
    const wait = Math.max(due, team.retryAt) - performance.now();
    if (wait <= 0) this.begin(name, team);
    else
      team.timer ??= setTimeout(() => {
        this.begin(name, team);
      }, wait);
  }

  private begin(name: string, team: Team): void {
    clearTimeout(team.timer);
    team.timer = undefined;
    if (this.stopped || team.running !== undefined || team.epoch === undefined) return;
    team.wakes = 0;
    team.startedAt = performance.now();
    team.running = this.rounds(name, team, team.epoch).finally(() => {
      team.running = undefined;
      team.took = performance.now() - team.startedAt;
      if (team.wakes > 0) {
        team.wakes -= 1;
        this.schedule(name);
      }
    });
  }

  /** Rounds until less than a full batch is left. */
  private async rounds(name: string, team: Team, epoch: number): Promise<void> {
    for (;;) {
      let round: Round;
      try {
        round = await team.sequencer.round(epoch);
      } catch (error) {
        this.retryLater(name, team);
        this.options.events?.failed?.(name, error);
        return;
      }
      this.options.events?.round?.(name, round);
      if (round.what !== 'idle') [team.idle, team.skip] = [0, 0];
      if (round.what === 'deposed') return this.stepDown(name, team);
      if (round.what === 'held' || round.what === 'read-only') {
        this.retryLater(name, team);
        return;
      }
      team.failures = 0;
      if (round.what === 'idle' || !round.full || this.stopped) return;
    }
  }

  private retryLater(name: string, team: Team): void {
    team.failures += 1;
    const ms = Math.min(5000, 100 * 2 ** team.failures);
    team.retryAt = performance.now() + ms;
    team.timer ??= setTimeout(() => {
      this.begin(name, team);
    }, ms);
  }

  /** Another leads: its turn, for a while, even where the lock is here. */
  private async stepDown(name: string, team: Team): Promise<void> {
    team.epoch = undefined;
    team.notBefore = Date.now() + this.pace.stall / 2;
    await this.leadership.release(name);
  }

  private origin(team: string): string {
    return `${this.options.vaultName}/${team}`;
  }
}
