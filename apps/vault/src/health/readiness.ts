import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { VaultConfig } from '../config.js';
import { checkGuards, GuardError } from '../db/boot-check.js';
import { Database } from '../db/database.js';
import { Log } from '../log/log.js';

/** How often the guards are looked at again, in milliseconds. */
const EVERY = 60_000;

/** What an orchestrator is told: whether segments should be sent here, and what stands still all the same. */
@Injectable()
export class Readiness implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  /** Written at shutdown only. */
  private leaving = false;
  /** What the last look found missing. */
  private missing: readonly string[] = [];
  /** Teams whose log takes nothing; told by the watch. */
  private readonly readOnly = new Set<string>();

  constructor(
    private readonly db: Database,
    private readonly config: VaultConfig,
    private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.lookAtGuards(), EVERY);
    this.timer.unref();
  }

  /**
   * Looks again whether every guard of the boot check is there: what was taken away from a running vault protects as little. A database that a
   * newer vault has migrated meanwhile, or that does not answer, says nothing about its guards.
   */
  async lookAtGuards(): Promise<void> {
    try {
      await checkGuards(this.config);
      if (this.missing.length > 0) this.log.info('the guards are back');
      this.missing = [];
    } catch (error) {
      if (!(error instanceof GuardError)) return;
      if (this.missing.length === 0)
        this.log.error('guards of the database are missing: nothing should be sent here', { missing: error.lines });
      this.missing = error.lines;
    }
  }

  /** Whether a team's log is read-only. No reason to send nothing here: it is so on every replica, and it is read. */
  sayReadOnly(team: string, is: boolean): void {
    if (is) this.readOnly.add(team);
    else this.readOnly.delete(team);
  }

  /** How many logs take nothing until a person decides. */
  get readOnlyLogs(): number {
    return this.readOnly.size;
  }

  /** Why no segment should be sent here now; undefined when all is well. Anybody may read it: it names no team and no table. */
  async whyNot(): Promise<string | undefined> {
    if (this.leaving) return 'shutting down';
    if (this.missing.length > 0) return 'guards of the database are missing: see the log of this process';
    const answer = this.db.sql<{ standby: boolean }[]>`select pg_is_in_recovery() as standby`.then(
      ([server]) => (server?.standby === true ? 'the database is a standby: it takes nothing' : undefined),
      () => 'the database does not answer',
    );
    const late = new Promise<string>((done) => setTimeout(() => done('the database does not answer'), 3_000).unref());
    return Promise.race([answer, late]);
  }

  /** Load balancers see it first, then connections are drained. */
  beforeApplicationShutdown(): void {
    clearInterval(this.timer);
    this.leaving = true;
  }
}
