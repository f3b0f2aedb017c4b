// Ingest: segments of 1,000 entries of 2 KB, made, signed and sent by a client, verified byte by byte, sealed, durable and receipted by the
// vault — against row inserts of the same entries by pgbench (64 rows a transaction, 4 connections), on the same PostgreSQL, one after the other
// in turns. Client, vault and database share this machine. Must: at least 2 times the entries a second.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { compress } from '@mongodb-js/zstd';
import { blake3Hex } from '@nd7/blake3';
import { certMessage, genesis, sealMessage } from '@nd7/chain';
import { formatTime, toBase64, toHex, utf8 } from '@nd7/entry';
import { connectOptions, findSystemBinaries, startPostgres } from '@nd7/postgres';
import { claimMessage, declareContentSize } from '@nd7/segment';
import { generateKeyPair, loadKeyFile, systemClock, systemRandom } from '@nd7/signing';
import { readVaultFile, VaultClient } from '@nd7/ship';
import postgres from 'postgres';
import { familyMs, parentOf, processMs } from './judge/cpu-time.mjs';
import { verdict } from './judge/verdict.mjs';

const ENTRIES = 1000;
const SESSIONS = Number(process.env.ND7_BENCH_SESSIONS ?? 64);
/** Segments of each session that are made beforehand; a round ends when they are sent or its seconds are over. */
const SEGMENTS = 8;
const SECONDS = Number(process.env.ND7_BENCH_SECONDS ?? 10);
const ROUNDS = 3;
const root = join(import.meta.dirname, '..', '..');
const dir = mkdtempSync(join(tmpdir(), 'nd7-bench-ingest-'));
chmodSync(dir, 0o755); // as root the server is another user, who has to reach its data here
const undo = [];

/**
 * What agents write: slices of source code, here of this repository's own. About 1,850 characters, so that an entry has about 2 KB. Always of as much source:
 * how well a segment compresses (about 5 times) depends on how far slices overlap.
 */
const sources = globSources(join(root, 'libs'))
  .sort()
  .map((file) => readFileSync(file, 'utf8'))
  .join('')
  .slice(0, 1_187_000);
const text = (seed) =>
  sources.slice((seed * 7919) % (sources.length - 2000), ((seed * 7919) % (sources.length - 2000)) + 1750);

function globSources(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? ['node_modules', 'dist', 'kernel'].includes(entry.name)
        ? []
        : globSources(join(folder, entry.name))
      : entry.name.endsWith('.ts') && !entry.name.includes('.generated.')
        ? [join(folder, entry.name)]
        : [],
  );
}

/** Grows one session and cuts it every 1,000 entries; each cut ends with a seal, and every 256th entry is one. */
class Session {
  count = 0;
  constructor(machine, origin, id) {
    Object.assign(this, { machine, origin, id, prev: genesis(id), key: generateKeyPair() });
  }
  /** As `printEntry` would, without its checks: half a million lines are made for a round. */
  line({ source, kind, data }) {
    const line = utf8(
      `{"v":1,"seq":${this.count},"prev":"${this.prev}","time":"${formatTime(Date.now())}","source":"${source}","kind":"${kind}","data":${data}}`,
    );
    this.prev = blake3Hex(line);
    this.count += 1;
    return line;
  }
  seal() {
    const next = generateKeyPair();
    const sig = toHex(this.key.sign(sealMessage(this.id, this.count, this.prev, next.publicKey)));
    this.key = next;
    return this.line({ source: 'recorder:nd7', kind: 'seal', data: JSON.stringify({ next: next.publicKey, sig }) });
  }
  async segment() {
    const [from, before] = [this.count, this.prev];
    const lines = [];
    while (lines.length < ENTRIES) {
      if (this.count === 0) {
        const cert = toHex(this.machine.sign(certMessage(this.id, this.key.publicKey)));
        const data = JSON.stringify({
          machine: this.machine.publicKey,
          key: this.key.publicKey,
          cert,
          agent: 'claude-code',
        });
        lines.push(this.line({ source: 'recorder:nd7', kind: 'session.start', data }));
      } else if (lines.length === ENTRIES - 1 || this.count % 256 === 0) lines.push(this.seal());
      else
        lines.push(
          this.line({
            source: 'intent:claude-code',
            kind: 'tool.before',
            data: JSON.stringify({
              tool_name: 'Write',
              tool_input: { file_path: '/home/dev/app/src/x.ts', content: text(this.count + this.id.length * 131) },
            }),
          }),
        );
    }
    const body = Buffer.concat(lines.flatMap((line) => [line, utf8('\n')]));
    const claim = {
      origin: this.origin,
      machine: this.machine.publicKey,
      session: this.id,
      from,
      to: this.count,
      prev: before,
      head: this.prev,
    };
    const frame = declareContentSize(await compress(body), body.length);
    return {
      claim: { ...claim, signature: toBase64(this.machine.sign(claimMessage(claim))) },
      frame,
      bytes: body.length,
    };
  }
}

function nd7(file, args, env) {
  const run = spawnSync(process.execPath, [join(root, file), ...args], { env, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`${file} ${args.join(' ')}: ${run.stderr}${run.stdout}`);
  return run.stdout;
}

/** Milliseconds of processor time by so far of each program a segment passes through; the client is this process. */
const spent = ({ service, server }) => {
  const { user, system } = process.cpuUsage();
  return { client: (user + system) / 1000, vault: processMs(service.pid), PostgreSQL: familyMs(server) };
};

async function vaultRound(url, vault, machine, round, programs) {
  const client = new VaultClient({
    url,
    access: { machine: vault.machine, token: vault.token, signer: machine },
    clock: systemClock,
    random: systemRandom,
  });
  const sessions = Array.from(
    { length: SESSIONS },
    (_, i) => new Session(machine, vault.origin, `bench-${round}-${i}`),
  );
  // Made beforehand: what is measured begins where a recorder has its log on disk.
  const queues = await Promise.all(
    sessions.map(async (session) => {
      const queue = [];
      for (let i = 0; i < SEGMENTS; i += 1) queue.push(await session.segment()); // the compressor has threads of its own
      return queue;
    }),
  );
  const latencies = [];
  let [entries, bytes, wire] = [0, 0, 0];
  const before = spent(programs);
  const start = performance.now();
  const end = start + SECONDS * 1000;
  await Promise.all(
    queues.map(async (queue) => {
      for (const { claim, frame, bytes: raw } of queue) {
        if (performance.now() > end) return;
        const at = performance.now();
        const answer = await client.putSegment(claim, frame, 'zstd');
        if (!('receipt' in answer) && !('location' in answer)) throw new Error('no answer');
        latencies.push(performance.now() - at);
        entries += ENTRIES;
        bytes += raw;
        wire += frame.length;
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const after = spent(programs);
  const cpu = Object.fromEntries(
    Object.keys(after).map((name) => [name, (after[name] - before[name]) / latencies.length]),
  );
  latencies.sort((a, b) => a - b);
  return {
    perSecond: entries / seconds,
    mb: bytes / 1e6 / seconds,
    ratio: bytes / wire,
    p50: latencies[latencies.length >> 1],
    p99: latencies[Math.floor(latencies.length * 0.99)],
    entries,
    cpu,
    wall: (1000 * seconds) / latencies.length,
  };
}

/** What a segment cost, which a loaded machine changes less than how many there were a second. */
function costOf({ cpu, wall }) {
  const parts = Object.entries(cpu).map(([name, ms]) => `${name} ${ms.toFixed(1)}`);
  const sum = Object.values(cpu).reduce((a, b) => a + b, 0);
  return `processor time a segment: ${sum.toFixed(1)} ms (${parts.join(', ')}) in ${wall.toFixed(1)} ms on the clock, ${availableParallelism()} cores`;
}

function pgbenchRound(pgbench, url, script) {
  const { host, port, username, database } = connectOptions(url);
  const args = [
    '-n',
    '-c',
    '4',
    '-j',
    '2',
    '-T',
    String(SECONDS),
    '-f',
    script,
    '-h',
    host,
    '-p',
    String(port),
    '-U',
    username,
    database,
  ];
  const run = spawnSync(pgbench, args, { encoding: 'utf8' });
  const tps = /tps = ([0-9.]+)/.exec(run.stdout)?.[1];
  if (tps === undefined) throw new Error(`pgbench: ${run.stderr}`);
  return Number(tps) * 64;
}

try {
  const binaries = findSystemBinaries();
  const pgbench = [join(binaries?.bin ?? '', 'pgbench'), '/usr/bin/pgbench'].find((path) => existsSync(path));
  const db = await startPostgres({ dataDir: dir, durable: true, rung: 'system' });
  undo.push(() => db.stop());
  const port = 4900 + Math.floor(Math.random() * 90);
  const env = {
    ...process.env,
    NODE_ENV: 'production',
    ND7_DATABASE_URL: db.url,
    ND7_VAULT_NAME: 'bench.localhost',
    ND7_VAULT_PORT: String(port),
    ND7_VAULT_KEYS: join(dir, 'keys'),
    ND7_VAULT_PUBLIC_URL: `http://127.0.0.1:${port}`,
    ND7_HOME: join(dir, 'home'),
    ND7_VAULT_MAX_INGESTS: String(SESSIONS),
  };
  const url = env.ND7_VAULT_PUBLIC_URL;
  nd7('apps/vault/bin/nd7-vault.js', ['migrate'], env);
  const service = spawn(join(root, 'apps/vault/bin/nd7-vault.js'), ['serve'], {
    env,
    stdio: 'ignore',
  });
  undo.push(() => new Promise((done) => (service.once('exit', done), service.kill('SIGTERM'))));
  for (;;) {
    if ((await fetch(`${url}/readyz`).catch(() => undefined))?.ok) break;
    await new Promise((next) => setTimeout(next, 100));
  }
  nd7('apps/vault/bin/nd7-vault.js', ['team', 'create', 'bench'], env);
  const { token } = JSON.parse(
    nd7('apps/vault/bin/nd7-vault.js', ['enrolment', 'create', '--team', 'bench', '--json'], env),
  );
  nd7('apps/agent/bin/nd7.js', ['enrol', url, token], env);
  const vault = readVaultFile(env.ND7_HOME);
  const machine = loadKeyFile(join(env.ND7_HOME, 'keys/machine.key'));

  const sql = postgres({ ...connectOptions(db.url), onnotice: () => undefined });
  await sql`create table bench_entry (id bigserial primary key, session text not null, seq bigint not null, line text not null)`;
  const rows = Array.from(
    { length: 64 },
    (_, i) => `('s', ${i}, '${text(i).padEnd(2000, ' ').replaceAll("'", "''").replaceAll(':', '.')}')`,
  ).join(',');
  writeFileSync(
    join(dir, 'rows.sql'),
    `BEGIN;\nINSERT INTO bench_entry (session, seq, line) VALUES ${rows};\nCOMMIT;\n`,
  );
  undo.push(() => sql.end());
  const [{ pid }] = await sql`select pg_backend_pid() as pid`;
  const programs = { service, server: parentOf(pid) };

  const results = { vault: [], pgbench: [] };
  // Neither side pays for what the other, or an earlier round, left to be written out.
  const settle = async () => {
    await sql`truncate bench_entry`;
    await sql`checkpoint`;
  };
  await vaultRound(url, vault, machine, 'warm', programs); // compiled code, open connections, a grown file: what a service has after its first minute
  for (let round = 0; round < ROUNDS; round += 1) {
    await settle();
    if (pgbench !== undefined) results.pgbench.push(pgbenchRound(pgbench, db.url, join(dir, 'rows.sql')));
    await settle();
    const run = await vaultRound(url, vault, machine, round, programs);
    results.vault.push(run);
    console.log(
      `  round ${round + 1}: vault ${Math.round(run.perSecond).toLocaleString('en')} entries/s (${run.mb.toFixed(0)} MB/s raw, zstd ${run.ratio.toFixed(1)} ×, PUT answered with its receipt p50 ${run.p50.toFixed(0)} ms p99 ${run.p99.toFixed(0)} ms, ${SESSIONS} sessions at once)${pgbench === undefined ? '' : ` · pgbench ${Math.round(results.pgbench[round]).toLocaleString('en')} rows/s`}`,
    );
    if (process.platform === 'linux') console.log(`    ${costOf(run)}`);
  }
  const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
  if (pgbench === undefined) console.log('  pgbench is not installed: no ratio');
  else {
    const ratio = median(results.vault.map((r) => r.perSecond)) / median(results.pgbench);
    console.log(`  ratio ${ratio.toFixed(2)} × (at least 2: ${verdict(ratio >= 2)})`);
  }
} finally {
  for (const one of undo.reverse()) await one();
  rmSync(dir, { recursive: true, force: true });
}
