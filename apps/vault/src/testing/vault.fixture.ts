// A vault on a real PostgreSQL and a real port. For tests only: Fastify's inject does not work under jest.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testDatabase } from '@nd7/testing';
import postgres, { type Sql } from 'postgres';
import { connectOptions } from '@nd7/postgres';
import { AdminIo } from '../cli/io.js';
import { createEnrolment, createReader } from '../cli/people.js';
import { createTeam } from '../cli/team.js';
import { VaultConfig } from '../config.js';
import { migrate } from '../db/migrate.js';
import { Log } from '../log/log.js';
import { startVault, type RunningVault } from '../server.js';
import type { Clock } from '../ports.js';
import { TestMachine } from './session.fixture.js';

export const VAULT = 'vault.test';

export interface WorldOptions {
  env?: Record<string, string>;
  clock?: Clock;
  /** A migrated database to use instead of a new one, as a superuser’s URL. */
  url?: string;
}

/** A database, a key folder, and as many replicas as are asked for. */
export class TestWorld {
  readonly replicas: RunningVault[] = [];
  /** Lines the replicas logged. */
  readonly logged: string[] = [];
  /** The database’s superuser, past every guard that knows roles. */
  readonly owner: Sql;
  readonly io: AdminIo;

  private constructor(
    readonly databaseUrl: string,
    readonly folder: string,
    private readonly options: WorldOptions,
  ) {
    this.owner = postgres({ ...connectOptions(databaseUrl), max: 2, onnotice: () => undefined });
    this.io = new AdminIo(this.env, true, () => undefined);
  }

  static async make(options: WorldOptions = {}): Promise<TestWorld> {
    const url = options.url ?? (await testDatabase());
    if (options.url === undefined) await migrate(url);
    return new TestWorld(url, mkdtempSync(join(tmpdir(), 'nd7-vault-')), options);
  }

  get env(): Record<string, string> {
    return {
      ND7_VAULT_NAME: VAULT,
      ND7_DATABASE_URL: this.databaseUrl,
      ND7_VAULT_KEYS: join(this.folder, 'keys'),
      ND7_VAULT_PORT: '0',
      ND7_DASHBOARD_DIR: join(this.folder, 'dashboard'),
      // A thread is a file of its own, which a test's on-the-fly compiler does not reach: checkers.test.ts runs the built one.
      ND7_VAULT_THREADS: '0',
      ND7_LOG_LEVEL: 'info',
      ...this.options.env,
    };
  }

  /** Starts one more replica on the same database. */
  async replica(env: Record<string, string> = {}): Promise<RunningVault> {
    const log = new Log('info', (line) => this.logged.push(line));
    const { clock } = this.options;
    const vault = await startVault({
      config: new VaultConfig({ ...this.env, ...env }),
      log,
      ...(clock === undefined ? {} : { clock }),
    });
    this.replicas.push(vault);
    return vault;
  }

  async team(name: string): Promise<{ origin: string; vkey: string }> {
    return createTeam(this.io, name);
  }

  async enrolmentToken(team: string): Promise<string> {
    const ahead = (this.options.clock?.now() ?? Date.now()) - Date.now(); // the command goes by this machine's clock
    return (await createEnrolment(this.io, team, Math.max(0, ahead) + 3_600_000)).token;
  }

  async reader(team: string): Promise<{ reader: string; token: string }> {
    return createReader(this.io, team);
  }

  /** An enrolled machine that talks to the first replica. */
  async machine(team: string, name = 'box'): Promise<TestMachine> {
    const machine = new TestMachine((this.replicas[0] as RunningVault).url, `${VAULT}/${team}`);
    const answer = await machine.enrol(await this.enrolmentToken(team), name);
    if (answer.status !== 201) throw new Error(`enrolment was answered ${String(answer.status)} ${answer.text}`);
    return machine;
  }

  readonly backups: string[] = [];

  /** A copy of the database as it is now; no replica may run. Returns its URL. */
  async backup(): Promise<string> {
    await this.io.close();
    await this.owner.end({ timeout: 5 });
    const { database, ...server } = connectOptions(this.databaseUrl);
    const name = `${database}_backup_${String(this.backups.length)}`;
    const sql = postgres({ ...server, database: 'postgres', max: 1, onnotice: () => undefined });
    await sql`create database ${sql(name)} template ${sql(database)}`;
    await sql.end();
    const url = this.databaseUrl.replace(/\/[^/]*$/, `/${name}`);
    this.backups.push(url);
    return url;
  }

  async stopReplicas(): Promise<void> {
    for (const vault of this.replicas.splice(0)) await vault.close();
  }

  async close(): Promise<void> {
    await this.stopReplicas();
    await this.io.close();
    await this.owner.end({ timeout: 5 });
    rmSync(this.folder, { recursive: true, force: true });
  }
}
