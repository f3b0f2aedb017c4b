// A primary and standbys that follow it by streaming replication, from the PostgreSQL binaries of this machine. For tests only.
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { clusterFolder, connectOptions, findSystemBinaries, startPostgres, type Binaries } from '@nd7/postgres';
import postgres, { type Sql } from 'postgres';

interface Server {
  /** The vault's database, as a superuser. */
  url: string;
  stop(): Promise<void>;
}

/** A program beside the server's own; a folder of PATH may hold a link to the server alone. */
function program(name: string, binaries: Binaries | undefined): string {
  return binaries === undefined ? '' : join(dirname(realpathSync(join(binaries.bin, 'postgres'))), name);
}

export class Replication {
  private readonly binaries: Binaries | undefined = findSystemBinaries();
  private readonly folder = mkdtempSync(join(tmpdir(), 'nd7-standby-'));
  private readonly running = new Map<string, Server>();

  /** Whether this machine has the programs for it. */
  static get isPossible(): boolean {
    return existsSync(program('pg_basebackup', findSystemBinaries()));
  }

  constructor() {
    chmodSync(this.folder, 0o755); // root gives the server to another user
  }

  private dataDir(name: string): string {
    return join(this.folder, name);
  }

  /** Where the ladder keeps the cluster of a name. */
  private clusterDir(name: string): string {
    return clusterFolder(join(this.dataDir(name), `system-${String(this.binaries?.major)}`));
  }

  /** Starts a server of a name; one that was never copied is a primary of its own. */
  async start(name: string): Promise<string> {
    mkdirSync(this.dataDir(name), { recursive: true });
    const { url, stop } = await startPostgres({ dataDir: this.dataDir(name), durable: false, rung: 'system' });
    const server = { url: url.replace(/\/postgres$/, '/vault'), stop };
    this.running.set(name, server);
    return server.url;
  }

  async stop(name: string): Promise<void> {
    await this.running.get(name)?.stop();
    this.running.delete(name);
  }

  /** Makes a standby of a running server, as an operator does: `pg_basebackup -R`. */
  async copy(from: string, to: string): Promise<void> {
    const { host, username } = connectOptions(this.running.get(from)?.url ?? '');
    const { uid, gid } = statSync(this.clusterDir(from));
    mkdirSync(this.dataDir(to));
    const target = this.clusterDir(to);
    mkdirSync(target, { mode: 0o700 });
    await promisify(execFile)('chown', [`${String(uid)}:${String(gid)}`, target]);
    const args = [
      '-h',
      String(host),
      '-U',
      String(username),
      '-D',
      target,
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
      '--no-sync',
    ];
    const options = process.getuid?.() === 0 ? { uid, gid, cwd: '/' } : { cwd: '/' };
    await promisify(execFile)(program('pg_basebackup', this.binaries), args, options);
  }

  /** Waits until a standby has replayed all that its primary has written by now. */
  async caughtUp(primary: string, standby: string): Promise<void> {
    const lsn = await this.ask<string>(primary, (sql) => sql`select pg_current_wal_insert_lsn()::text as value`);
    while (
      !(await this.ask<boolean>(
        standby,
        (sql) => sql`select coalesce(pg_last_wal_replay_lsn() >= ${lsn}::pg_lsn, false) as value`,
      ))
    )
      await new Promise((next) => setTimeout(next, 20));
  }

  async promote(standby: string): Promise<void> {
    if (!(await this.ask<boolean>(standby, (sql) => sql`select pg_promote() as value`)))
      throw new Error('it was not promoted');
  }

  private async ask<T>(name: string, question: (sql: Sql) => PromiseLike<readonly unknown[]>): Promise<T> {
    const sql = postgres({ ...connectOptions(this.running.get(name)?.url ?? ''), max: 1, onnotice: () => undefined });
    try {
      const [row] = (await question(sql)) as readonly { value: T }[];
      return (row as { value: T }).value;
    } finally {
      await sql.end();
    }
  }

  async close(): Promise<void> {
    for (const name of [...this.running.keys()]) await this.stop(name);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
