// The recorder, the shim and the fall-back as the processes they are: one home, many speakers, kills at any moment.
import { execFileSync, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { socketAddress } from '@nd7/kernel';
import {
  BIN,
  entriesOf,
  environment,
  killStarted,
  removeThrowAways,
  REPOSITORY,
  sessionsOf,
  start,
  throwAway,
  until,
  verdictOf,
} from '../testing/recorder.fixture.js';
import { askJson, askRecorder } from './client.js';
import { encodeRequest } from './frames.js';

const SPEAKER = join(import.meta.dirname, '../../dist/testing/speaker.js');
let home: string;
beforeEach(() => {
  home = join(throwAway(), 'home');
});
afterEach(async () => {
  await askRecorder(home, 'stop', { timeoutMs: 2_000 });
  killStarted();
  removeThrowAways();
});

const recorder = (at = home): ChildProcess =>
  start(process.execPath, [BIN, 'recorder'], { env: environment(at), stdio: ['ignore', 'ignore', 'inherit'] });
const listening = (at = home) =>
  until('the recorder listens', async () => (await askJson(at, 'status', {}, 1_000)) !== undefined);
const ended = (child: ChildProcess) =>
  new Promise<number | null>((resolve) =>
    child.exitCode !== null || child.signalCode !== null ? resolve(child.exitCode) : child.once('exit', resolve),
  );
/** `count` payloads of session `s` by one process, in the way named; what was acknowledged comes back on stdout. */
const speaker = (name: string, count: number, way: 'socket' | 'alone' | 'both' | 'again') =>
  start(process.execPath, [SPEAKER, home, 's', name, String(count), way], {
    env: environment(home),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
const textOf = (child: ChildProcess) =>
  new Promise<string>((resolve) => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    child.once('close', () => resolve(text));
  });
const idsIn = (session: string) =>
  entriesOf(home, session).flatMap((entry) =>
    entry.kind === 'tool.before' ? [(JSON.parse(entry.data ?? '{}') as { tool_use_id: string }).tool_use_id] : [],
  );

it('takes 1,000 payloads of 20 processes, through the socket and past it at once, in one chain', async () => {
  recorder();
  await listening();
  const acknowledged = await Promise.all(Array.from({ length: 20 }, (_, n) => textOf(speaker(`p${n}`, 50, 'both'))));
  expect(acknowledged.join('').trim().split('\n')).toHaveLength(1000);
  await askRecorder(home, 'stop');
  await until('it has stopped', () => !existsSync(join(home, 'run/hook')));
  const ids = idsIn('s');
  expect(ids).toHaveLength(1000);
  expect(new Set(ids).size).toBe(1000);
  expect(sessionsOf(home)).toEqual(['s']);
  expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  // Each process's own order is kept.
  for (let n = 0; n < 20; n++)
    expect(ids.filter((id) => id.startsWith(`p${n}-`))).toEqual(Array.from({ length: 50 }, (_, at) => `p${n}-${at}`));
}, 180_000);

it('killed at random, again and again, while hooks go on in parallel: nothing answered is lost, and the chain stays one', async () => {
  const began = performance.now();
  const speakers = Array.from({ length: 5 }, (_, n) => speaker(`p${n}`, 1_000_000, 'again'));
  const texts = Promise.all(speakers.map(textOf));
  let answers = 0;
  for (const one of speakers)
    one.stdout?.on('data', (chunk: Buffer) => (answers += chunk.toString().split('\n').length - 1));
  let kills = 0;
  // Some are killed while they begin, most while they answer.
  for (; kills < 8 || (kills < 25 && performance.now() - began < 6_000); kills++) {
    const [child, before] = [recorder(), answers];
    if (kills % 4 !== 3) await until('something is answered', () => answers > before + 5 || child.exitCode !== null);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 200));
    child.kill('SIGKILL');
    await ended(child);
  }
  recorder();
  await listening();
  for (const one of speakers) one.stdin?.end();
  const answered = (await texts).flatMap((text) => text.split('\n').filter((line) => line !== ''));
  await askRecorder(home, 'stop');
  await until('it has stopped', () => !existsSync(join(home, 'run/hook')));
  await until('it has sealed', () => entriesOf(home, 's').at(-1)?.kind === 'seal');
  expect(answered.length).toBeGreaterThan(50);
  expect(sessionsOf(home)).toEqual(['s']);
  expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  const ids = idsIn('s');
  const known = new Set(ids);
  expect(answered.filter((id) => !known.has(id))).toEqual([]);
  // Said again because nobody answered, perhaps; never out of its speaker's order.
  for (let n = 0; n < speakers.length; n++) {
    const counts = ids.filter((id) => id.startsWith(`p${n}-`)).map((id) => Number(id.split('-')[1]));
    expect(counts).toEqual([...counts].sort((x, y) => x - y));
  }
}, 180_000);

describe('one recorder of a home', () => {
  it('is enough: a second one ends quietly, a stale socket is replaced, SIGTERM seals and tidies up', async () => {
    mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 });
    chmodSync(home, 0o700);
    // A socket that a dead process left.
    const address = socketAddress(join(home, 'run'), 'hook');
    const dead = createServer();
    await new Promise<void>((resolve) => dead.listen(address.path, resolve));
    const { linkSync } = await import('node:fs');
    linkSync(join(home, 'run/hook'), join(home, 'run/stale'));
    await new Promise((resolve) => dead.close(resolve));
    linkSync(join(home, 'run/stale'), join(home, 'run/hook'));
    const first = recorder();
    await listening();
    expect(statSync(join(home, 'run/hook')).mode & 0o777).toBe(0o600);
    const second = recorder();
    expect(await ended(second)).toBe(0);
    expect(await askJson(home, 'status')).toMatchObject({ pid: first.pid });
    await askRecorder(home, 'hook', {
      meta: { agent: 'claude-code' },
      payload: Buffer.from('{"session_id":"s","hook_event_name":"PreToolUse"}'),
    });
    first.kill('SIGTERM');
    expect(await ended(first)).toBe(0);
    expect(existsSync(join(home, 'run/hook'))).toBe(false);
    expect(entriesOf(home, 's').at(-1)).toMatchObject({ source: 'recorder:nd7', kind: 'seal' });
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact', entries: 3 });
  }, 60_000);

  it('ends when its home is removed', async () => {
    const child = recorder();
    await listening();
    rmSync(home, { recursive: true });
    expect(await ended(child)).not.toBeNull();
  }, 60_000);

  it('survives what no client says', async () => {
    recorder();
    await listening();
    const { connect } = await import('node:net');
    const say = (bytes: Uint8Array) =>
      new Promise<void>((resolve) => {
        const socket = connect(join(home, 'run/hook'), () => socket.end(bytes));
        socket.on('error', () => resolve()).on('close', () => resolve());
        socket.resume();
      });
    const huge = encodeRequest('hook', { agent: 'x' });
    huge.writeUInt32LE(0xffff_ffff, huge.length - 4);
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.from('nd7\x02xxxxxxxx'),
      Buffer.from('nd7\x01\xff\xff\xff\xff', 'latin1'),
      encodeRequest('hook', {}).subarray(0, 9),
      huge,
      encodeRequest('', {}),
      encodeRequest('ship', {}, Buffer.from('[')),
    ])
      await say(bytes);
    expect(await askJson(home, 'status')).toMatchObject({ sessions: [] });
  }, 60_000);
});

describe('the hook command', () => {
  const hook = (
    at: string,
    payload: string,
    args: string[] = [],
    env: Record<string, string> = {},
    options: object = {},
  ) =>
    spawnSync(process.execPath, [BIN, 'hook', '--agent', 'claude-code', ...args], {
      input: payload,
      encoding: 'utf8',
      env: environment(at, env),
      ...options,
    });
  const payload = '{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t1"}';

  it('records through a running recorder, prints nothing and costs no CLI', async () => {
    recorder();
    await listening();
    expect(hook(home, payload)).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(entriesOf(home, 's')[1]?.peer).not.toHaveProperty('alone');
  }, 60_000);

  it('records alone, in a home with spaces, unicode and a very long path', async () => {
    const deep = join(home, 'a folder', 'ünï 世界 🚀', 'x'.repeat(120), 'home');
    mkdirSync(join(deep, '..'), { recursive: true });
    expect(hook(deep, payload, ['--alone'])).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(entriesOf(deep, 's')).toHaveLength(2);
    expect(await verdictOf(deep, 's')).toMatchObject({ verdict: 'intact', entries: 2 });
    recorder(deep);
    await listening(deep);
    expect(hook(deep, payload.replace('t1', 't2'))).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(await askJson(deep, 'status')).toMatchObject({ sessions: [{ session: 's' }] });
    await askRecorder(deep, 'stop');
    await until('it has stopped', () => !existsSync(join(deep, 'run/hook')));
    expect(await verdictOf(deep, 's')).toMatchObject({ verdict: 'intact' });
  }, 60_000);

  it('marks what another says at the same moment, alone too', async () => {
    const secret = payload.replace(
      '"t1"',
      '"t1","tool_input":{"command":"export API_KEY=sk-ant-api03-Zq8vR2mK7xW1pL5tY9bN3cD6fG0hJ4sA"}',
    );
    let pairs = 0;
    // Two processes that begin at once may on a busy machine still be seconds apart: those are none.
    for (let round = 0; round < 10 && pairs < 2; round++) {
      const children = [0, 1].map(() => {
        const child = start(process.execPath, [BIN, 'hook', '--agent', 'claude-code', '--alone'], {
          env: environment(home),
          stdio: ['pipe', 'ignore', 'inherit'],
        });
        child.stdin?.end(secret.replace('"t1"', `"r${round}"`));
        return child;
      });
      await Promise.all(children.map(ended));
      const [first, second] = entriesOf(home, 's').filter(({ data }) => data?.includes(`"r${round}"`));
      expect(first?.peer).not.toHaveProperty('duplicate_of');
      expect(second?.detached).toHaveLength(1);
      if (Date.parse(second?.time ?? '') - Date.parse(first?.time ?? '') > 2_000) continue;
      pairs++;
      expect(second?.peer).toMatchObject({ duplicate_of: first?.seq });
    }
    expect(pairs).toBeGreaterThan(0);
    hook(home, secret.replace('"t1"', '"another"'), ['--alone']);
    expect(entriesOf(home, 's').at(-1)?.peer).not.toHaveProperty('duplicate_of');
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  }, 60_000);

  it('ends a session alone too', async () => {
    hook(home, payload, ['--alone']);
    hook(home, '{"session_id":"s","hook_event_name":"SessionEnd","reason":"other"}', ['--alone']);
    expect(entriesOf(home, 's').map(({ kind }) => kind)).toEqual([
      'session.start',
      'tool.before',
      'session.end',
      'session.end',
      'seal',
    ]);
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  }, 60_000);

  it('says what cannot be and lets the agent go on; denies where recording is required', () => {
    mkdirSync(home);
    chmodSync(home, 0o755);
    writeFileSync(join(home, 'sessions'), 'a file in the way');
    chmodSync(home, 0o700);
    expect(hook(home, payload, ['--alone'])).toMatchObject({
      status: 0,
      stdout: '',
      stderr: expect.stringContaining('nd7: not recorded: ') as string,
    });
    expect(readFileSync(join(home, 'run/missed'), 'utf8')).toMatch(/^\S+Z\tclaude-code\ts\tPreToolUse\t\S+\n$/);
    writeFileSync(join(home, 'config.json'), '{"recording":"required"}');
    expect(hook(home, payload, ['--alone']).stdout).toContain('"permissionDecision":"deny"');
    expect(hook(home, payload.replace('PreToolUse', 'Stop'), ['--alone'])).toMatchObject({ status: 0, stdout: '' });
  }, 60_000);

  it('left markers that the next recorder tells as gaps, each in its session', async () => {
    mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 });
    chmodSync(home, 0o700);
    writeFileSync(
      join(home, 'run/missed'),
      [
        '2026-11-29T10:00:00.000Z\tclaude-code\tone\tPreToolUse\tno recorder',
        '2026-11-29T10:00:01.000Z\tclaude-code\tone\tStop\tno recorder',
        '2026-11-29T10:00:02.000Z\tclaude-code\t-\t-\tno recorder',
        'rubbish',
      ].join('\n'),
    );
    recorder();
    await listening();
    const gaps = () =>
      sessionsOf(home).flatMap((session) =>
        entriesOf(home, session)
          .filter(({ kind }) => kind === 'gap')
          .map(({ data }) => ({ session, ...(JSON.parse(data ?? '') as object) })),
      );
    await until('the gap of the named session', () => gaps().length === 1);
    expect(gaps()).toMatchObject([{ session: 'one', entries: 4, since: '2026-11-29T10:00:00.000Z' }]);
    await until(
      'the markers are gone',
      () => !readdirSync(join(home, 'run')).some((name) => name.startsWith('missed')),
    );
    expect(await verdictOf(home, 'one')).toMatchObject({ verdict: 'intact' });
  }, 60_000);

  it('takes a payload whose sender never closes the pipe', async () => {
    recorder();
    await listening();
    const child = start(process.execPath, [BIN, 'hook', '--agent', 'claude-code'], {
      env: environment(home),
      stdio: ['pipe', 'inherit', 'inherit'],
    });
    child.stdin?.write(payload);
    expect(await ended(child)).toBe(0);
    expect(idsIn('s')).toEqual(['t1']);
  }, 60_000);

  it('tells a usage mistake in one line, never as a refusal', () => {
    expect(spawnSync(process.execPath, [BIN, 'hook'], { encoding: 'utf8', env: environment(home) })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^nd7 hook: --agent is missing; usage: .*\n$/) as string,
    });
  });

  const asRoot = process.getuid?.() === 0;
  (asRoot ? it : it.skip)(
    'works as an ordinary user, and refuses a home that is not theirs or cannot be written (root)',
    () => {
      const nobody = { uid: 65534, gid: 65534, cwd: '/' };
      const theirs = throwAway('nd7-nobody-');
      chmodSync(theirs, 0o755);
      const own = join(theirs, 'own');
      mkdirSync(own, { mode: 0o700 });
      chownSync(own, 65534, 65534);
      expect(hook(own, payload, ['--alone'], {}, nobody)).toMatchObject({ status: 0, stderr: '' });
      expect(statSync(join(own, 'sessions/s/log.jsonl')).uid).toBe(65534);
      const locked = join(theirs, 'locked');
      mkdirSync(locked, { mode: 0o755 });
      expect(hook(locked, payload, ['--alone'], {}, nobody).stderr).toMatch(/belongs to user 0/);
      chmodSync(own, 0o500);
      expect(hook(own, payload, ['--alone'], {}, nobody).stderr).toMatch(/cannot be written|not recorded/);
      chmodSync(own, 0o700);
    },
    60_000,
  );
});

const shim = join(REPOSITORY, 'native/shim/build/nd7-shim');
(existsSync(shim) ? describe : describe.skip)('with the shim (C compiler)', () => {
  it('the first hook starts the recorder, and parallel ones share it', async () => {
    mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 });
    chmodSync(home, 0o700);
    const { writeShimConf } = await import('./settings.js');
    writeShimConf(home, 'best-effort');
    const children = Array.from({ length: 20 }, (_, n) => {
      const child = start(shim, ['--home', home, '--agent', 'claude-code'], {
        env: environment(home),
        stdio: ['pipe', 'ignore', 'inherit'],
      });
      child.stdin?.end(`{"session_id":"s","hook_event_name":"PreToolUse","tool_use_id":"t${n}"}`);
      return child;
    });
    expect(await Promise.all(children.map(ended))).toEqual(Array(20).fill(0));
    await askRecorder(home, 'stop');
    await until('it has stopped', () => !existsSync(join(home, 'run/hook')));
    expect(new Set(idsIn('s')).size).toBe(20);
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  }, 60_000);
});

it('at rest needs little memory and no time of the processor', async () => {
  const child = recorder();
  await listening();
  await askRecorder(home, 'hook', {
    meta: { agent: 'claude-code' },
    payload: Buffer.from('{"session_id":"s","hook_event_name":"SessionEnd"}'),
  });
  const ticks = () => {
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return Number(fields[11]) + Number(fields[12]);
  };
  await until(
    'no session is open',
    async () => ((await askJson(home, 'status'))?.['sessions'] as unknown[]).length === 0,
  );
  const before = ticks();
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(ticks() - before).toBeLessThanOrEqual(2); // of 200
  const rss =
    Number(/VmRSS:\s+(\d+) kB/.exec(execFileSync('cat', [`/proc/${child.pid}/status`], { encoding: 'utf8' }))?.[1]) *
    1024;
  expect(rss).toBeLessThan(80 * 1024 * 1024);
}, 90_000);
