// Processes that are really killed (SIGKILL), so that nothing is tidied up: transactions stay open until the server notices, locks until the
// kernel does. They run the built program (dist), as in production.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stopTestPostgres } from '@nd7/testing';
import { connect } from '../db/database.js';
import { EmbeddedSigner } from '../signer/embedded.js';
import { SignerClient } from '../signer/socket-client.js';
import { checkLog } from './check-log.js';
import { freshLog, NO_SIGNER, ORIGIN, Replica, TEAM, temporaryFolder, until, VAULT } from './log.fixture.js';
import type { Step } from './team-sequencer.js';

afterAll(stopTestPostgres);

const DIST = resolve(import.meta.dirname, '../../dist');

/** A replica without HTTP that leads the log, and kills itself at a step or is killed from outside. */
const LEADER = `
const [{ connect }, { EmbeddedSigner }, { Sequencer }, { Wakes }] = await Promise.all(['db/database.js', 'signer/embedded.js', 'sequence/sequencer.js', 'sequence/wakes.js'].map((name) => import(process.env.DIST + '/' + name)));
const sql = connect(process.env.URL, { max: 4, role: 'nd7_app' });
const tenant = (team, work) => sql.begin(async (tx) => { await tx\`select set_config('nd7.team', \${team}, true)\`; return work(tx); });
const events = { step: (_team, step) => { if (step === process.env.KILL_AT) process.kill(process.pid, 'SIGKILL'); } };
const sequencer = new Sequencer({ sql, lockSql: connect(process.env.URL, { max: 1, role: 'nd7_app' }), db: { tenant }, signer: EmbeddedSigner.open(process.env.FOLDER), wakes: new Wakes(sql), vaultName: '${VAULT}', batch: 20, pace: { tick: 50, batch: 5 }, events });
await sequencer.start();
console.log('leads');
setInterval(() => undefined, 1000);
`;

function leader(env: Record<string, string>): ChildProcess {
  if (!existsSync(join(DIST, 'sequence/sequencer.js'))) throw new Error('apps/vault is not built: run its build first');
  return spawn(process.execPath, ['--input-type=module', '-e', LEADER], {
    env: { ...process.env, DIST, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function endOf(child: ChildProcess): Promise<NodeJS.Signals | number | null> {
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return signal ?? code;
}

describe('a killed leader', () => {
  it('at each step leaves a log that the next goes on with', async () => {
    const { url, folder, signer } = await freshLog();
    await signer.close();
    const ids: bigint[] = [];
    for (const step of ['inserted', 'committed', 'read-back', 'signed', 'publishing', 'published'] satisfies Step[]) {
      const replica = new Replica(url, NO_SIGNER);
      ids.push(await replica.queue(), await replica.queue());
      await replica.close();
      expect(await endOf(leader({ URL: url, FOLDER: folder, KILL_AT: step }))).toBe('SIGKILL');
    }
    const last = EmbeddedSigner.open(folder);
    const replica = new Replica(url, last);
    await replica.sequencer.start();
    for (const id of ids) expect(await replica.log.published(TEAM, id, 30_000)).toBeDefined();
    const check = await checkLog(replica.db, TEAM, { signer: last, receipts: 100 });
    expect(check).toMatchObject({ size: 12, published: 12, waiting: 0 });
    expect(check.fault).toBeUndefined();
    await replica.close();
    await last.close();
  }, 120_000);

  it('at any moment under load too', async () => {
    const { url, folder, signer } = await freshLog();
    await signer.close();
    const idle = new Replica(url, NO_SIGNER);
    let isOver = false;
    const ids: bigint[] = [];
    const load = (async () => {
      while (!isOver) ids.push(await idle.queue());
    })();
    for (let i = 0; i < 5; i += 1) {
      const child = leader({ URL: url, FOLDER: folder });
      await once(child.stdout!, 'data');
      await new Promise((next) => setTimeout(next, 30 + Math.random() * 200));
      child.kill('SIGKILL');
      expect(await endOf(child)).toBe('SIGKILL');
    }
    isOver = true;
    await load;
    await idle.close();
    const last = EmbeddedSigner.open(folder);
    const replica = new Replica(url, last);
    await replica.sequencer.start();
    await Promise.all(ids.map(async (id) => expect(await replica.log.published(TEAM, id, 60_000)).toBeDefined()));
    const check = await checkLog(replica.db, TEAM, { signer: last, receipts: 100 });
    expect(check).toMatchObject({ size: ids.length, published: ids.length, waiting: 0 });
    expect(check.fault).toBeUndefined();
    await replica.close();
    await last.close();
  }, 120_000);
});

it('a leader whose connections are cut lives on and leads again', async () => {
  const { url, folder, signer } = await freshLog();
  await signer.close();
  const child = leader({ URL: url, FOLDER: folder });
  await once(child.stdout!, 'data');
  const owner = connect(url, { max: 1 });
  const cut = (): Promise<unknown> =>
    owner`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
  const ids: bigint[] = [];
  for (let i = 0; i < 3; i += 1) {
    await cut();
    const replica = new Replica(url, NO_SIGNER);
    ids.push(await replica.queue());
    expect(await until(() => replica.log.published(TEAM, ids.at(-1)!, 1000))).toBeDefined();
    await replica.close();
  }
  expect(child.exitCode).toBeNull();
  child.kill('SIGKILL');
  await endOf(child);
  await owner.end();
}, 90_000);

describe('the signer as a process', () => {
  const run = (folder: string, path: string): ChildProcess =>
    spawn(process.execPath, [resolve(DIST, '../bin/nd7-vault.js'), 'signer'], {
      env: {
        ...process.env,
        ND7_VAULT_NAME: VAULT,
        ND7_DATABASE_URL: 'postgres://nobody@localhost/none',
        ND7_VAULT_KEYS: folder,
        ND7_VAULT_SIGNER_STATE: folder,
        ND7_VAULT_SIGNER_SOCKET: path,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });

  it('is one for its folder: a second refuses, and takes over when the first is killed', async () => {
    const folder = join(temporaryFolder(), 'signer');
    const path = join(folder, 'signer.sock');
    const first = run(folder, path);
    await once(first.stdout!, 'data');
    const client = new SignerClient(path);
    expect(await client.provision(ORIGIN)).toMatchObject({ ok: true });
    const second = run(folder, path);
    let said = '';
    second.stderr!.on('data', (chunk: Buffer) => (said += chunk.toString()));
    expect(await endOf(second)).toBe(1);
    expect(said).toContain(`another signer (process ${String(first.pid)}) holds ${folder}`);
    expect(await client.state(ORIGIN)).toMatchObject({ ok: true });
    first.kill('SIGKILL');
    await endOf(first);
    const third = run(folder, path);
    await once(third.stdout!, 'data');
    expect(await until(() => client.state(ORIGIN).catch(() => undefined))).toMatchObject({
      ok: true,
      last: { size: 0 },
    });
    third.kill('SIGTERM');
    expect(await endOf(third)).toBe(0);
    expect(existsSync(path)).toBe(false);
    await client.close();
  }, 60_000);

  const hasStrace = spawnSync('strace', ['-V']).status === 0;
  (hasStrace ? it : it.skip)(
    `has its state on the disk before the signature leaves${hasStrace ? '' : ' (needs strace)'}`,
    async () => {
      const folder = join(temporaryFolder(), 'signer');
      const signer = EmbeddedSigner.open(folder);
      await signer.provision(ORIGIN);
      await signer.close();
      const program = `
const [{ EmbeddedSigner }, { leafHash }] = [await import(process.env.DIST + '/signer/embedded.js'), await import(process.env.TLOG)];
const signer = EmbeddedSigner.open(process.env.FOLDER);
const answer = await signer.sign({ origin: '${ORIGIN}', size: 1, root: leafHash(Buffer.from('one')), proof: [] });
(await import('node:fs')).writeSync(1, answer.lines[0] + '\\n');
`;
      const trace = join(temporaryFolder(), 'trace');
      const TLOG = resolve(DIST, '../../../libs/tlog/dist/index.js');
      const child = spawn(
        'strace',
        [
          '-f',
          '-e',
          'trace=fsync,fdatasync,rename,renameat,renameat2,write,pwrite64',
          '-o',
          trace,
          process.execPath,
          '--input-type=module',
          '-e',
          program,
        ],
        { env: { ...process.env, DIST, TLOG, FOLDER: folder }, stdio: ['ignore', 'pipe', 'inherit'] },
      );
      expect(await endOf(child)).toBe(0);
      const calls = readFileSync(trace, 'utf8').split('\n');
      const at = (pattern: RegExp, from = 0): number => calls.findIndex((line, i) => i >= from && pattern.test(line));
      const written = at(/write.*nd7\/signer-state\/v1/);
      const synced = at(/f(data)?sync\(\d+\) += 0|f(data)?sync resumed.*= 0/, written);
      const named = at(/rename.*\/state"/, synced);
      const folderSynced = at(/f(data)?sync\(\d+\) += 0|f(data)?sync resumed.*= 0/, named);
      const left = at(/write\(1, "\\342\\200\\224 vault\.test\/acme/, folderSynced);
      expect([written, synced, named, folderSynced, left].every((place) => place >= 0)).toBe(true);
    },
    60_000,
  );
});
