// The recorder of an enrolled machine, against a vault that works, is away, or holds another history.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { enrol } from '@nd7/ship';
import { systemClock, systemRandom } from '@nd7/signing';
import { VaultDouble } from '@nd7/testing';
import { openHome, machineKey, readReceipts } from '@nd7/journal';
import {
  BIN,
  entriesOf,
  environment,
  inProcess,
  killStarted,
  removeThrowAways,
  say,
  sessionsOf,
  start,
  throwAway,
  until,
  verdictOf,
} from '../testing/recorder.fixture.js';
import { askJson, askRecorder } from './client.js';
import type { Recorder } from './recorder.js';
import { shipLoop } from './ship-wiring.js';
import { LEAN } from './start.js';

let home: string;
let vault: VaultDouble;
let recorder: (Recorder & { warnings: string[] }) | undefined;
beforeEach(async () => {
  home = join(throwAway(), 'home');
  vault = await VaultDouble.start();
});
afterEach(async () => {
  await recorder?.stop();
  recorder = undefined;
  await askRecorder(home, 'stop', { timeoutMs: 2_000 });
  killStarted();
  await vault.stop();
  removeThrowAways();
});

const enrolHere = async () => {
  openHome(home);
  await enrol({
    url: vault.url,
    token: vault.enrolmentToken(),
    name: 'here',
    home,
    clock: systemClock,
    random: systemRandom,
  });
};
const begin = (config: object = {}) => {
  writeFileSync(join(home, 'config.json'), JSON.stringify(config));
  recorder = inProcess(home, { lookMs: 50 });
  const host = recorder;
  recorder.ship(
    shipLoop({
      home: openHome(home),
      machine: machineKey(openHome(home)),
      clock: systemClock,
      random: systemRandom,
      host,
      warn: (line) => host.warnings.push(line),
    }),
  );
  return recorder;
};
const pre = (session: string, id: string) => ({
  session_id: session,
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command: 'ls' },
  tool_use_id: id,
});
const receipted = (session: string) => readReceipts(openHome(home), session).at(-1)?.entries ?? 0;
const machine = () => machineKey(openHome(home)).publicKey;

it('pins entry 0 with the first tool call, and ships what follows by itself, each cut sealed', async () => {
  await enrolHere();
  const one = begin();
  expect(await say(one, pre('s', 't1'))).toEqual({ exit: 0, stdout: '', stderr: '' });
  await until('entry 0 is receipted', () => receipted('s') > 0);
  await say(one, pre('s', 't2'));
  await until('all of it is receipted', () => receipted('s') === entriesOf(home, 's').length);
  expect(entriesOf(home, 's').at(-1)?.kind).toBe('seal');
  expect(entriesOf(home, 's').filter(({ kind }) => kind === 'tool.before')).toHaveLength(2);
  // Nothing more comes, nothing more is cut.
  const count = entriesOf(home, 's').length;
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(entriesOf(home, 's')).toHaveLength(count);
  await vault.checkAll();
  expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
}, 60_000);

it('states the session open and, once it has ended, closed', async () => {
  await enrolHere();
  const one = begin();
  await say(one, { session_id: 's', hook_event_name: 'SessionStart', source: 'startup' });
  await say(one, { session_id: 's', hook_event_name: 'SessionEnd', reason: 'other' });
  await until('the vault knows its end', () =>
    vault.statements(machine(), 's').some((name) => name.startsWith('close/')),
  );
  expect(vault.statements(machine(), 's').some((name) => name.startsWith('open/'))).toBe(true);
  await vault.checkAll();
}, 60_000);

it('lets the first call go on when the vault is away, ships when it is back; denies it where the pin is required', async () => {
  await enrolHere();
  vault.faults.busy = 1_000;
  const one = begin();
  expect(await say(one, pre('s', 't1'))).toEqual({ exit: 0, stdout: '', stderr: '' });
  expect(receipted('s')).toBe(0);
  writeFileSync(join(home, 'config.json'), '{"pin":"required"}');
  for (const id of ['t1', 't1', 't2'])
    expect((await say(one, pre('other', id))).stdout).toContain('"permissionDecision":"deny"');
  vault.faults.busy = 0;
  await until('the session is pinned', () => receipted('other') > 0);
  expect(await say(one, pre('other', 't3'))).toEqual({ exit: 0, stdout: '', stderr: '' });
  await until('both are receipted', () =>
    ['s', 'other'].every((session) => receipted(session) === entriesOf(home, session).length),
  );
  await vault.checkAll();
}, 90_000);

it('denies every call where the pin is required and no vault is there to give it, also without a recorder', async () => {
  openHome(home);
  writeFileSync(join(home, 'config.json'), '{"pin":"required"}');
  recorder = inProcess(home);
  for (const id of ['t1', 't2']) expect((await say(recorder, pre('s', id))).stdout).toContain('enrol this machine');
  const { recordAlone } = await import('./alone.js');
  const alone = (session: string) =>
    recordAlone({
      home,
      agent: 'claude-code',
      env: {},
      payload: Buffer.from(JSON.stringify(pre(session, 't3'))),
      took: 'eof',
      startRecorder: false,
    });
  expect((await alone('s')).stdout).toContain('enrol this machine');
  await recorder.stop();
  await enrolHere();
  const one = begin({ pin: 'required' });
  await say(one, pre('s', 't4'));
  await until('the session is pinned', () => receipted('s') > 0);
  expect(await alone('s')).toEqual({ exit: 0, stdout: '', stderr: '' });
}, 60_000);

it('ships what an earlier recorder left', async () => {
  await enrolHere();
  const first = inProcess(home);
  await say(first, pre('left', 't1'));
  await first.stop();
  begin();
  await until('it is receipted', () => receipted('left') === entriesOf(home, 'left').length);
}, 60_000);

it('goes on as a new chain when the vault holds another history, with an alarm', async () => {
  await enrolHere();
  const one = begin();
  await say(one, pre('s', 't1'));
  await until('the first part is receipted', () => receipted('s') === entriesOf(home, 's').length);
  const before = receipted('s');
  await one.goOn('s', 'fork', 'two heads for one count');
  expect(sessionsOf(home)).toEqual(['s', 's.r1']);
  await say(one, pre('s', 't2'));
  const kinds = entriesOf(home, 's.r1').map(({ source, kind }) => `${source} ${kind}`);
  expect(kinds.slice(0, 2)).toEqual(['recorder:nd7 session.start', 'recorder:nd7 alarm']);
  expect(kinds).toContain('intent:claude-code tool.before');
  expect(JSON.parse(entriesOf(home, 's.r1')[0]?.data ?? '')).toMatchObject({
    continues: { session: 's', entries: before },
  });
  expect(entriesOf(home, 's').some(({ data }) => data?.includes('"t2"'))).toBe(false);
  await until('the new chain is receipted', () => receipted('s.r1') === entriesOf(home, 's.r1').length);
  for (const session of ['s', 's.r1']) expect(await verdictOf(home, session)).toMatchObject({ verdict: 'intact' });
}, 60_000);

it('as a process: enrolled while it runs, ships without a restart, within the memory it may have', async () => {
  const child = start(process.execPath, [...LEAN, BIN, 'recorder'], {
    env: environment(home),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await until('it listens', async () => (await askJson(home, 'status', {}, 1_000)) !== undefined);
  const hook = (id: string) =>
    askRecorder(home, 'hook', { meta: { agent: 'claude-code' }, payload: Buffer.from(JSON.stringify(pre('s', id))) });
  await hook('t1');
  await enrolHere();
  await until('it knows its vault', async () => (await askJson(home, 'status'))?.['ship'] !== null);
  const started = Date.now();
  await hook('t2');
  await until('all of it is receipted', () => receipted('s') > 0 && receipted('s') === entriesOf(home, 's').length);
  expect(Date.now() - started).toBeLessThan(30_000);
  const resident = (): number =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);
  await until('it is at rest, within 80 MB', () => resident() < 80 * 1024);
  expect(existsSync(join(home, 'outbox'))).toBe(true);
  expect(readdirSync(join(home, 'sessions/s/receipts')).length).toBeGreaterThan(0);
}, 90_000);
