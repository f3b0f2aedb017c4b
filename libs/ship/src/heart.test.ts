// A machine's heartbeats against a vault behind a real HTTP server: when they come, what they say, when they stop.
import { generateKeyPair, systemClock, systemRandom } from '@nd7/signing';
import { VaultDouble } from '@nd7/testing';
import { Heart, type HeartOptions, type HeartStatus, type SessionMark } from './index.js';

const machine = generateKeyPair();
const mark = (session: string, entries: number): SessionMark => ({ session, entries, head: 'ab'.repeat(32) });
let vault: VaultDouble;
let sessions: SessionMark[];
let hearts: Heart[];
let tries: HeartStatus[];

beforeEach(async () => {
  vault = await VaultDouble.start();
  [sessions, hearts, tries] = [[], [], []];
});
afterEach(async () => {
  await Promise.all(hearts.map((heart) => heart.stop()));
  await vault.stop();
});

function heart(more: Partial<HeartOptions> = {}): Heart {
  const made = new Heart({
    vault: {
      url: vault.url,
      team: 'acme',
      origin: vault.log.origin,
      vkey: vault.vkey,
      machine: machine.publicKey,
      token: vault.addMachine(machine.publicKey),
      policy: 'quorum none\n',
    },
    signer: machine,
    clock: systemClock,
    random: systemRandom,
    sessions: () => Promise.resolve(sessions),
    intervalMs: 100,
    soonMs: 20,
    onBeat: (status) => tries.push(status),
    ...more,
  });
  hearts.push(made);
  return made;
}

async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 30_000;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not within 30 s: ${JSON.stringify(vault.heartbeats.at(-1))}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
const quiet = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('while there is something to do it beats on, says how far each session is, and when it will be heard again', async () => {
  sessions = [mark('s', 3)];
  const one = heart();
  one.wake();
  await until(() => vault.heartbeats.length === 2);
  sessions = [mark('s', 5), mark('t', 1)];
  await until(() => vault.heartbeats.at(-1)?.sessions.length === 2);
  expect(vault.heartbeats[0]).toEqual({ time: expect.any(String) as string, sessions: [mark('s', 3)], interval: 1 });
  expect(vault.heartbeats.at(-1)?.sessions).toEqual(sessions);
  expect(one.status()).toEqual({
    interval_seconds: 0.1,
    last: expect.any(String) as string,
    clock_ahead_seconds: expect.any(Number) as number,
    failures: 0,
  });
  expect(Math.abs(one.status().clock_ahead_seconds ?? 99)).toBeLessThan(5);
}, 60_000);

test('with nothing to do it announces rest once, and is silent until it is woken', async () => {
  sessions = [mark('s', 3)];
  const one = heart({ intervalMs: 60_000 });
  one.wake();
  await until(() => vault.heartbeats.length === 1);
  one.settle(); // something is still to do: it only looks
  await quiet(300);
  expect(vault.heartbeats).toHaveLength(1);
  sessions = [];
  one.settle();
  await until(() => vault.heartbeats.length === 2);
  expect(vault.heartbeats[1]).toEqual({
    time: expect.any(String) as string,
    sessions: [],
    away: { reason: 'idle' },
  });
  one.settle();
  await quiet(300);
  expect(vault.heartbeats).toHaveLength(2);
  await until(() => one.status().away === 'idle');
  sessions = [mark('t', 1)];
  one.wake();
  await until(() => vault.heartbeats.length === 3);
  expect(vault.heartbeats[2]).toMatchObject({ sessions: [mark('t', 1)], interval: 60 });
  await until(() => one.status().away === undefined);
}, 60_000);

test('says so when it is stopped, with what is left open', async () => {
  const one = heart({ intervalMs: 60_000 });
  expect(await one.away('stopped', [mark('s', 9)])).toBe(true);
  await one.stop();
  one.wake();
  await quiet(300);
  expect(vault.heartbeats).toEqual([
    { time: expect.any(String) as string, sessions: [mark('s', 9)], away: { reason: 'stopped' } },
  ]);
}, 60_000);

test('goes on after sleep was announced: whoever is heard is awake', async () => {
  sessions = [mark('s', 1)];
  const one = heart();
  await one.away('sleep');
  await until(() => vault.heartbeats.length === 2);
  expect(vault.heartbeats[0]).toMatchObject({ away: { reason: 'sleep' } });
  expect(vault.heartbeats[1]?.away).toBeUndefined();
  expect(vault.heartbeats[1]?.slept).toBeUndefined(); // announced
}, 60_000);

test('tells of a suspension that nobody announced, once', async () => {
  sessions = [mark('s', 1)];
  let asleep = 0;
  const one = heart({ running: () => ({ up: performance.now() + asleep, awake: performance.now() }) });
  one.wake();
  await until(() => vault.heartbeats.length === 2);
  asleep = 3_600_000;
  await until(() => vault.heartbeats.some(({ slept }) => slept !== undefined));
  const at = vault.heartbeats.findIndex(({ slept }) => slept !== undefined);
  await until(() => vault.heartbeats.length > at + 2);
  expect(vault.heartbeats.filter(({ slept }) => slept !== undefined)).toHaveLength(1);
  expect(vault.heartbeats[at]?.slept).toEqual({
    from: vault.heartbeats[at - 1]?.time,
    to: vault.heartbeats[at]?.time,
  });
}, 60_000);

test('a vault that is away does not stop it, is in the status, and is told at once when it is back', async () => {
  sessions = [mark('s', 1)];
  vault.faults.busy = 1_000;
  const one = heart();
  one.wake();
  await until(() => tries.length === 3);
  expect(one.status()).toMatchObject({ last: null, problem: expect.stringContaining('come back later') as string });
  expect(one.status().failures).toBeGreaterThanOrEqual(3);
  vault.faults.busy = 0;
  await until(() => one.status().failures === 0);
  expect(one.status().problem).toBeUndefined();
  expect(vault.heartbeats[0]?.sessions).toEqual(sessions);
}, 60_000);

test('sessions that cannot be told are a failure, not a rest', async () => {
  const one = heart({ sessions: () => Promise.reject(new Error('the disk is gone')) });
  one.wake();
  await until(() => tries.length === 2);
  expect(vault.heartbeats).toEqual([]);
  expect(one.status().problem).toBe('the disk is gone');
}, 60_000);

test('a thousand sessions are told and no more', async () => {
  sessions = Array.from({ length: 1_200 }, (_, n) => mark(`s${n}`, n));
  heart({ intervalMs: 60_000 }).wake();
  await until(() => vault.heartbeats.length === 1);
  expect(vault.heartbeats[0]?.sessions).toHaveLength(1_000);
  expect(vault.heartbeats[0]?.sessions[0]).toEqual(sessions[0]);
}, 60_000);

test('a vault that hangs does not hold up a recorder that stops', async () => {
  const one = heart({ intervalMs: 60_000 });
  vault.faults.hang = true;
  const began = performance.now();
  expect(await one.away('stopped')).toBe(false);
  await one.stop();
  expect(performance.now() - began).toBeLessThan(20_000);
}, 60_000);
