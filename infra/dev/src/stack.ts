// Brings up PostgreSQL, the vault and an enrolled machine in one data folder; `npm start`, `npm run tour` and the
// end-to-end tests stand on it.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { clusterFolder, OLDEST_MAJOR, RUNGS, startPostgres, type Rung, type RunningPostgres } from '@nd7/postgres';
import { problem, Programs, Service } from './programs.js';
import { step } from './steps.js';

export interface StackOptions {
  root: string;
  dataDir: string;
  /** First port to try. */
  port: number;
  fresh: boolean;
  rung?: Rung;
  /** false: the data may die with the run (tests, tour). */
  durable: boolean;
}

export interface Stack {
  programs: Programs;
  /** Address of the vault and its dashboard. */
  url: string;
  team: string;
  /** Token of a person who reads this team's sessions. */
  reader: string;
  /** The vault's verifier key, as the machine pinned it. */
  vkey: string;
  origin: string;
  machine: string;
  home: string;
  vaultLog: string;
  /** Environment of the vault, for a second replica. */
  vaultEnv: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

const TEAM = 'demo';

/** What a second start has to know again. */
interface State {
  reader: string;
}

async function freePort(first: number): Promise<number> {
  for (let port = first; port < first + 100; port += 1) {
    const free = await new Promise<boolean>((done) => {
      const probe = createServer();
      probe.once('error', () => done(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => done(true)));
    });
    if (free) return port;
  }
  throw new Error(`no free port between ${first} and ${first + 99}: set ND7_PORT`);
}

/** One start per data folder: a second would share its keys and its cluster. */
function takeLock(dataDir: string): () => void {
  const path = join(dataDir, 'running');
  if (existsSync(path)) {
    const pid = Number(readFileSync(path, 'utf8'));
    if (isAlive(pid)) throw new Error(`another start is running here (pid ${pid}): end it with Ctrl-C first`);
  }
  writeFileSync(path, `${process.pid}`, { mode: 0o600 });
  return () => rmSync(path, { force: true });
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  try {
    // A pid may have gone to another program since.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('infra/dev/run');
  } catch {
    return true; // no /proc here
  }
}

function writeWhole(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export async function bringUp(options: StackOptions): Promise<Stack> {
  const { root, dataDir } = options;
  // Root's PostgreSQL runs as another user, who has to pass through; what lies in it is closed by itself.
  mkdirSync(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  const unlock = takeLock(dataDir);
  const undo: (() => Promise<void> | void)[] = [unlock];
  const stop = async (): Promise<void> => {
    for (const one of undo.splice(0).reverse()) await one();
  };
  try {
    if (options.fresh) await forget(root, dataDir);
    const database = await step(
      'PostgreSQL',
      () =>
        startPostgres({
          dataDir: join(dataDir, 'postgres'),
          durable: options.durable,
          ...(options.rung === undefined ? {} : { rung: options.rung }),
        }),
      (found) => found.description,
    );
    undo.push(() => database.stop());
    return await bringUpVault(options, database, undo, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Removes what earlier starts left: of this demo only, never the home that a person records into. */
async function forget(root: string, dataDir: string): Promise<void> {
  const home = join(dataDir, 'home');
  // A start that was killed leaves its recorder running.
  if (existsSync(home)) await new Programs(root, { ...process.env, ND7_HOME: home }).nd7(['recorder', '--stop']);
  for (const rung of RUNGS) {
    for (let major = OLDEST_MAJOR; major < OLDEST_MAJOR + 20; major += 1) {
      rmSync(clusterFolder(join(dataDir, 'postgres', `${rung}-${major}`)), { recursive: true, force: true });
    }
  }
  for (const name of ['postgres', 'keys', 'home', 'state.json', 'vault.log', 'claude-settings.json'])
    rmSync(join(dataDir, name), { recursive: true, force: true, maxRetries: 50, retryDelay: 20 });
}

async function bringUpVault(
  options: StackOptions,
  database: RunningPostgres,
  undo: (() => Promise<void> | void)[],
  stop: () => Promise<void>,
): Promise<Stack> {
  const { root, dataDir } = options;
  const port = await freePort(options.port);
  const url = `http://127.0.0.1:${port}`;
  const home = join(dataDir, 'home');
  const vaultLog = join(dataDir, 'vault.log');
  const vaultEnv: NodeJS.ProcessEnv = {
    ...process.env,
    NODE_ENV: 'production',
    ND7_DATABASE_URL: database.url,
    ND7_VAULT_NAME: 'vault.localhost',
    ND7_VAULT_HOST: '127.0.0.1',
    ND7_VAULT_PORT: String(port),
    ND7_VAULT_PUBLIC_URL: url,
    ND7_VAULT_KEYS: join(dataDir, 'keys'),
    ND7_DASHBOARD_DIR: join(root, 'apps/dashboard/dist'),
  };
  const programs = new Programs(root, { ...vaultEnv, ND7_HOME: home });

  await step('Vault: schema', async () => {
    const result = await programs.vault(['migrate']);
    if (result.code !== 0) throw new Error(problem(result));
  });
  const service = Service.start(join(root, 'apps/vault/bin/nd7-vault.js'), ['serve'], vaultEnv, vaultLog);
  undo.push(() => service.stop());
  await step(
    'Vault and dashboard',
    () => ready(url, service),
    () => url,
  );

  const reader = await step(
    'Team',
    () => team(programs, join(dataDir, 'state.json')),
    () => TEAM,
  );
  undo.push(async () => void (await programs.nd7(['recorder', '--stop'])));
  const pinned = await step(
    'This machine, enrolled',
    () => enrol(programs, home, url),
    (vault) => `${vault.machine.slice(0, 12)}…, vault key pinned`,
  );
  await step(
    'Hooks, attached to a settings file of this demo',
    () => attach(programs, join(dataDir, 'claude-settings.json')),
    (how) => how,
  );
  return { programs, url, team: TEAM, reader, ...pinned, home, vaultLog, vaultEnv, stop };
}

async function ready(url: string, service: Service): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (performance.now() < deadline) {
    if (!service.running) throw new Error(`the vault ended; its last words are in ${service.log}`);
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    if (answer?.ok === true) return;
    await new Promise((next) => setTimeout(next, 50));
  }
  throw new Error(`the vault did not become ready within 60 s; see ${service.log}`);
}

/** The demo team and the token of its reader, made once. */
async function team(programs: Programs, statePath: string): Promise<string> {
  if (existsSync(statePath)) return (JSON.parse(readFileSync(statePath, 'utf8')) as State).reader;
  const made = await programs.vault(['team', 'create', TEAM]);
  if (made.code !== 0 && !/exists/.test(made.stderr + made.stdout)) throw new Error(problem(made));
  const { token } = await programs.json('vault', ['reader', 'create', '--team', TEAM]);
  writeWhole(statePath, JSON.stringify({ reader: String(token) } satisfies State));
  return String(token);
}

/** `nd7 init` as a user runs it; answers with what the hooks are. */
async function attach(programs: Programs, settings: string): Promise<string> {
  const result = await programs.nd7(['init', '--settings', settings, '--yes']);
  if (result.code !== 0) throw new Error(problem(result));
  return existsSync(join(programs.env['ND7_HOME'] ?? '', 'bin', 'nd7-shim'))
    ? 'a native shim'
    : 'Node processes (no C compiler here, so no shim)';
}

interface Pinned {
  vkey: string;
  origin: string;
  machine: string;
}

async function enrol(programs: Programs, home: string, url: string): Promise<Pinned> {
  const path = join(home, 'vault.json');
  if (existsSync(path)) {
    const vault = JSON.parse(readFileSync(path, 'utf8')) as Pinned & { url: string };
    if (vault.url !== url) writeWhole(path, JSON.stringify({ ...vault, url })); // the port of this demo may have moved; the pinned key has not
    return vault;
  }
  const { token } = await programs.json('vault', ['enrolment', 'create', '--team', TEAM]);
  await programs.json('nd7', ['enrol', url, String(token)]);
  return JSON.parse(readFileSync(path, 'utf8')) as Pinned;
}
