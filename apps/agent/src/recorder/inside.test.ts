// What a front says of who spoke, held against the kernel.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { processFacts } from '@nd7/kernel';
import {
  hookRequest,
  inProcess,
  removeThrowAways,
  SELF,
  sessionsOf,
  throwAway,
  toolCall,
} from '../testing/recorder.fixture.js';
import { takeDoor } from './doors.js';
import { insideMeta, insideOf, lineage, mayName, type Inside } from './inside.js';

const RUN = 'run-0123456789abcdef';
const started: number[] = [];
afterEach(() => {
  for (const pid of started.splice(0)) process.kill(pid, 'SIGKILL');
  removeThrowAways();
});

/** A process that stands for a session's first, and one below it. */
async function tree(): Promise<{ first: number; below: number }> {
  const shell = spawn('sh', ['-c', 'sleep 600 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [bytes] = (await once(shell.stdout, 'data')) as [Buffer];
  const below = Number(bytes.toString());
  started.push(shell.pid ?? 0, below);
  return { first: shell.pid ?? 0, below };
}

const start = (pid: number): string => processFacts(pid)?.start ?? '';
const inside = (first: number, pid: number, more: Partial<Inside> = {}): Inside => ({
  run: RUN,
  entries: 2,
  head: 'ab'.repeat(32),
  pid,
  first: { pid: first, start: start(first) },
  recording: 'required',
  isAttached: false,
  ...more,
});

/** Hands a hook on as the front of a session does. */
async function say(claims: Inside) {
  const home = throwAway();
  const recorder = inProcess(home);
  const request = hookRequest(JSON.stringify(toolCall('s1', 't1')));
  const meta = new Map([...request.meta, ...Object.entries(insideMeta(claims))]);
  const answer = await recorder.answer({ ...request, op: 'hook-inside', meta }, SELF);
  await recorder.stop();
  return { answer, home };
}

it('a hook of a process below a child of the front is recorded as what it is', async () => {
  const { first, below } = await tree();
  const { answer, home } = await say(inside(first, below));
  expect(answer.exit).toBe(0);
  const log = readFileSync(join(home, 'sessions/s1/log.jsonl'), 'utf8').trim().split('\n');
  const entries = log.map((line) => JSON.parse(line) as { kind: string; prev: string; peer?: object });
  expect(JSON.parse(answer.stdout)).toMatchObject({
    answer: { exit: 0, stdout: '' },
    joined: { session: 's1', agent: 'claude-code', entries: 2, head: entries[2]?.prev },
  });
  expect(entries.slice(0, 3).map(({ kind }) => kind)).toEqual(['session.start', 'session.confined', 'tool.before']);
  expect(entries[2]?.peer).toMatchObject({ pid: below, start: start(below), run: RUN });
});

it.each([
  ['a session’s first process that is nobody’s child', async () => inside(1, (await tree()).below)],
  ['a first process of another front', async () => inside(process.ppid, process.pid)],
  ['a process that does not stand below it', async () => inside((await tree()).first, process.pid)],
  [
    'the first process itself',
    async () => {
      const { first } = await tree();
      return inside(first, first);
    },
  ],
  ['nobody (pid 0)', async () => inside((await tree()).first, 0)],
  [
    'a chain that is no session’s',
    async () => {
      const { first, below } = await tree();
      return inside(first, below, { run: 's1' });
    },
  ],
])('%s is refused, and nothing is recorded', async (_what, claims) => {
  const { answer, home } = await say(await claims());
  expect(answer).toMatchObject({ exit: 1, stdout: '' });
  expect(sessionsOf(home)).toEqual([]);
});

it('a parent that began after its child is another process by the same number', async () => {
  const { first, below } = await tree();
  expect(lineage(below, { pid: first, start: start(first) })?.map(({ pid }) => pid)).toEqual([below, first]);
  expect(lineage(below, { pid: first, start: '1' })).toBeUndefined();
});

it('names sessions that are its own or nobody’s', async () => {
  const { first, below } = await tree();
  const from = inside(first, below);
  expect([
    mayName('s1', from, undefined),
    mayName('s1', from, { pid: below, start: start(below) }),
    mayName('s1', from, { pid: below, start: '1' }), // gone
    mayName('s1', from, { pid: process.pid, start: start(process.pid) }),
    mayName(RUN, from, undefined),
  ]).toEqual([true, true, true, false, false]);
});

it('is taken from who keeps the door of the session, whose first process is somebody else’s child', () => {
  const home = throwAway();
  const claims = inside(process.ppid, process.pid);
  const request = { op: 'hook-inside', meta: new Map(Object.entries(insideMeta(claims))), payload: Buffer.alloc(0) };
  const keeper = { pid: process.pid, uid: 0, gid: 0 };
  expect(() => insideOf(request, keeper, home)).toThrow('is not the first of a session');
  const door = takeDoor(home, RUN);
  try {
    expect(insideOf(request, keeper, home)).toMatchObject({ run: RUN, pid: process.pid });
    // Another process, and another session's door.
    expect(() => insideOf(request, { ...keeper, pid: process.ppid }, home)).toThrow('is not the first of a session');
    const other = new Map([...request.meta, ['inside.run', 'run-ffffffffffffffff'] as const]);
    expect(() => insideOf({ ...request, meta: other }, keeper, home)).toThrow('is not the first of a session');
  } finally {
    door.release();
  }
  expect(() => insideOf(request, keeper, home)).toThrow('is not the first of a session');
});
