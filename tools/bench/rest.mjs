// A recorder at rest: enrolled, started by the shim as an agent's hook starts it, after a session of a thousand hooks that it has shipped. Resident
// memory and time of the processor over ten quiet seconds. Must: at most 80 MB (of 10^6 bytes; MiB, as `ps` and `top` count, stand beside it), and no
// time. The vault is the one of the tests, in this process.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { enrol } from '@nd7/ship';
import { openHome, readReceipts } from '@nd7/journal';
import { systemClock, systemRandom } from '@nd7/signing';
import { VaultDouble } from '@nd7/testing';
import { build as buildShim } from '../../native/shim/build.mjs';
import { verdict } from './judge/verdict.mjs';

const HOOKS = 1000;
const QUIET_S = 10;
const LIMIT = 80e6;
const root = join(import.meta.dirname, '../..');
const { askJson, askRecorder } = await import(join(root, 'apps/agent/dist/recorder/client.js'));
const { writeShimConf } = await import(join(root, 'apps/agent/dist/recorder/settings.js'));

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const payload = (event, id) =>
  JSON.stringify({
    session_id: 'bench-rest',
    hook_event_name: event,
    tool_name: 'Bash',
    tool_input: { command: `echo ${id}; ${'some words '.repeat(150)}` },
    tool_use_id: id,
  });

/** Bytes resident, and clock ticks used, of a process. */
function usage(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1).split(' ');
  const rss = Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;
  return { rss, ticks: Number(fields[11]) + Number(fields[12]) };
}

async function main() {
  const { path: shim, skipped } = buildShim();
  if (!shim || !existsSync('/proc/self/stat')) {
    console.log(`rest: skipped: ${skipped ?? 'no /proc here'}`);
    return;
  }
  const home = join(mkdtempSync(join(tmpdir(), 'nd7-bench-rest-')), 'home');
  const vault = await VaultDouble.start();
  try {
    openHome(home);
    await enrol({
      url: vault.url,
      token: vault.enrolmentToken(),
      name: 'bench',
      home,
      clock: systemClock,
      random: systemRandom,
    });
    writeShimConf(home, 'best-effort');
    spawnSync(shim, ['--home', home, '--agent', 'claude-code'], { input: payload('PreToolUse', 'first') });
    const { pid } = await askJson(home, 'status');
    for (let n = 0; n < HOOKS; n++)
      await askRecorder(home, 'hook', {
        meta: { agent: 'claude-code' },
        payload: Buffer.from(payload(n % 2 ? 'PostToolUse' : 'PreToolUse', `t${n >> 1}`)),
      });
    await askRecorder(home, 'hook', {
      meta: { agent: 'claude-code' },
      payload: Buffer.from(payload('SessionEnd', 'last')),
    });
    for (let waited = 0; (await askJson(home, 'status')).sessions.length > 0 && waited < 60_000; waited += 500)
      await pause(500);
    await pause(8_000); // what the work needed is given back after 5 s of quiet
    const before = usage(pid);
    await pause(QUIET_S * 1000);
    const after = usage(pid);
    const cpu = ((after.ticks - before.ticks) / 100 / QUIET_S) * 100;
    const shipped = readReceipts(openHome(home), 'bench-rest').at(-1)?.entries ?? 0;
    console.log(
      `agent at rest, after ${HOOKS} hooks, ${shipped} entries under receipts: ${(after.rss / 1e6).toFixed(1)} MB = ${(after.rss / 2 ** 20).toFixed(1)} MiB resident (at most ${LIMIT / 1e6} MB: ${verdict(after.rss <= LIMIT)}), ${cpu.toFixed(1)} % of a processor over ${QUIET_S} s (below 0.2: ${verdict(cpu < 0.2)})`,
    );
  } finally {
    await askRecorder(home, 'stop');
    await vault.stop();
    for (let waited = 0; existsSync(join(home, 'run/hook')) && waited < 10_000; waited += 50) await pause(50);
    rmSync(join(home, '..'), { recursive: true, force: true, maxRetries: 5 });
  }
}

await main();
