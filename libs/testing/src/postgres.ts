// A PostgreSQL for tests: one cluster per test file, a fresh database per call.
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { connectOptions, startPostgres, type RunningPostgres } from '@nd7/postgres';

let running: Promise<RunningPostgres & { dir: string }> | undefined;
let made = 0;

/** The cluster of this test file, by the ladder (ND7_POSTGRES forces a rung); started on first use. */
export function testPostgres(): Promise<RunningPostgres> {
  running ??= (async () => {
    const dir = mkdtempSync(join(tmpdir(), 'nd7-test-pg-'));
    chmodSync(dir, 0o755); // else root's cluster, which runs as another user, lies beside it and is left behind
    return { ...(await startPostgres({ dataDir: dir, durable: false })), dir };
  })();
  return running;
}

/** URL of an empty database of its own, as a superuser. Gone with the cluster. */
export async function testDatabase(): Promise<string> {
  const { url } = await testPostgres();
  const name = `t_${process.pid}_${(made += 1)}_${randomBytes(4).toString('hex')}`; // several test files may share one cluster
  const sql = postgres({ ...connectOptions(url), max: 1, onnotice: () => undefined });
  try {
    await sql`create database ${sql(name)}`;
  } finally {
    await sql.end();
  }
  return url.replace(/\/postgres$/, `/${name}`);
}

/** Ends the cluster and removes its data; call it in `afterAll`. */
export async function stopTestPostgres(): Promise<void> {
  const cluster = await running;
  running = undefined;
  await cluster?.stop();
  if (cluster !== undefined) rmSync(cluster.dir, { recursive: true, force: true });
}
