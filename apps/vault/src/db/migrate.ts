// Forward-only migrations: numbered .sql files, each applied once, its hash kept.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from './database.js';

export interface Migration {
  name: string;
  sql: string;
  /** SHA-256 of the file. */
  hash: string;
}

export class MigrationError extends Error {
  constructor(
    readonly code: 'changed' | 'unknown' | 'failed',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The files beside this program, in order. */
export function migrations(folder = join(import.meta.dirname, 'migrations')): Migration[] {
  return readdirSync(folder)
    .filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name))
    .sort()
    .map((name) => {
      const sql = readFileSync(join(folder, name), 'utf8');
      return { name, sql, hash: createHash('sha256').update(sql).digest('hex') };
    });
}

/** What is not applied yet; throws when the database holds what this program does not know, or other text under a known name. */
export function pending(known: readonly Migration[], applied: readonly { name: string; hash: string }[]): Migration[] {
  const byName = new Map(known.map((one) => [one.name, one]));
  for (const one of applied) {
    const file = byName.get(one.name);
    if (file === undefined) {
      throw new MigrationError(
        'unknown',
        `the database was migrated by a newer vault (${one.name}); run that one, migrations only go forward`,
      );
    }
    if (file.hash !== one.hash) {
      throw new MigrationError(
        'changed',
        `${one.name} was applied with other text than this program has; a migration is never edited, add a new one`,
      );
    }
  }
  const done = new Set(applied.map((one) => one.name));
  return known.filter((one) => !done.has(one.name));
}

/**
 * Applies what is pending in one transaction under one lock, so that two replicas that start together apply it once. Returns the names
 * applied. Roles belong to the cluster, not to the database: migrations of two databases may collide over them, which is tried again.
 */
export async function migrate(ownerUrl: string, folder?: string): Promise<string[]> {
  const known = migrations(folder);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await apply(ownerUrl, known);
    } catch (error) {
      const { code, message } = error as { code?: string; message?: string };
      const collided =
        code === '23505' || code === '42710' || (code === 'XX000' && message?.includes('concurrently') === true);
      if (!collided || attempt === 10) throw error;
      await new Promise((next) => setTimeout(next, 50 * attempt));
    }
  }
}

async function apply(ownerUrl: string, known: readonly Migration[]): Promise<string[]> {
  const sql = connect(ownerUrl, { max: 1 });
  try {
    return await sql.begin(async (tx) => {
      // A migration takes as long as there is data, and a replica waits as long for another’s.
      await tx`set local statement_timeout = 0`;
      await tx`select pg_advisory_xact_lock(hashtextextended('nd7 migrations', 0))`;
      const [state] = await tx<{ there: boolean }[]>`select to_regclass('nd7.migration') is not null as there`;
      if (state?.there !== true) {
        await tx`create schema if not exists nd7`;
        await tx`create table nd7.migration (name text primary key, hash text not null, applied timestamptz not null default clock_timestamp())`;
      }
      const applied = await tx<{ name: string; hash: string }[]>`select name, hash from nd7.migration`;
      const names: string[] = [];
      for (const one of pending(known, applied)) {
        try {
          // The one place that runs text.
          await tx.unsafe(one.sql);
        } catch (error) {
          throw Object.assign(error as Error, { message: `${one.name}: ${(error as Error).message}` });
        }
        await tx`insert into nd7.migration (name, hash) values (${one.name}, ${one.hash})`;
        names.push(one.name);
      }
      return names;
    });
  } finally {
    await sql.end({ timeout: 5 });
  }
}
