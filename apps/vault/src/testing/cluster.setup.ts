// Runs once before all test files: a PostgreSQL by the ladder, handed on as ND7_DATABASE_URL (the ladder's first rung).
import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres, type RunningPostgres } from '@nd7/postgres';

export interface Kept {
  nd7Cluster?: RunningPostgres & { folder: string };
}

export default async function setUp(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'nd7-vault-pg-'));
  chmodSync(folder, 0o755); // else root's cluster, which runs as another user, lies beside it and is left behind
  const cluster = await startPostgres({ dataDir: folder, durable: false });
  process.env['ND7_DATABASE_URL'] = cluster.url;
  delete process.env['ND7_POSTGRES'];
  (globalThis as Kept).nd7Cluster = { ...cluster, folder };
}
