// A team log on a real PostgreSQL for the tests of signer, sequence, receipts and tiles. Not part of the program.
import { afterAll } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatStatement } from '@nd7/receipt';
import { enrolMessage } from '@nd7/segment';
import { generateKeyPair } from '@nd7/signing';
import { testDatabase } from '@nd7/testing';
import { emptyRoot } from '@nd7/tlog';
import type { Sql, TransactionSql } from 'postgres';
import { connect } from '../db/database.js';
import { migrate } from '../db/migrate.js';
import { EmbeddedSigner } from '../signer/embedded.js';
import type { CheckpointSigner } from '../signer/signer.js';
import { createLog } from '../signer/team-key.js';
import { Sequencer, type Pace, type SequencerEvents } from './sequencer.js';
import { SqlTeamLog } from './sql-team-log.js';
import type { TenantDatabase } from './tables.js';
import { Wakes } from './wakes.js';

export const VAULT = 'vault.test';
export const TEAM = 'acme';
export const ORIGIN = `${VAULT}/${TEAM}`;

const folders: string[] = [];
afterAll(() => folders.forEach((path) => rmSync(path, { recursive: true, force: true })));

/** A folder that is gone when the tests of the file have ended. */
export function temporaryFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'nd7-signer-'));
  folders.push(path);
  return path;
}

/** A connection pool as the service has it. */
export class LogDatabase implements TenantDatabase {
  readonly sql: Sql;
  constructor(
    readonly url: string,
    pool = 8,
  ) {
    this.sql = connect(url, { max: pool, role: 'nd7_app' });
  }
  async tenant<T>(team: string, work: (tx: TransactionSql) => Promise<T>): Promise<T> {
    return (await this.sql.begin(async (tx) => {
      await tx`select set_config('nd7.team', ${team}, true)`;
      return work(tx);
    })) as T;
  }
  close(): Promise<void> {
    return this.sql.end({ timeout: 5 });
  }
}

let template: Promise<string> | undefined;

/** A migrated database with the team's row, as a superuser's URL: a copy of one that is migrated once per test file. */
export async function freshDatabase(): Promise<string> {
  template ??= (async () => {
    const url = await testDatabase();
    await migrate(url);
    const sql = connect(url, { max: 1 });
    await sql`insert into nd7.team (team) values (${TEAM})`;
    await sql.end();
    return url;
  })();
  return copyDatabase(await template);
}

/** The whole database as it is now, as a backup would bring it back. Nobody else may be connected to it. */
export async function copyDatabase(url: string): Promise<string> {
  const name = `log_${crypto.randomUUID().replaceAll('-', '')}`;
  const sql = connect(url.replace(/\/[^/]+$/, '/postgres'), { max: 1 });
  const [, from = ''] = /\/([^/]+)$/.exec(url) ?? [];
  await sql`create database ${sql(name)} template ${sql(from)}`;
  await sql.end();
  return url.replace(/\/[^/]+$/, `/${name}`);
}

/** One replica: everything but HTTP. */
export class Replica {
  readonly db: LogDatabase;
  readonly lockSql: Sql;
  readonly wakes: Wakes;
  readonly sequencer: Sequencer;
  readonly log: SqlTeamLog;
  constructor(
    url: string,
    readonly signer: CheckpointSigner,
    options: { pace?: Partial<Pace>; batch?: number; events?: SequencerEvents; name?: string; pool?: number } = {},
  ) {
    this.db = new LogDatabase(url, options.pool);
    this.wakes = new Wakes(this.db.sql);
    this.lockSql = connect(url, { max: 1, role: 'nd7_app' });
    const { db, wakes, lockSql } = this;
    this.sequencer = new Sequencer({ sql: db.sql, lockSql, db, signer, wakes, vaultName: VAULT, ...options });
    this.log = new SqlTeamLog({ db, signer, wakes, sequencer: this.sequencer, vaultName: VAULT });
  }
  async close(): Promise<void> {
    await this.sequencer.stop();
    await this.wakes.close();
    await this.lockSql.end({ timeout: 5 });
    await this.db.close();
  }
  /** Commits a statement as ingest does. */
  queue(statement: string = statementOf(), team = TEAM): Promise<bigint> {
    return this.db.tenant(team, (tx) => this.log.enqueue(tx, team, statement));
  }
}

/** A database, an embedded signer with a key, a log: ready for a `Replica`. */
export async function freshLog(): Promise<{ url: string; folder: string; signer: EmbeddedSigner }> {
  const url = await freshDatabase();
  const folder = join(temporaryFolder(), 'signer');
  const signer = EmbeddedSigner.open(folder);
  const db = new LogDatabase(url);
  await createLog(signer, db, VAULT, TEAM);
  await db.close();
  return { url, folder, signer };
}

/** For replicas that only queue while the signer is in another process: it knows of nothing signed. */
export const NO_SIGNER: CheckpointSigner = {
  provision: () => Promise.reject(new Error('no signer here')),
  state: () => Promise.resolve({ ok: true, last: { size: 0, root: emptyRoot }, vkeys: [] }),
  sign: () => Promise.reject(new Error('no signer here')),
  close: () => Promise.resolve(),
};

const machine = generateKeyPair();

/** A statement that is another one each time, with a good signature. */
export function statementOf(origin = ORIGIN): string {
  const nameHash = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex');
  const claim = { origin, machine: machine.publicKey, nameHash };
  const signature = Buffer.from(machine.sign(enrolMessage(claim))).toString('base64');
  return formatStatement({ type: 'enrol', ...claim, signature, received: '2026-11-29T19:41:00.123Z' });
}

/** Polls until `look` gives something. */
export async function until<T>(look: () => Promise<T | undefined> | T | undefined, ms = 30_000): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error('nothing came of it in time');
    await new Promise((next) => setTimeout(next, 20));
  }
}
