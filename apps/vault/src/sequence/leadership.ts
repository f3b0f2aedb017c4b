import type { Sql, ReservedSql, TransactionSql } from 'postgres';
import { list } from './nodes.js';
import type { TenantDatabase } from './tables.js';

/**
 * Who leads which log, for liveness: an advisory lock for each log on one connection of this process keeps the others from trying in vain.
 * The lock goes with the connection, the term (`log_epoch`) stays: whoever begins a term ends the one before it, and the database refuses
 * a checkpoint of a term that is over. A leader that was paused, or has lost its connection without noticing, loses its next round, no more.
 */
export class Leadership {
  /** The connection that holds the locks; made again, with nothing held, when it was lost. Used by one `seek` at a time. */
  private connection: ReservedSql | undefined;
  /** Backend process of the connection: another number means that the locks are gone. */
  private backend = 0;
  private readonly locked = new Set<string>();

  constructor(
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
    try {
      this.connection ??= await this.sql.reserve();
      const connection = this.connection;
      const wanted = teams.filter((team) => !this.locked.has(team));
      const rows = await connection<{ backend: number; team: string | null; held: boolean | null }[]>`
        select pg_backend_pid() as backend, t.team, pg_try_advisory_lock(hashtextextended('nd7 log ' || t.team, 0)) as held
        from (values (1)) as one left join unnest(string_to_array(${list(wanted)}, ',')) as t (team) on true`;
      const backend = rows[0]?.backend ?? 0;
      const lost = backend === this.backend ? [] : [...this.locked];
      if (backend !== this.backend) this.locked.clear();
      this.backend = backend;
      for (const { team, held } of rows) if (team !== null && held === true) this.locked.add(team);
      return lost;
    } catch (error) {
      const lost = this.drop();
      if (lost.length === 0) throw error;
      return lost;
    }
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
    try {
      const connection = this.connection;
      if (connection !== undefined) await connection`select pg_advisory_unlock(hashtextextended('nd7 log ' || ${team}, 0))`;
    } catch {
      this.drop();
    }
  }

  async close(): Promise<void> {
    for (const team of [...this.locked]) await this.release(team);
    this.drop();
  }

  private drop(): string[] {
    const lost = [...this.locked];
    this.locked.clear();
    this.backend = 0;
    try {
      this.connection?.release();
    } catch {
      // The connection is gone, and the locks with it.
    }
    this.connection = undefined;
    return lost;
  }
}
