import { Inject, Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { formatTime } from '@nd7/entry';
import { formatStatement } from '@nd7/receipt';
import type { TransactionSql } from 'postgres';
import { VaultConfig } from '../config.js';
import { Database } from '../db/database.js';
import { Metrics } from '../health/metrics.js';
import { Readiness } from '../health/readiness.js';
import { Episodes, type SilenceKind } from '../incidents/episodes.js';
import { IncidentStore } from '../incidents/incident.store.js';
import { Log } from '../log/log.js';
import { CLOCK, RANDOM, type Clock, type Random } from '../ports.js';
import { SqlTeamLog } from '../sequence/sql-team-log.js';
import { ENDS } from './ends.js';
import { laggingSessions, quietMachines, unclosedSessions, type Moment, type UnclosedSession } from './facts.js';

/** Looks that failed for so many turns mean that the vault could not be heard. */
const MISSED = 3;

/** What a look at one team came to: `elsewhere` is another replica that looks at it in this moment. */
type Looked = 'done' | 'elsewhere' | 'failed';

/**
 * Notices what does not come: machines that fall silent, sessions that stop without a close, entries that were named and never sent. Looks again
 * and again, from facts in the database and the vault's clock alone; on its way it tells Readiness which logs take nothing.
 *
 * Any number of replicas may run one. There is no leader to lose: whoever looks at a team holds a lock for the length of the transaction and
 * others pass it by; what one has raised, the next finds, and the database takes no second (0301_silence.sql).
 */
@Injectable()
export class Watch implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private stopped = false;
  /** When the last look at the database succeeded, and since when none has failed for long (ms since the epoch). Written by `once`. */
  private lastLook = -Infinity;
  private awake = 0;

  constructor(
    private readonly db: Database,
    private readonly config: VaultConfig,
    private readonly teamLog: SqlTeamLog,
    private readonly incidents: IncidentStore,
    private readonly metrics: Metrics,
    private readonly readiness: Readiness,
    private readonly log: Log,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  onApplicationBootstrap(): void {
    void this.look();
  }

  /** Before the database goes. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.looking;
  }

  /** One look at all teams; the next is due after the interval. Never rejects: what failed is looked at again. */
  async look(): Promise<void> {
    clearTimeout(this.timer);
    this.looking ??= this.once().finally(() => {
      this.looking = undefined;
      if (!this.stopped) this.timer = setTimeout(() => void this.look(), this.config.patience.every).unref();
    });
    await this.looking;
  }

  private async once(): Promise<void> {
    const now = this.clock.now();
    const { patience } = this.config;
    let teams: { team: string }[];
    try {
      teams = await this.db.sql<{ team: string }[]>`select team from nd7.teams() as t (team)`;
    } catch (error) {
      this.metrics.looks.inc({ result: 'failed' });
      this.log.warn('the watch could not look', { error });
      return;
    }
    // Machines could not be heard either: they are given their time anew.
    if (now - this.lastLook > MISSED * patience.every) this.awake = now;
    this.lastLook = now;
    for (const { team } of teams) {
      if (this.stopped) return;
      this.metrics.looks.inc({
        result: await this.team(team, { now: new Date(now), awake: new Date(this.awake), patience }),
      });
    }
  }

  private async team(team: string, moment: Moment): Promise<Looked> {
    try {
      // Of a vault that takes nothing no silence can be told.
      const takes = (await this.teamLog.status(team)).readOnly === undefined;
      this.readiness.sayReadOnly(team, !takes);
      const leaves: bigint[] = [];
      const episodes = await this.db.tenant(team, async (tx) => {
        // Nothing is compiled for it: of a team with many sessions that takes ten times as long as the look.
        const [lock] = await tx<{ held: boolean }[]>`
          select pg_try_advisory_xact_lock(hashtextextended('nd7 watch ' || ${team}, 0)) as held, set_config('jit', 'off', true)`;
        if (lock?.held !== true) return undefined;
        const found = new Episodes(tx, team, moment.now, this.random);
        for (const kind of Object.keys(ENDS) as SilenceKind[])
          for (const { id, why } of await ENDS[kind](tx, moment)) await found.end(id, kind, why);
        await this.quiet(tx, moment, found);
        if (takes) {
          await this.lagging(tx, moment, found);
          for (const session of await unclosedSessions(tx, moment))
            leaves.push(await this.lose(tx, team, session, moment, found));
        }
        return found;
      });
      episodes?.count(this.metrics);
      const last = leaves.at(-1);
      if (last !== undefined) await this.teamLog.published(team, last, 0); // wakes the sequencer
      return episodes === undefined ? 'elsewhere' : 'done';
    } catch (error) {
      this.log.warn('the watch could not look at a team', { team, error });
      return 'failed';
    }
  }

  private async quiet(tx: TransactionSql, moment: Moment, found: Episodes): Promise<void> {
    for (const { machine, heartbeat, heard, interval_s: interval, away } of await quietMachines(tx, moment))
      await found.begin(
        { kind: 'machine-quiet', machine },
        {
          heartbeat,
          heard: heard.toISOString(),
          ...(interval === null ? {} : { interval }),
          ...(away === null ? {} : { away }),
        },
      );
  }

  private async lagging(tx: TransactionSql, moment: Moment, found: Episodes): Promise<void> {
    for (const { machine, session, named, held, names, heartbeat, received } of await laggingSessions(tx, moment)) {
      const heard = received === null ? {} : { heard: received.toISOString() };
      if (names === null)
        await found.begin(
          { kind: 'tail-shrank', machine, session },
          { heartbeat, entries: held, was: named, held, ...heard },
          { count: held },
        );
      else
        await found.begin(
          { kind: 'session-quiet', machine, session },
          { heartbeat, entries: named, held, ...heard },
          { count: held },
        );
    }
  }

  /** Says in the log that a session was lost, once for a count, and raises it. Returns the leaf. */
  private async lose(
    tx: TransactionSql,
    team: string,
    lost: UnclosedSession,
    { now }: Moment,
    found: Episodes,
  ): Promise<bigint> {
    const { machine, session, entries, head, heartbeat, away } = lost;
    let leafId: bigint;
    if (lost.leaf_id === null) {
      const close = { machine, session, entries, head, reason: 'lost' } as const;
      const origin = this.teamLog.origin(team);
      const statement = formatStatement({ type: 'close', origin, ...close, received: formatTime(now.getTime()) });
      leafId = await this.teamLog.enqueue(tx, team, statement);
      await this.incidents.addClose(tx, { team, ...close, at: now, leafId });
    } else leafId = BigInt(lost.leaf_id);
    await found.begin(
      { kind: 'session-unclosed', machine, session },
      {
        heard: lost.heard.toISOString(),
        held: entries,
        ...(heartbeat === null ? {} : { heartbeat }),
        ...(away === null ? {} : { away }),
      },
      { count: entries, leafId },
    );
    return leafId;
  }
}
