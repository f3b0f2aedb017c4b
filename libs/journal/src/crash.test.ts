import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from './disk.js';
import {
  data,
  DIST,
  draft,
  entries,
  expectIntact,
  freshHome,
  keyFiles,
  log,
  removeHomes,
  sessionFiles,
  verdict,
} from './journal.fixture.js';
import type { Home } from './home.js';
import { openSession } from './open.js';
import { readHead } from './read.js';

afterAll(removeHomes);

/** Every step, and how many entries were acknowledged when a process is killed there for the first time: see CHILD. */
const STEPS: Record<Step, number> = {
  'folder-made': 0,
  'first-key-made': 0,
  'blob-written': 4,
  'blobs-synced': 4,
  'entries-written': 0,
  'entries-synced': 1,
  'next-key-made': 5,
  'seal-written': 5,
  'seal-synced': 5,
  'old-key-destroyed': 5,
  'head-written': 5,
  'head-renamed': 5,
  'torn-kept': 5,
  'gap-written': 5,
  'torn-cut': 5,
};

/**
 * One life of a session (`long`; `hasty`: begun so; `ends`: the least, with its end in one write): entry 0, three entries, one with a blob, a seal, two more. It says on stdout what was acknowledged; `STEP` is where it is killed,
 * `HALF` in which write, half-way.
 */
const CHILD = `
const [dist, home, step, half, life] = process.argv.slice(1);
const { openHome, openSession, realDisk } = await import(dist);
const { blake3Hex } = await import(dist.replace('journal', 'blake3'));
const { writeSync } = await import('node:fs');
const die = () => process.kill(process.pid, 'SIGKILL');
const say = (n) => writeSync(1, n + '\\n');
let writes = 0;
const disk = {
  ...realDisk,
  step: (s) => s === step && die(),
  write: (fd, bytes, position) => {
    if (++writes !== Number(half)) return realDisk.write(fd, bytes, position);
    realDisk.write(fd, bytes.subarray(0, Math.max(1, bytes.length >> 1)), position);
    die();
  },
};
const draft = (i) => ({ time: '2026-11-29T19:41:00.123Z', source: 'intent:claude-code', kind: 'tool.before', data: JSON.stringify({ i, x: null }) });
const journal = await openSession(openHome(home), 's', { disk, isHasty: life !== 'long' });
if (journal.durable.entries > 0) say(journal.entries);
if (life === 'ends') {
  await journal.append([draft(1)], { sync: true });
  say(journal.durable.entries);
  await journal.end([draft(2)]);
  say(journal.durable.entries);
  await journal.close();
  process.exit();
}
for (let i = 1; i <= 3; i++) { await journal.append([draft(i)], { sync: true }); say(journal.entries); }
const bytes = Buffer.concat([Buffer.alloc(32, 1), Buffer.from('"x"')]);
const hash = blake3Hex(bytes);
await journal.append([{ ...draft(4), detached: [{ at: '/x', blake3: hash, bytes: 3, why: 'size' }], blobs: [{ hash, bytes }] }], { sync: true });
say(journal.entries);
await journal.seal();
say(journal.entries);
await journal.append([draft(5), draft(6)]);
await journal.close();
say('end');
`;

/** Runs the life above until it is killed; returns how many entries were acknowledged, or 'end'. */
function live(
  home: Home,
  step: string,
  half = 0,
  life: 'long' | 'hasty' | 'ends' = 'long',
  by: readonly string[] = [],
): Promise<{ acknowledged: number; killed: boolean }> {
  const args = [DIST, home.root, step, String(half), life];
  const [program = '', ...words] = [...by, process.execPath, '--input-type=module', '-e', CHILD, ...args];
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (b: Buffer) => out.push(b));
  child.stderr.on('data', (b: Buffer) => err.push(b));
  return new Promise((resolve, reject) =>
    child.once('close', (code, signal) => {
      if (code !== 0 && signal !== 'SIGKILL') reject(new Error(Buffer.concat(err).toString()));
      const said = Buffer.concat(out)
        .toString()
        .trim()
        .split('\n')
        .filter((line) => line !== '' && line !== 'end')
        .map(Number);
      resolve({ acknowledged: Math.max(0, ...said), killed: signal === 'SIGKILL' });
    }),
  );
}

/** The same life with a good end, in this process. */
async function closedLife(home: Home): Promise<void> {
  const journal = await openSession(home, 's');
  await journal.append([draft(), draft(), draft(), draft()]);
  await journal.seal();
  await journal.append([draft(), draft()]);
  await journal.close();
}

/** What must be true of a session whatever happened to its writer before: nothing acknowledged is missing, and it goes on. */
async function expectRecovered(home: Home, before: Buffer, acknowledged: number): Promise<void> {
  const journal = await openSession(home, 's');
  expect(journal.session).toBe('s');
  expect(journal.entries).toBeGreaterThanOrEqual(acknowledged);
  const whole = before.subarray(0, before.lastIndexOf(10) + 1);
  expect(log(home, 's').subarray(0, whole.length).equals(whole) || journal.tornTails > 0).toBe(true);
  expect(keyFiles(home, 's')).toHaveLength(1);
  await journal.append([draft({ after: true })], { sync: true });
  await journal.close({ seal: true });
  expect(keyFiles(home, 's')).toHaveLength(1);
  const { entries: count } = await expectIntact(home, 's');
  expect(readHead(home, 's')?.entries).toBe(count);
  const all = entries(home, 's');
  // Each kept tail is named by one gap, with its length and hash.
  const kept = sessionFiles(home, 's').filter((name) => name.startsWith('log.torn-'));
  expect(
    all
      .filter((e) => e.kind === 'gap')
      .map((e) => data(e)['file'])
      .sort(),
  ).toEqual(kept);
  for (const entry of all)
    for (const { blake3 } of entry.detached ?? []) expect(existsSync(join(home.blobs, blake3))).toBe(true);
  expect(all.map((e) => e.seq)).toEqual(all.map((_, i) => i));
}

it('the table in README.md has a row for each step that is tested here', () => {
  const table = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const rows = [...table.matchAll(/^\| `([a-z-]+)` +\|/gm)]
    .map((m) => m[1])
    .filter((name) => name !== 'write' && name !== 'fdatasync');
  expect(rows).toEqual(Object.keys(STEPS));
});

describe('a process killed at the step', () => {
  it.concurrent.each(Object.entries(STEPS) as [Step, number][])(
    '%s loses nothing that was acknowledged, and the session goes on',
    async (step, acknowledged) => {
      const home = freshHome();
      const mending = ['torn-kept', 'gap-written', 'torn-cut'].includes(step);
      if (mending) {
        await closedLife(home);
        appendFileSync(home.logFile('s'), `{"v":1,"seq":${entries(home, 's').length},"prev":"half a line`);
      }
      const life = await live(home, step);
      expect(life.killed).toBe(true);
      if (!mending) expect(life.acknowledged).toBe(acknowledged);
      await expectRecovered(home, log(home, 's'), mending ? 8 : acknowledged);
    },
    60_000,
  );

  it.concurrent.each(['folder-made', 'first-key-made', 'entries-written', 'entries-synced', 'seal-synced'] as const)(
    '%s of a hasty beginning loses nothing that was acknowledged, and the session goes on',
    async (step) => {
      const home = freshHome();
      const life = await live(home, step, 0, 'hasty');
      // Entry 0 is acknowledged with the first entry that somebody waits for.
      const acknowledged = step === 'entries-synced' ? 0 : STEPS[step];
      expect(life).toEqual({ killed: true, acknowledged });
      await expectRecovered(home, log(home, 's'), acknowledged);
    },
    60_000,
  );

  it.concurrent.each<[Step, number]>([
    ['next-key-made', 2],
    ['seal-written', 2],
    ['seal-synced', 4],
    ['old-key-destroyed', 4],
    ['head-written', 4],
    ['head-renamed', 4],
  ])(
    '%s of a session that ends in one write loses nothing: %i entries were acknowledged by then',
    async (step, acknowledged) => {
      const home = freshHome();
      expect(await live(home, step, 0, 'ends')).toEqual({ killed: true, acknowledged });
      await expectRecovered(home, log(home, 's'), acknowledged);
    },
    60_000,
  );

  it('seal-written of a session that ends, with power for its log and not for the key that its seal names, goes on under a new id', async () => {
    const home = freshHome();
    const { acknowledged } = await live(home, 'seal-written', 0, 'ends');
    unlinkSync(join(home.keys, 'sessions/s/1.key'));
    const before = log(home, 's');
    const journal = await openSession(home, 's');
    expect([journal.session, journal.continues?.entries]).toEqual(['s.r1', 4]);
    expect(journal.continues?.entries).toBeGreaterThan(acknowledged);
    await journal.close({ seal: true });
    expect(log(home, 's').equals(before)).toBe(true);
    for (const session of ['s', 's.r1']) expect((await verdict(home, session)).verdict).toBe('intact');
  }, 60_000);

  it.each(['torn-kept'] as const)(
    '%s, twice in a row',
    async (step) => {
      const home = freshHome();
      await closedLife(home);
      appendFileSync(home.logFile('s'), 'x'.repeat(5000));
      expect((await live(home, step)).killed).toBe(true);
      const again = await live(home, step);
      expect(again.killed).toBe(true);
      await expectRecovered(home, log(home, 's'), 8);
    },
    60_000,
  );
});

describe('a process killed in the middle of write number', () => {
  // 1: entry 0 · 2–4: entries · 5: the blob · 6: its entry · 7: the seal · 8: head.json · …
  it.concurrent.each([1, 2, 5, 6, 7, 8])(
    '%i leaves a log that is taken up again, with the tail declared',
    async (half) => {
      const home = freshHome();
      const { killed, acknowledged } = await live(home, 'none', half);
      expect(killed).toBe(true);
      const before = log(home, 's');
      const torn = before.length > 0 && before.at(-1) !== 10;
      if (torn) expect((await verdict(home, 's')).reason).toBe('torn-tail');
      await expectRecovered(home, before, acknowledged);
      expect(entries(home, 's').filter((e) => e.kind === 'gap')).toHaveLength(torn ? 1 : 0);
    },
    60_000,
  );

  // 1: entry 0 · 2: an entry · 3: the last one and the seal · 4: head.json
  it.concurrent.each([
    [1, 0],
    [2, 0],
    [3, 2],
    [4, 4],
  ])(
    '%i of a session that ends in one write leaves a log that is taken up again',
    async (half, acknowledged) => {
      const home = freshHome();
      expect(await live(home, 'none', half, 'ends')).toEqual({ killed: true, acknowledged });
      await expectRecovered(home, log(home, 's'), acknowledged);
    },
    60_000,
  );

  it.each([1, 2, 3])(
    '%i while mending a torn tail',
    async (half) => {
      const home = freshHome();
      await closedLife(home);
      appendFileSync(home.logFile('s'), 'y'.repeat(700));
      expect((await live(home, 'none', half)).killed).toBe(true);
      await expectRecovered(home, log(home, 's'), 8);
    },
    60_000,
  );
});

it('processes killed at one moment after the other over one session leave one chain', async () => {
  const home = freshHome();
  let acknowledged = 0;
  const steps = Object.keys(STEPS);
  for (let round = 0; round < 5; round++) {
    const life = await live(home, steps[(round * 7) % steps.length] as string, round % 3 === 0 ? 1 + round : 0);
    acknowledged = Math.max(acknowledged, life.acknowledged);
  }
  await expectRecovered(home, log(home, 's'), acknowledged);
}, 60_000);

/** What strace can do here: it needs ptrace, which some containers refuse. */
const canTrace = spawnSync('strace', ['-e', 'inject=getppid:error=EIO', 'true']).status === 0;

// What writes, makes and takes away, whatever steps the journal itself tells of: killed on its way into the call, before anything of that was done.
(canTrace ? it : it.skip)(
  'a process killed at any system call that changes the disk loses nothing that was acknowledged, begun in haste and ended in one write (needs strace)',
  async () => {
    const calls = ['openat', 'write', 'pwrite64', 'fsync', 'fdatasync', 'rename', 'unlink', 'mkdir', 'ftruncate'];
    const killedAt = async (call: string): Promise<number> => {
      for (let nth = 1; ; nth++) {
        const home = freshHome();
        const under = ['-f', '-qq', '-o', '/dev/null', ...filesOf(home).flatMap((path) => ['-P', path])];
        const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:signal=KILL:when=${String(nth)}`];
        const { killed, acknowledged } = await live(home, 'none', 0, 'ends', ['strace', ...under, ...inject]);
        if (!killed) return nth - 1;
        if (existsSync(home.logFile('s'))) await expectRecovered(home, log(home, 's'), acknowledged);
      }
    };
    const killed = await Promise.all(calls.map(killedAt));
    expect(killed.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(30);
  },
  300_000,
);

/** What a life touches, by name: strace follows paths. */
function filesOf(home: Home): string[] {
  const keys = join(home.keys, 'sessions/s');
  return [
    ...[
      home.root,
      home.keys,
      join(home.keys, 'sessions'),
      keys,
      home.sessions,
      home.sessionDir('s'),
      home.logFile('s'),
    ],
    ...[0, 1, 2].map((i) => join(keys, `${String(i)}.key`)),
    ...[home.headFile('s'), home.blobs, home.machineKeyFile, `${home.machineKeyFile}.new`],
  ];
}
