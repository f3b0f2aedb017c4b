// What the vault hears of a machine whose recorder works, rests, is stopped, or is killed: real processes, a vault behind a real HTTP server.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';
import { machineKey, openHome, readHead } from '@nd7/journal';
import { enrol } from '@nd7/ship';
import { systemClock, systemRandom } from '@nd7/signing';
import { VaultDouble } from '@nd7/testing';
import {
  BIN,
  entriesOf,
  environment,
  inProcess,
  killStarted,
  removeThrowAways,
  say,
  start,
  throwAway,
  until,
} from '../testing/recorder.fixture.js';
import { askJson, askRecorder } from './client.js';
import { lastHeartbeat } from './heartbeat.js';
import type { Recorder } from './recorder.js';
import { shipLoop } from './ship-wiring.js';

let home: string;
let vault: VaultDouble;
let recorder: (Recorder & { warnings: string[] }) | undefined;
beforeEach(async () => {
  home = join(throwAway(), 'home');
  vault = await VaultDouble.start();
  openHome(home);
  await enrol({
    url: vault.url,
    token: vault.enrolmentToken(),
    name: 'here',
    home,
    clock: systemClock,
    random: systemRandom,
  });
});
afterEach(async () => {
  await recorder?.stop();
  recorder = undefined;
  await askRecorder(home, 'stop', { timeoutMs: 2_000 });
  killStarted();
  await vault.stop();
  removeThrowAways();
});

const payload = (event: string, id: string) => ({
  session_id: 's',
  hook_event_name: event,
  tool_name: 'Bash',
  tool_use_id: id,
});
const hook = (event: string, id: string) =>
  askRecorder(home, 'hook', {
    meta: { agent: 'claude-code' },
    payload: Buffer.from(JSON.stringify(payload(event, id))),
  });
const begin = () =>
  start(process.execPath, [BIN, 'recorder'], { env: environment(home), stdio: ['ignore', 'ignore', 'inherit'] });
const listening = () => until('it listens', async () => (await askJson(home, 'status', {}, 1_000)) !== undefined);
const ended = (child: ReturnType<typeof start>) =>
  new Promise<void>((resolve) =>
    child.exitCode === null && child.signalCode === null ? child.once('exit', () => resolve()) : resolve(),
  );
/** Not spawnSync: the vault stands in this process. */
const nd7 = (...args: string[]) =>
  new Promise<{ status: number | null; stdout: string }>((resolve) => {
    const child = start(process.execPath, [BIN, ...args], {
      env: environment(home),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let stdout = '';
    child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.once('close', (status) => resolve({ status, stdout }));
  });
const heartbeatOf = ({ stdout }: { stdout: string }) =>
  (JSON.parse(stdout) as { checks: { name: string; state: string; text: string }[] }).checks.find(
    ({ name }) => name === 'heartbeat',
  );
const last = () => vault.heartbeats.at(-1);
/** A recorder in this process that beats often. */
const beating = () => {
  const host = inProcess(home, { lookMs: 50 });
  const parts = { home: openHome(home), machine: machineKey(openHome(home)), clock: systemClock, random: systemRandom };
  host.ship(shipLoop({ ...parts, host, warn: (line) => host.warnings.push(line), heartbeatMs: 100 }));
  return (recorder = host);
};

it('an open session is heard of with what is on the disk, an ended one is not, and rest is announced', async () => {
  begin();
  await listening();
  await until('a recorder without work announces that', () => last()?.away?.reason === 'idle');
  await hook('PreToolUse', 't1');
  await until('the session is heard of', () => last()?.sessions[0]?.session === 's');
  const said = last();
  expect(said).toMatchObject({ interval: 60, sessions: [{ session: 's' }] });
  const { entries = 0, head } = said?.sessions[0] ?? {};
  const line = readFileSync(join(home, 'sessions/s/log.jsonl'), 'latin1').split('\n')[entries - 1] ?? '';
  expect(head).toBe(blake3Hex(Buffer.from(line, 'latin1')));
  await hook('SessionEnd', 't1');
  await until('rest is announced', () => last()?.away?.reason === 'idle');
  expect(last()?.sessions).toEqual([]);
  const count = vault.heartbeats.length;
  expect((await askJson(home, 'status'))?.['ship']).toMatchObject({ heartbeat: { away: 'idle', failures: 0 } });
  const status = await nd7('status');
  expect(status.stdout).toMatch(/Heartbeat {2}last taken \d+ s ago, announced: at rest, nothing to do/);
  expect(vault.heartbeats).toHaveLength(count);
}, 90_000);

it('told to stop it says so, with what it leaves open; the next hook’s recorder is heard at once', async () => {
  const first = begin();
  await listening();
  await hook('PreToolUse', 't1');
  await until('the session is heard of', () => last()?.sessions.length === 1);
  first.kill('SIGTERM');
  await ended(first);
  const head = readHead(openHome(home), 's');
  expect(last()).toMatchObject({
    away: { reason: 'stopped' },
    sessions: [{ session: 's', entries: head?.entries, head: head?.hash }],
  });
  expect((await nd7('status')).stdout).toContain('announced: the recorder was stopped');
  begin();
  await listening();
  await hook('PreToolUse', 't2');
  await until('it is heard again', () => last()?.away === undefined && last()?.sessions[0]?.session === 's');
  expect((await nd7('recorder', '--sleep')).stdout).toContain('goes to sleep');
  expect(last()?.away?.reason).toBe('sleep');
  expect((await nd7('recorder', '--stop')).status).toBe(0);
  expect(last()?.away?.reason).toBe('stopped');
}, 90_000);

it('detached from every agent it says so, whether a recorder runs or not', async () => {
  begin();
  await listening();
  expect((await nd7('uninstall')).status).toBe(0);
  await until('the vault knows', () => last()?.away?.reason === 'uninstalled');
  await until('it has stopped', () => !existsSync(join(home, 'run/hook')));
  const count = vault.heartbeats.length;
  expect((await nd7('uninstall')).status).toBe(0);
  expect(vault.heartbeats).toHaveLength(count + 1);
  expect(last()?.away?.reason).toBe('uninstalled');
}, 90_000);

it('killed it says nothing, and status and doctor say that the vault misses this machine', async () => {
  const child = begin();
  await listening();
  await hook('PreToolUse', 't1');
  await until('the session is heard of', () => last()?.sessions.length === 1);
  await until(
    'its answer is kept',
    () => typeof lastHeartbeat(home)?.last === 'string' && lastHeartbeat(home)?.away === undefined,
  );
  const count = vault.heartbeats.length;
  child.kill('SIGKILL');
  await ended(child);
  expect((await nd7('status')).stdout).toContain('no recorder runs: the vault misses this machine');
  expect(heartbeatOf(await nd7('doctor', '--json'))).toMatchObject({
    state: 'bad',
    text: expect.stringContaining('it was killed') as string,
  });
  expect(vault.heartbeats).toHaveLength(count);
  expect(last()?.away).toBeUndefined();
}, 90_000);

it('a vault that takes none is told by doctor; the sessions of later ones only grow', async () => {
  const one = beating();
  await say(one, payload('PreToolUse', 't0'));
  await until('the session is heard of', () => last()?.sessions.length === 1);
  for (let n = 1; n < 20; n++) await say(one, payload('PreToolUse', `t${n}`));
  await until('all of it is heard of', () => (last()?.sessions[0]?.entries ?? 0) >= 21);
  const counts = vault.heartbeats.map(({ sessions }) => sessions[0]?.entries ?? 0);
  expect(counts).toEqual([...counts].sort((a, b) => a - b));
  vault.faults.busy = 1_000_000;
  const failures = () =>
    one
      .answer({ op: 'status', meta: new Map(), payload: Buffer.alloc(0) }, { pid: process.pid, uid: 0, gid: 0 })
      .then(
        ({ stdout }) => (JSON.parse(stdout) as { ship: { heartbeat: { failures: number } } }).ship.heartbeat.failures,
      );
  await until('some were refused', async () => (await failures()) > 1);
  // No recorder of its own: doctor reads what was kept.
  expect(heartbeatOf(await nd7('doctor', '--json'))).toMatchObject({
    state: 'bad',
    text: expect.stringContaining('come back later') as string,
  });
}, 90_000);

it('an agent that stops its recorder leaves an alarm in its session', async () => {
  begin();
  await listening();
  // A shell that stands for the client: its first child is the hook, its second asks the recorder to stop.
  const said = JSON.stringify(payload('PreToolUse', 't1'));
  const node = `'${process.execPath}' '${BIN}'`;
  const script = `echo '${said}' | CLAUDE_PID=$$ ${node} hook --agent claude-code; ${node} recorder --stop; sleep 1000`;
  const client = start('sh', ['-c', script], { env: environment(home) });
  await until('it has stopped', () => last()?.away?.reason === 'stopped');
  expect(last()?.sessions).toMatchObject([{ session: 's' }]);
  const alarm = entriesOf(home, 's').find(({ kind }) => kind === 'alarm');
  expect(JSON.parse(alarm?.data ?? '{}')).toMatchObject({
    reason: 'recorder stopped',
    by: { pid: expect.any(Number) as number },
  });
  client.kill('SIGKILL');
}, 90_000);
