import type { Sql, TransactionSql } from 'postgres';
import { list } from './nodes.js';
import type { TenantDatabase } from './tables.js';

/**
 * Who leads which log, for liveness: an advisory lock for each log on one connection of this process keeps the others from trying in vain.
 * The lock goes with the connection, the term (`log_epoch`) stays: whoever begins a term ends the one before it, and the database refuses
 * a checkpoint of a term that is over. A leader that was paused, or has lost its connection without noticing, loses its next round, no more.
 */
export class Leadership {
  /** Backend process of the connection: another number means that the connection was made again and the locks are gone. */
  private backend = 0;
  /** Written by `seek` and `release`, of which one runs at a time. */
  private readonly locked = new Set<string>();

  constructor(
    /** A client of ONE connection, for nothing else. Not a reserved one of a pool: the driver never mends that when it breaks. */
    private readonly sql: Sql,
    private readonly db: TenantDatabase,
    /** Names this process in log_epoch: host and process, for people. */
    readonly name: string,
  ) {}

  /** Whether the lock of this team is here. */
  holds(team: string): boolean {
    return this.locked.has(team);
  }

  /** Tries for the locks of these teams, without waiting. Returns the teams whose lock was lost with the connection. */
  async seek(teams: readonly string[]): Promise<string[]> {
    const wanted = teams.filter((team) => !this.locked.has(team));
    let rows: { backend: number; team: string | null; held: boolean | null }[];
    try {
      rows = await this.sql<typeof rows>`
        select pg_backend_pid() as backend, t.team, pg_try_advisory_lock(hashtextextended('nd7 log ' || t.team, 0)) as held
        from (values (1)) as one left join unnest(string_to_array(${list(wanted)}, ',')) as t (team) on true`;
    } catch (error) {
      const lost = this.forget();
      if (lost.length === 0) throw error;
      return lost;
    }
    const backend = rows[0]?.backend ?? 0;
    const lost = backend === this.backend ? [] : this.forget();
    this.backend = backend;
    for (const { team, held } of rows) if (team !== null && held === true) this.locked.add(team);
    return lost;
  }

  /** Begins the next term of a log and returns its number. */
  beginTerm(team: string): Promise<number> {
    return this.db.tenant(team, async (tx: TransactionSql) => {
      const [row] = await tx<{ epoch: string }[]>`
        insert into nd7.log_epoch (team, epoch, leader)
        select ${team}, coalesce(max(epoch), 0) + 1, ${this.name} from nd7.log_epoch where team = ${team} returning epoch::text`;
      return Number(row?.epoch);
    });
  }

  /** Gives a lock back, so that another process can lead. */
  async release(team: string): Promise<void> {
    if (!this.locked.delete(team)) return;
    await this.sql`select pg_advisory_unlock(hashtextextended('nd7 log ' || ${team}, 0))`.catch(() => undefined); // gone with the connection
  }

  async close(): Promise<void> {
    for (const team of [...this.locked]) await this.release(team);
  }

  private forget(): string[] {
    const lost = [...this.locked];
    this.locked.clear();
    return lost;
  }
}
