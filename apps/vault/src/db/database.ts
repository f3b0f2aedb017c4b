import { connectOptions } from '@nd7/postgres';
import postgres, { type Sql, type TransactionSql } from 'postgres';
import type { VaultConfig } from '../config.js';

/**
 * The one way to the database. Every connection acts as the role nd7_app, which may insert and select and nothing else, whoever logged
 * in; everything about one team happens in `tenant`, or in a function of the schema that sets the tenant itself (migration 0203), because
 * row-level security shows no row without a tenant.
 *
 * Nothing of Nest is imported here: the admin commands use it too, and should not pay for a framework.
 */
export class Database {
  /** For what belongs to no team (health, the functions that find a team by a token) and functions that set the tenant. */
  readonly sql: Sql;

  constructor(config: VaultConfig) {
    this.sql = connect(config.databaseUrl, { max: config.pool, role: 'nd7_app' });
  }

  /**
   * A transaction that sees the rows of one team. The tenant is set for the transaction only, so that a pooled connection can carry it
   * into nobody else's.
   */
  async tenant<T>(team: string, work: (tx: TransactionSql) => Promise<T>): Promise<T> {
    // The driver unwraps arrays of promises, which its type says in a way that does not follow T.
    return (await this.sql.begin(async (tx) => {
      // Not waited for: the connection takes statements in order, and the first of `work` travels with it. Should it fail, all fail.
      const tenant = tx`select set_config('nd7.team', ${team}, true)`.execute();
      tenant.catch(() => undefined);
      const result = await work(tx);
      await tenant;
      return result;
    })) as T;
  }

  /** Called by Nest, and by the admin commands at their end. */
  async onApplicationShutdown(): Promise<void> {
    await this.sql.end({ timeout: 5 });
  }
}

/** A pool. Times leave the database as ISO text and counts as numbers: both are what the API answers. */
export function connect(url: string, options: { max: number; role?: string }): Sql {
  return postgres({
    ...connectOptions(url),
    max: options.max,
    idle_timeout: 60,
    connect_timeout: 10,
    max_lifetime: 3600,
    onnotice: () => undefined,
    connection: {
      application_name: 'nd7-vault',
      search_path: 'nd7,pg_temp',
      timezone: 'UTC',
      // A transaction of ours that waits this long waits for something that died.
      idle_in_transaction_session_timeout: 30_000,
      statement_timeout: 60_000,
      ...(options.role === undefined ? {} : { role: options.role }),
    },
    types: {
      // Counts stay far below 2^53: the format allows 16 digits, the schema checks.
      count: { to: 20, from: [20], serialize: (value: number | bigint) => String(value), parse: Number },
    },
  }) as unknown as Sql;
}
