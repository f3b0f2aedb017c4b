// A vault as it runs for real: a process of its own on a PostgreSQL of its own, both of which can be killed and started again on the same address.
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { connectOptions, findSystemBinaries, startPostgres, type RunningPostgres } from '@nd7/postgres';

export const ROOT = join(import.meta.dirname, '..', '..');
const VAULT = join(ROOT, 'apps/vault/bin/nd7-vault.js');
const TEAM = 'acme';

/** What a test ships to: the real vault, or the double of `@nd7/testing`. */
export interface Backend {
  readonly url: string;
  enrolmentToken(): string | Promise<string>;
  /** Throws where anything that is held does not verify. */
  checkAll(): Promise<void>;
  stop(): Promise<void>;
}

export class RealVault implements Backend {
  private database: RunningPostgres | undefined;
  private service: ChildProcess | undefined;
  private said = '';

  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private readonly settings: Record<string, string>,
  ) {}

  /** Brings all of it up, with one team; `settings` are added to the vault's environment. */
  static async start(settings: Record<string, string> = {}): Promise<RealVault> {
    const folder = mkdtempSync(join(tmpdir(), 'nd7-real-vault-'));
    chmodSync(folder, 0o711); // a server that root starts runs as another user
    const vault = new RealVault(folder, await freePort(), settings);
    try {
      await vault.startDatabase();
      await vault.admin('migrate');
      await vault.admin('team', 'create', TEAM);
      await vault.serve();
      return vault;
    } catch (error) {
      await vault.stop();
      throw error;
    }
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async enrolmentToken(): Promise<string> {
    return String((await this.admin('enrolment', 'create', '--team', TEAM))['token']);
  }

  async reader(): Promise<string> {
    return String((await this.admin('reader', 'create', '--team', TEAM))['token']);
  }

  /** Checkpoints, trees and receipts of the log made anew from what is stored: `nd7-vault check`. */
  async checkAll(): Promise<void> {
    await this.admin('check', '--receipts', '1000');
  }

  /** A leaf of each kind that the log holds of a session, as `<type> <from> <to>` or `<type> <entries>`. */
  async leavesOf(session: string): Promise<string[]> {
    return this.sql(async (sql) => {
      const rows = await sql<{ statement: string }[]>`select statement from nd7.log_queue order by leaf_id`;
      return rows
        .filter(({ statement }) => statement.includes(`\nsession ${session}\n`))
        .map(({ statement }) => {
          const type = /^nd7\/([a-z]+)\/v1\n/.exec(statement)?.[1] ?? '';
          return `${type} ${/^(?:entries|count) ([0-9 ]+)$/m.exec(statement)?.[1] ?? ''}`;
        });
    });
  }

  /** Holds publication back while `work` runs: what is taken meanwhile is durable and has no receipt. */
  unpublished<T>(work: () => Promise<T>): Promise<T> {
    return this.sql((sql) =>
      sql.begin(async (tx) => {
        await tx`lock table nd7.log_checkpoint in share mode`;
        return work();
      }),
    ) as Promise<T>;
  }

  async serve(): Promise<void> {
    const child = spawn(process.execPath, [VAULT, 'serve'], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.service = child;
    const keep = (chunk: Buffer): void => void (this.said = (this.said + chunk.toString()).slice(-8000));
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    await until('the vault is ready', async () => {
      if (child.exitCode !== null) throw new Error(`the vault ended: ${this.said}`);
      return (await fetch(`${this.url}/readyz`).catch(() => undefined))?.ok === true;
    });
  }

  /** kill -9: nothing is told, nothing is finished. */
  async kill(): Promise<void> {
    await ended(this.service, 'SIGKILL');
  }

  async startDatabase(): Promise<void> {
    const dataDir = join(this.folder, 'postgres');
    const rung = findSystemBinaries(process.env) === undefined ? 'embedded' : 'system';
    // Durable, as in production: what was answered must be there after a crash.
    this.database = await startPostgres({ dataDir, durable: true, rung, env: {} });
    // Each start has a socket folder of its own; the vault is told one name for all of them.
    symlinkSync(connectOptions(this.database.url).host, join(this.folder, 'socket.new'));
    renameSync(join(this.folder, 'socket.new'), join(this.folder, 'socket'));
  }

  /** kill -9 of the server and so of every connection. */
  async crashDatabase(): Promise<void> {
    const dataDir = / data in (.*)$/.exec(this.database?.description ?? '')?.[1] ?? '';
    const [pid] = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n');
    process.kill(Number(pid), 'SIGKILL');
    await this.database?.stop();
    this.database = undefined;
  }

  async stop(): Promise<void> {
    await ended(this.service, 'SIGTERM');
    await this.database?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get env(): NodeJS.ProcessEnv {
    return {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      ND7_DATABASE_URL: this.databaseUrl,
      ND7_VAULT_NAME: 'vault.test',
      ND7_VAULT_PORT: String(this.port),
      ND7_VAULT_KEYS: join(this.folder, 'keys'),
      ND7_DASHBOARD_DIR: join(this.folder, 'no-dashboard'),
      ...this.settings,
    };
  }

  private get databaseUrl(): string {
    return `postgres://postgres@${encodeURIComponent(join(this.folder, 'socket'))}:5432/postgres`;
  }

  private async sql<T>(work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
    const sql = postgres({ ...connectOptions(this.databaseUrl), max: 1, onnotice: () => undefined });
    try {
      return await work(sql);
    } finally {
      await sql.end({ timeout: 5 });
    }
  }

  /** `nd7-vault` with words: the object that it prints with `--json`. */
  admin(...args: string[]): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [VAULT, ...args, '--json'], {
        env: this.env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let [out, err] = ['', ''];
      child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
      child.once('error', reject);
      child.once('close', (code) => {
        if (code !== 0) return reject(new Error(`nd7-vault ${args.join(' ')}: exit ${String(code)}: ${err}${out}`));
        resolve(JSON.parse(out.trim().split('\n').at(-1) ?? '{}') as Record<string, unknown>);
      });
    });
  }
}

async function ended(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const over = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), 15_000);
  await over;
  clearTimeout(late);
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** Waits for something that comes about by itself. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, limitMs = 90_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
