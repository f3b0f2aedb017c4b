#!/usr/bin/env node
// How fast a log is verified in full: chain, UTF-8, JSON, keys, seals, head, classes. Beside it, in the same run and in turns, what one
// would write first: readline, JSON.parse and hash-wasm for the links alone. Ratios are what counts; each run is a process of its own.
// What threads can give depends on the machine: two processes of one thread, each on a log of half the size, share nothing and say it.
//
//   node tools/bench/verify.mjs [--mb 1000] [--rounds 3] [--json]
//
// Needs the built workspace. Writes logs to the system's temporary folder (or $TMPDIR) and removes it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { generateKeyPairSync, sign } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
  writevSync,
} from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createBLAKE3 } from 'hash-wasm';
import { verdict } from './judge/verdict.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SESSION = 'bench';
const ENTRY = 2048;
const SEAL_EVERY = 256;
const PREFIX_MB = 50;

/** Source text to fill the entries with: what agents say is mostly code. */
function sourceText() {
  const libs = join(ROOT, 'libs');
  const files = readdirSync(libs).flatMap((lib) => {
    try {
      return readdirSync(join(libs, lib, 'src')).map((name) => join(libs, lib, 'src', name));
    } catch {
      return [];
    }
  });
  return files
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.generated.ts'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
}

/** Writes a sealed log of `bytes` bytes and, where asked, the first 50 MB of it to another file; returns its head. */
async function generate(file, prefixFile, bytes) {
  const hasher = await createBLAKE3();
  const hash = (data) => hasher.init().update(data).digest('hex');
  const text = sourceText();
  const pair = () => generateKeyPairSync('ed25519');
  const raw = ({ publicKey }) => publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
  const signed = ({ privateKey }, message) => sign(null, Buffer.from(message), privateKey).toString('hex');
  let random = 12345;
  const next = (limit) => (random = (random * 1103515245 + 12345) & 0x7fffffff) % limit;
  const machine = pair();
  let key = pair();
  let prev = hash(`nd7 session v1\n${SESSION}\n`);
  let size = 0;
  let seq = 0;
  const fd = openSync(file, 'w', 0o600);
  const prefix = prefixFile && openSync(prefixFile, 'w', 0o600);
  let batch = [];
  const flush = () => {
    writevSync(fd, batch);
    batch = [];
  };
  for (; size < bytes; seq++) {
    const front = `{"v":1,"seq":${seq},"prev":"${prev}","time":"${new Date(1_790_000_000_000 + 300 * seq).toISOString()}",`;
    let rest;
    if (seq === 0) {
      const cert = signed(machine, `nd7-session/v1\n${SESSION}\n${raw(key)}\n`);
      rest = `"source":"recorder:nd7","kind":"session.start","data":{"machine":"${raw(machine)}","key":"${raw(key)}","cert":"${cert}"}}`;
    } else if (seq % SEAL_EVERY === 0) {
      const after = pair();
      const sig = signed(key, `nd7-seal/v1\n${SESSION}\n${seq}\n${prev}\n${raw(after)}\n`);
      rest = `"source":"recorder:nd7","kind":"seal","data":{"next":"${raw(after)}","sig":"${sig}"}}`;
      key = after;
    } else {
      const at = next(text.length - 2000);
      const call = {
        hook_event_name: 'PostToolUse',
        session_id: SESSION,
        cwd: '/home/dev/app',
        tool_name: 'Bash',
        tool_use_id: `toolu_${next(1e9)}`,
      };
      const said = JSON.stringify({ ...call, tool_response: { stdout: text.slice(at, at + 1400), stderr: '' } });
      rest = `"source":"intent:claude-code","kind":"tool.after","data":${said}}`;
      const missing = ENTRY - 1 - Buffer.byteLength(front + rest);
      if (missing > 9) rest = `${rest.slice(0, -2)},"pad":"${'x'.repeat(missing - 9)}"}}`;
    }
    const line = Buffer.from(front + rest);
    prev = hash(line);
    batch.push(Buffer.concat([line, Buffer.from('\n')]));
    if (prefix && size < PREFIX_MB * 1e6) writeSync(prefix, batch.at(-1));
    size += line.length + 1;
    if (batch.length === 1000) flush();
  }
  flush();
  closeSync(fd);
  if (prefix) closeSync(prefix);
  return { entries: seq, hash: prev, size };
}

/** As the command has it: from the bundle, so that its thread starts as a user's does. */
async function verifier() {
  const bundle = join(ROOT, 'apps/agent/dist/bundle');
  const chunk = readdirSync(bundle).find((name) => /^pool-.*\.js$/.test(name));
  if (chunk === undefined) throw new Error('the bundle has no verifier: build the workspace');
  return (await import(join(bundle, chunk))).verifyFile;
}

/** One run, in its own process: prints its seconds, CPU seconds and largest resident set. Modules of either side are loaded before, and all begin together. */
async function child(what, file, head) {
  const verifyFile = what === 'baseline' ? undefined : await verifier();
  process.stdout.write('ready\n');
  await once(process.stdin, 'data');
  process.stdin.destroy();
  const started = performance.now();
  const before = process.cpuUsage();
  let result;
  if (verifyFile === undefined) result = await baseline(file);
  else {
    const report = await verifyFile(file, { session: SESSION, head, threads: Number(what) });
    if (report.verdict !== 'intact' || report.entries !== head.entries) throw new Error(`not intact: ${report.reason}`);
    result = report.entries;
  }
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - started) / 1000;
  process.stdout.write(
    JSON.stringify({
      entries: result,
      seconds,
      cpu: (user + system) / 1e6,
      rss: process.resourceUsage().maxRSS * 1024,
    }),
  );
}

async function baseline(file) {
  const hasher = await createBLAKE3();
  let prev = hasher.init().update(`nd7 session v1\n${SESSION}\n`).digest('hex');
  let seq = 0;
  for await (const line of createInterface({
    input: createReadStream(file, { highWaterMark: 1 << 20 }),
    crlfDelay: Infinity,
  })) {
    const entry = JSON.parse(line);
    if (entry.seq !== seq || entry.prev !== prev) throw new Error(`broken at ${seq}`);
    prev = hasher.init().update(Buffer.from(line)).digest('hex');
    seq++;
  }
  return seq;
}

/** What children find that run at the same time. They begin when all are ready. */
async function together(runs) {
  const children = runs.map(({ what, file, head }) => {
    const args = [fileURLToPath(import.meta.url), '--child', what, file, JSON.stringify(head)];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdout.setEncoding('utf8');
    let said = '';
    const ready = new Promise((resolve) => {
      child.stdout.on('data', (text) => {
        said += text;
        if (said.startsWith('ready\n')) resolve();
      });
      child.once('close', resolve);
    });
    const found = once(child, 'close').then(([code]) => {
      if (code !== 0) throw new Error(`a run of ${file} ended with ${code}`);
      return JSON.parse(said.slice('ready\n'.length));
    });
    return { child, ready, found };
  });
  await Promise.all(children.map(({ ready }) => ready));
  for (const { child } of children) child.stdin.end('go');
  const found = await Promise.all(children.map(({ found }) => found));
  const sum = (key) => found.reduce((all, one) => all + one[key], 0);
  const most = (key) => Math.max(...found.map((one) => one[key]));
  return { entries: sum('entries'), cpu: sum('cpu'), seconds: most('seconds'), rss: most('rss') };
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

async function main({ mb, rounds, json }) {
  const folder = mkdtempSync(join(tmpdir(), 'nd7-bench-'));
  const clean = () => rmSync(folder, { recursive: true, force: true });
  process.once('SIGINT', () => {
    clean();
    process.exit(130);
  });
  try {
    const file = join(folder, 'log.jsonl');
    const prefix = join(folder, 'prefix.jsonl');
    if (!json) console.log(`writing ${mb} MB of ${ENTRY}-byte entries, a seal every ${SEAL_EVERY} …`);
    const head = await generate(file, prefix, mb * 1e6);
    const halves = [];
    for (const name of ['one.jsonl', 'other.jsonl']) {
      const half = join(folder, name);
      halves.push({ what: '1', file: half, head: await generate(half, undefined, (mb * 1e6) / 2) });
    }
    const prefixSize = Math.min(head.size, readFileSync(prefix).length);
    const runs = {
      'one thread': { of: [{ what: '1', file, head }], size: head.size },
      'two threads': { of: [{ what: '2', file, head }], size: head.size },
      'readline + JSON.parse + hash-wasm': { of: [{ what: 'baseline', file: prefix, head }], size: prefixSize },
      'two processes of one thread, half each': { of: halves, size: halves[0].head.size + halves[1].head.size },
    };
    const found = Object.fromEntries(Object.keys(runs).map((name) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const [name, run] of Object.entries(runs)) {
        const one = await together(run.of);
        found[name].push({ ...one, mbs: run.size / 1e6 / one.seconds, cpuMbs: run.size / 1e6 / one.cpu });
      }
    }
    const rows = Object.entries(found).map(([name, list]) => ({
      name,
      mb_per_s: median(list.map(({ mbs }) => mbs)),
      best_mb_per_s: Math.max(...list.map(({ mbs }) => mbs)),
      mb_per_cpu_s: median(list.map(({ cpuMbs }) => cpuMbs)),
      entries_per_s: median(list.map(({ entries, seconds }) => entries / seconds)),
      max_rss_mb: Math.max(...list.map(({ rss }) => rss)) / 1e6,
    }));
    const [one, two, base, apart] = rows;
    const ratios = {
      one_thread_over_baseline_cpu: one.mb_per_cpu_s / base.mb_per_cpu_s,
      one_thread_over_baseline: one.mb_per_s / base.mb_per_s,
      two_threads_over_one: two.mb_per_s / one.mb_per_s,
      two_processes_over_one: apart.mb_per_s / one.mb_per_s,
    };
    const machine = {
      cpu: cpus()[0]?.model ?? '?',
      cores: availableParallelism(),
      memory_gb: totalmem() / 1e9,
      load: loadavg()[0],
      node: process.version,
    };
    const musts = {
      one_thread_over_baseline: verdict(ratios.one_thread_over_baseline >= 5),
      two_threads_over_one: machine.cores < 2 ? 'not judged on one core' : verdict(ratios.two_threads_over_one >= 1.5),
      memory: verdict(one.max_rss_mb <= 200),
    };
    if (json) {
      console.log(JSON.stringify({ bench: 'verify', mb, rounds, machine, rows, ratios, musts }));
      return;
    }
    console.log(
      `${machine.cpu}, ${machine.cores} cores, ${machine.memory_gb.toFixed(0)} GB, load ${machine.load.toFixed(1)}, Node ${machine.node}; p50 of ${rounds}, in turns`,
    );
    console.log('| how | MB/s | best | MB per CPU-s | entries/s | max RSS MB |\n|---|---:|---:|---:|---:|---:|');
    for (const row of rows) {
      const numbers = [row.mb_per_s, row.best_mb_per_s, row.mb_per_cpu_s, row.entries_per_s, row.max_rss_mb].map((n) =>
        Math.round(n).toLocaleString('en'),
      );
      console.log(`| ${row.name} | ${numbers.join(' | ')} |`);
    }
    console.log(
      `one thread / baseline: ${ratios.one_thread_over_baseline.toFixed(1)}× (at least 5: ${musts.one_thread_over_baseline})`,
    );
    console.log(`  the same by CPU time: ${(one.mb_per_cpu_s / base.mb_per_cpu_s).toFixed(1)}×`);
    console.log(
      `two threads / one: ${ratios.two_threads_over_one.toFixed(2)}× (at least 1.5 on two idle cores: ${musts.two_threads_over_one})`,
    );
    console.log(
      `  what this machine scales at all, two processes / one: ${ratios.two_processes_over_one.toFixed(2)}×; processor time of two threads / one: ${(one.mb_per_cpu_s / two.mb_per_cpu_s).toFixed(2)}×`,
    );
    console.log(`memory, one thread: ${one.max_rss_mb.toFixed(0)} MB (at most 200: ${musts.memory})`);
  } finally {
    clean();
  }
}

const argv = process.argv.slice(2);
if (argv[0] === '--child') await child(argv[1], argv[2], JSON.parse(argv[3]));
else {
  const { values } = parseArgs({
    args: argv,
    options: {
      mb: { type: 'string', default: '1000' },
      rounds: { type: 'string', default: '3' },
      json: { type: 'boolean', default: false },
    },
  });
  const mb = Number(values.mb);
  const rounds = Number(values.rounds);
  if (!(mb >= 1) || !(rounds >= 1)) {
    console.error('usage: node tools/bench/verify.mjs [--mb 1000] [--rounds 3] [--json]');
    process.exit(2);
  }
  await main({ mb, rounds, json: values.json });
}
