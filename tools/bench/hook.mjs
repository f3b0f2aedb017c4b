// One hook: the shim, answered by the resident recorder when the entry is on the disk, against starting /bin/true and against the same hook as a Node
// process, in turns from one C program. The disk's own fdatasync stands beside it, since a durable answer cannot be quicker.
// Must: shim p50 at most 3 × /bin/true p50 + one fdatasync, and at most 1/15 of the Node hook.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findCompiler } from '../../native/compile.mjs';
import { build as buildShim } from '../../native/shim/build.mjs';
import { verdict } from './judge/verdict.mjs';

const root = join(import.meta.dirname, '..', '..');
const bin = join(root, 'apps/agent/bin/nd7.js');
const PAYLOADS = 400;

/** A call of 2 KB that is about to run; each differs, so that none is marked as a duplicate of another. */
function payload(i) {
  const command = `grep -rn pattern-${i} src | head -${i}; ${'echo some words that a command says; '.repeat(45)}`;
  return JSON.stringify({
    session_id: 'bench-hook',
    transcript_path: '/tmp/transcript.jsonl',
    cwd: root,
    hook_event_name: 'PreToolUse',
    permission_mode: 'default',
    tool_name: 'Bash',
    tool_input: { command, description: 'Search' },
    tool_use_id: `toolu_${String(i).padStart(24, '0')}`,
  });
}

const ms = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] / 1e6;

function summary(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return { p50_ms: ms(sorted, 0.5), p99_ms: ms(sorted, 0.99), min_ms: sorted[0] / 1e6, runs: sorted.length };
}

/** Appending 2 KB and fdatasync, as the journal does, on the disk that holds the home. */
function disk(dir) {
  const fd = openSync(join(dir, 'disk'), 'a');
  const line = Buffer.alloc(2048, 'x');
  const took = [];
  for (let i = 0; i < 300; i++) {
    writeSync(fd, line);
    const start = process.hrtime.bigint();
    fdatasyncSync(fd);
    took.push(Number(process.hrtime.bigint() - start));
  }
  closeSync(fd);
  return summary(took);
}

async function recorder(home) {
  const child = spawn(process.execPath, [bin, 'recorder'], {
    env: { ...process.env, ND7_HOME: home },
    stdio: 'ignore',
  });
  const { askRecorder } = await import(join(root, 'apps/agent/dist/recorder/client.js'));
  for (let i = 0; i < 600; i++) {
    if ((await askRecorder(home, 'status', { timeoutMs: 1000 })) !== undefined) return child;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  child.kill();
  throw new Error('the recorder did not come up');
}

/** Ends the recorder, which seals and closes; waits until it has. */
async function stop(child) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

/** A quick answer is worth nothing if the entry is not there: every hook that ran must stand in an intact log. */
function check(home, hooks) {
  const run = spawnSync(process.execPath, [bin, 'verify', 'bench-hook', '--json'], {
    encoding: 'utf8',
    env: { ...process.env, ND7_HOME: home },
  });
  const { report } = JSON.parse(run.stdout);
  if (report.verdict !== 'intact' || report.classes.intent !== hooks) {
    throw new Error(
      `${hooks} hooks were answered, and the log is ${report.verdict} with ${report.classes?.intent} of them`,
    );
  }
  return report.entries;
}

async function main({ rounds, json }) {
  const cc = findCompiler();
  const { path: shim, skipped } = buildShim();
  if (!shim) {
    console.log(`skipped: ${skipped}`);
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), 'nd7-bench-hook-'));
  const home = join(dir, 'home');
  mkdirSync(home, { mode: 0o700 });
  let resident;
  try {
    const starter = join(dir, 'spawn');
    const compiled = spawnSync(cc, ['-O2', '-Wall', '-Wextra', '-o', starter, join(import.meta.dirname, 'spawn.c')], {
      encoding: 'utf8',
    });
    if (compiled.status !== 0) throw new Error(compiled.stderr);
    for (let i = 0; i < PAYLOADS; i++) writeFileSync(join(dir, `payload.${i}`), payload(i));
    resident = await recorder(home);
    const before = disk(dir);
    const measure = (n, programs) => {
      const args = [String(n), join(dir, 'payload'), String(PAYLOADS), ...programs.flatMap((p) => ['--', ...p])];
      const run = spawnSync(starter, args, {
        encoding: 'utf8',
        env: { ...process.env, ND7_HOME: home },
        maxBuffer: 64 << 20,
      });
      if (run.status !== 0) throw new Error(run.stderr);
      return run.stdout
        .trim()
        .split('\n')
        .map((line) => line.split(' ').map(Number));
    };
    const hook = [shim, '--home', home, '--agent', 'claude-code'];
    const nodeHook = [process.execPath, bin, 'hook', '--agent', 'claude-code'];
    measure(20, [['/bin/true'], hook]); // warm
    const [quickTrue, quickShim] = measure(rounds, [['/bin/true'], hook]);
    const [, slowShim, node] = measure(Math.max(10, Math.ceil(rounds / 20)), [['/bin/true'], hook, nodeHook]);
    const after = disk(dir);
    await stop(resident);
    const entries = check(home, 20 + quickShim.length + slowShim.length + node.length);
    const result = {
      bin_true: summary(quickTrue),
      shim: summary(quickShim),
      shim_beside_node: summary(slowShim),
      node_hook: summary(node),
      entries,
      fdatasync: { p50_ms: (before.p50_ms + after.p50_ms) / 2, p99_ms: Math.max(before.p99_ms, after.p99_ms) },
    };
    const limit = 3 * result.bin_true.p50_ms + result.fdatasync.p50_ms;
    result.limit_ms = limit;
    result.shim_over_true = result.shim.p50_ms / result.bin_true.p50_ms;
    result.node_over_shim = result.node_hook.p50_ms / result.shim_beside_node.p50_ms;
    result.musts = { shim: verdict(result.shim.p50_ms <= limit), node_hook: verdict(result.node_over_shim >= 15) };
    if (json) console.log(JSON.stringify(result, null, 2));
    else print(result);
  } finally {
    await stop(resident);
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function print(r) {
  console.log('| what | p50 ms | p99 ms | min ms | runs |\n|---|---:|---:|---:|---:|');
  const row = (name, s) =>
    console.log(
      `| ${name} | ${s.p50_ms.toFixed(2)} | ${s.p99_ms.toFixed(2)} | ${s.min_ms?.toFixed(2) ?? ''} | ${s.runs ?? ''} |`,
    );
  row('/bin/true', r.bin_true);
  row('shim → recorder, entry durable', r.shim);
  row('the same, in turns with the Node hook', r.shim_beside_node);
  row('Node hook', r.node_hook);
  row('fdatasync of 2 KB on this disk', r.fdatasync);
  console.log(`every hook answered stands in the log: ${r.entries} entries, intact`);
  console.log(
    `shim p50 ${r.shim.p50_ms.toFixed(2)} ms = ${r.shim_over_true.toFixed(1)} × /bin/true (at most 3 × + one fdatasync = ${r.limit_ms.toFixed(2)} ms: ${r.musts.shim})`,
  );
  console.log(`Node hook / shim: ${r.node_over_shim.toFixed(1)} × (at least 15: ${r.musts.node_hook})`);
}

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '400' }, json: { type: 'boolean', default: false } },
});
const rounds = Number(values.rounds);
if (!Number.isSafeInteger(rounds) || rounds < 10) {
  console.error('usage: node tools/bench/hook.mjs [--rounds 400] [--json]');
  process.exit(2);
}
await main({ rounds, json: values.json });
