// Receipts under load: 50 segments a second arrive whatever the vault does (open loop), from 40 sessions, each small and sealed as a recorder ships
// them while an agent works. Measured from the PUT to the receipt with its inclusion proof in hand; each is then verified, and the log is
// made again from its leaves. Client, vault, signer and database (fsync on) share this machine. Must: p99 at most 1 s.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compress } from '@mongodb-js/zstd';
import { blake3Hex } from '@nd7/blake3';
import { certMessage, genesis, sealMessage } from '@nd7/chain';
import { formatTime, printEntry, toBase64, toHex, utf8 } from '@nd7/entry';
import { startPostgres } from '@nd7/postgres';
import { checkReceiptItself } from '@nd7/receipt';
import { claimMessage, declareContentSize } from '@nd7/segment';
import { generateKeyPair, loadKeyFile, systemClock, systemRandom, verifySignatures } from '@nd7/signing';
import { readVaultFile, VaultClient } from '@nd7/ship';
import { parseVkey } from '@nd7/tlog';
import { verdict } from './judge/verdict.mjs';

const RATE = Number(process.env.ND7_BENCH_RATE ?? 50);
const SECONDS = Number(process.env.ND7_BENCH_SECONDS ?? 15);
const SESSIONS = 40;
const ENTRIES = 12;
const root = join(import.meta.dirname, '..', '..');
const dir = mkdtempSync(join(tmpdir(), 'nd7-bench-receipt-'));
chmodSync(dir, 0o755); // as root the server is another user, who has to reach its data here
const undo = [];

/** Grows one session; each segment is a few entries and a seal. */
class Session {
  count = 0;
  constructor(machine, origin, id) {
    Object.assign(this, { machine, origin, id, prev: genesis(id), key: generateKeyPair() });
  }
  line(draft) {
    const line = printEntry(this.count, this.prev, { time: formatTime(Date.now()), ...draft });
    this.prev = blake3Hex(line);
    this.count += 1;
    return line;
  }
  async segment() {
    const [from, before] = [this.count, this.prev];
    const lines = [];
    if (from === 0) {
      const cert = toHex(this.machine.sign(certMessage(this.id, this.key.publicKey)));
      const data = { machine: this.machine.publicKey, key: this.key.publicKey, cert, agent: 'claude-code' };
      lines.push(this.line({ source: 'recorder:nd7', kind: 'session.start', data: JSON.stringify(data) }));
    }
    while (lines.length < ENTRIES) {
      const data = { tool_name: 'Bash', tool_input: { command: `grep -rn ${toHex(systemRandom(16))} src` } };
      lines.push(this.line({ source: 'intent:claude-code', kind: 'tool.before', data: JSON.stringify(data) }));
    }
    const next = generateKeyPair();
    const sig = toHex(this.key.sign(sealMessage(this.id, this.count, this.prev, next.publicKey)));
    this.key = next;
    lines.push(
      this.line({ source: 'recorder:nd7', kind: 'seal', data: JSON.stringify({ next: next.publicKey, sig }) }),
    );
    const body = Buffer.concat(lines.flatMap((line) => [line, utf8('\n')]));
    const { origin, id: session, machine, count: to, prev: head } = this;
    const claim = { origin, machine: machine.publicKey, session, from, to, prev: before, head };
    const frame = declareContentSize(await compress(body), body.length);
    return { claim: { ...claim, signature: toBase64(machine.sign(claimMessage(claim))) }, frame };
  }
}

function nd7(file, args, env) {
  const run = spawnSync(process.execPath, [join(root, file), ...args], { env, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`${file} ${args.join(' ')}: ${run.stderr}${run.stdout}`);
  return run.stdout;
}

const pause = (ms) => new Promise((next) => setTimeout(next, ms));

try {
  const db = await startPostgres({ dataDir: dir, durable: true });
  undo.push(() => db.stop());
  const port = 4900 + Math.floor(Math.random() * 90);
  const url = `http://127.0.0.1:${port}`;
  const env = {
    ...process.env,
    NODE_ENV: 'production',
    ND7_DATABASE_URL: db.url,
    ND7_VAULT_NAME: 'bench.localhost',
    ND7_VAULT_PORT: String(port),
    ND7_VAULT_KEYS: join(dir, 'keys'),
    ND7_VAULT_PUBLIC_URL: url,
    ND7_HOME: join(dir, 'home'),
  };
  nd7('apps/vault/bin/nd7-vault.js', ['migrate'], env);
  const service = spawn(join(root, 'apps/vault/bin/nd7-vault.js'), ['serve'], {
    env,
    stdio: 'ignore',
  });
  undo.push(() => new Promise((done) => (service.once('exit', done), service.kill('SIGTERM'))));
  while (!(await fetch(`${url}/readyz`).catch(() => undefined))?.ok) await pause(100);
  nd7('apps/vault/bin/nd7-vault.js', ['team', 'create', 'bench'], env);
  const { token } = JSON.parse(
    nd7('apps/vault/bin/nd7-vault.js', ['enrolment', 'create', '--team', 'bench', '--json'], env),
  );
  nd7('apps/agent/bin/nd7.js', ['enrol', url, token], env);
  const vault = readVaultFile(env.ND7_HOME);
  const machine = loadKeyFile(join(env.ND7_HOME, 'keys/machine.key'));
  const access = { machine: vault.machine, token: vault.token, signer: machine };
  const client = new VaultClient({ url, access, clock: systemClock, random: systemRandom });

  // Made beforehand: what is measured begins where a recorder has its log on disk.
  const total = RATE * SECONDS;
  const sessions = Array.from({ length: SESSIONS }, (_, i) => new Session(machine, vault.origin, `bench-${i}`));
  const segments = [];
  for (let i = 0; i < total; i += 1) segments.push(await sessions[i % SESSIONS].segment());
  const busy = sessions.map(() => Promise.resolve());
  const receipts = [];
  const latencies = [];
  let later = 0;
  let refused = 0;
  let failure;

  async function ship({ claim, frame }, due) {
    let answer;
    while (answer === undefined) {
      answer = await client.putSegment(claim, frame, 'zstd').catch(async (error) => {
        if (error.code !== 'busy') throw error;
        refused += 1;
        await pause(100);
      });
    }
    let receipt = answer.receipt;
    if (receipt === undefined) later += 1;
    while (receipt === undefined) {
      await pause(50);
      receipt = await client.receipt(answer.location);
    }
    latencies.push(performance.now() - due);
    receipts.push(receipt);
  }

  const start = performance.now();
  const work = [];
  for (const [i, segment] of segments.entries()) {
    const due = start + (i * 1000) / RATE;
    const early = due - performance.now();
    if (early > 0) await pause(early);
    // A session's segments go one after the other; the clock runs from when the segment was due all the same.
    busy[i % SESSIONS] = busy[i % SESSIONS].then(() => ship(segment, due));
    // Kept for the end: what is thrown here in the meantime must not end the program before it has tidied up.
    work.push(
      busy[i % SESSIONS].catch((error) => {
        failure ??= error;
      }),
    );
  }
  await Promise.all(work);
  if (failure !== undefined) throw failure;
  const seconds = (performance.now() - start) / 1000;

  const trust = { keys: [parseVkey(vault.vkey)] };
  for (const receipt of receipts) {
    const checked = await checkReceiptItself(receipt, trust, verifySignatures);
    if (!checked.ok) throw new Error(`a receipt does not hold: ${checked.reason}`);
  }
  const check = JSON.parse(nd7('apps/vault/bin/nd7-vault.js', ['check', '--json'], env));
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))];
  const [log] = check.logs;
  console.log(
    `  ${total} segments in ${seconds.toFixed(1)} s (${(total / seconds).toFixed(0)}/s asked ${RATE}/s), ${log.checkpoints} checkpoints, ${later} answered 202 first, ${refused} times 503`,
  );
  console.log(
    `  PUT to receipt with inclusion proof: p50 ${at(0.5).toFixed(0)} ms, p99 ${at(0.99).toFixed(0)} ms, max ${at(1).toFixed(0)} ms`,
  );
  console.log(`  every receipt verified, the log of ${log.size} leaves made again and compared`);
  console.log(`  p99 at most 1 s: ${verdict(at(0.99) <= 1000)}`);
} finally {
  for (const one of undo.reverse()) await one();
  rmSync(dir, { recursive: true, force: true });
}
