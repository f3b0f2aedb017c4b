// What speaks through the door of a confined session, and as what it is recorded.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openHome, readHead } from '@nd7/journal';
import { tryLock } from '@nd7/kernel';
import { BIN, removeThrowAways, throwAway, verdictOf } from '../testing/recorder.fixture.js';
import { askRecorder } from '../recorder/client.js';
import { deadDoors, endDeadSessions, othersRun, sweepDoors, takeDoor } from '../recorder/doors.js';

const canConfine = process.platform === 'linux' ? describe : describe.skip;

let user: string;
let home: string;
let project: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  user = throwAway();
  home = join(user, '.nd7');
  project = join(user, 'project');
  mkdirSync(project);
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  spawnSync(process.execPath, [BIN, 'recorder', '--stop'], { env: { HOME: user } });
  removeThrowAways();
});

const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '' };
const hook = (payload: object) =>
  `printf '%s' '${JSON.stringify(payload)}' | "$HOME/.nd7/bin/nd7-shim" --home "$HOME/.nd7" --agent claude-code`;
const call = (session: string, id: string) => ({
  session_id: session,
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_use_id: id,
});

function inside(script: string) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, 'run', '--', 'sh', '-c', script], {
    cwd: project,
    encoding: 'utf8',
    env: { ...env, HOME: user },
  });
  return { status, stdout, stderr };
}

interface Entry {
  source: string;
  kind: string;
  data: Record<string, unknown>;
  peer?: Record<string, unknown>;
}
const entries = (session: string): Entry[] =>
  readFileSync(join(home, 'sessions', session, 'log.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry);
const sessions = (): string[] => (existsSync(join(home, 'sessions')) ? readdirSync(join(home, 'sessions')) : []);
const runs = (): string[] => sessions().filter((name) => name.startsWith('run-'));
const of = (session: string, kind: string) => entries(session).filter((entry) => entry.kind === kind);

canConfine('the door of a confined session', () => {
  it('is a folder of its own, read-only inside, and what speaks there becomes intent and nothing else', () => {
    const script = [
      'echo "$ND7_SOCKET"; stat -c %a /run/nd7 /run/nd7/hook; ls ~/.nd7',
      'rm -f /run/nd7/hook || :; mv /run/nd7/hook /run/nd7/x || :; echo x > /run/nd7/shim.conf || :; echo x > ~/.nd7/bin/nd7-shim || :',
      hook({ ...call('s1', 't1'), source: 'decision:nd7', class: 'decision' }),
    ].join('\n');
    const ran = inside(script);
    expect([ran.status, ran.stdout]).toEqual([0, '/run/nd7/hook\n700\n600\nbin\nrun\n']);
    expect(ran.stderr.match(/Read-only file system/g)).toHaveLength(4);
    const [run = ''] = runs();
    expect(entries('s1').map(({ source, kind }) => `${source} ${kind}`)).toEqual([
      'recorder:nd7 session.start',
      'recorder:nd7 session.confined',
      'intent:claude-code tool.before',
    ]);
    expect(of('s1', 'tool.before')[0]?.peer).toMatchObject({ run, pid: expect.any(Number) as number });
    expect(of(run, 'session.joined')).toMatchObject([{ data: { session: 's1', agent: 'claude-code', entries: 2 } }]);
    expect(readdirSync(join(home, 'run')).filter((name) => name.startsWith('s-'))).toEqual([]);
  });

  it('hears nobody name a session of nd7’s own, nor one whose client lives outside', async () => {
    // An agent outside: this process stands for its client.
    inside('true');
    const env = { 'env.CLAUDE_PID': String(process.pid) };
    spawn(process.execPath, [BIN, 'recorder'], { env: { HOME: user }, stdio: 'ignore', detached: true }).unref();
    const said = Buffer.from(JSON.stringify(call('outside', 't0')));
    while ((await askRecorder(home, 'hook', { meta: { agent: 'claude-code', ...env }, payload: said })) === undefined)
      await new Promise((resolve) => setTimeout(resolve, 50));
    const [earlier = ''] = runs();
    expect(inside([hook(call('outside', 't1')), hook(call(earlier, 't2'))].join('\n')).status).toBe(0);
    expect(of('outside', 'tool.before').map(({ data }) => data['tool_use_id'])).toEqual(['t0']);
    expect(JSON.stringify(entries(earlier))).not.toContain('t2');
    const unnamed = sessions().filter((name) => name.startsWith('unnamed-'));
    const diverted = unnamed.flatMap((name) => of(name, 'tool.before'));
    expect(diverted.map(({ peer }) => peer?.['session_claimed']).sort()).toEqual(['outside', earlier].sort());
  });

  it('asks a recorder for nothing but hooks, and hears who is not below the session’s first process as little', async () => {
    const child = spawn(process.execPath, [BIN, 'run', '--', 'sh', '-c', 'echo up; cat >/dev/null'], {
      cwd: project,
      env: { ...env, HOME: user },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    children.push(child);
    await once(child.stdout, 'data');
    const [door = ''] = readdirSync(join(home, 'run')).filter((name) => /^s-[0-9a-f]{16}$/.test(name));
    expect(statSync(join(home, 'run', door)).mode & 0o777).toBe(0o700);
    // The name is the session's (BLAKE3), so that two never share one.
    const speak = join(user, 'speak.mjs');
    writeFileSync(
      speak,
      `import { connect } from 'node:net';
       const size = (n) => Buffer.from(Uint32Array.of(n).buffer);
       const meta = Buffer.from('op=' + process.argv[3] + '\\0agent=claude-code\\0inside.run=run-0000000000000000\\0inside.pid=1\\0');
       const socket = connect(process.argv[2], () => socket.write(Buffer.concat([Buffer.from('nd7\\x01', 'latin1'), size(meta.length), meta, size(2), Buffer.from('{}')])));
       socket.on('data', (bytes) => { console.log(String(bytes.readUInt32LE(4))); socket.destroy(); });`,
    );
    const say = (...args: string[]) => spawnSync(process.execPath, [speak, ...args], { encoding: 'utf8' }).stdout;
    expect(say(join(home, 'run', door, 'hook'), 'hook')).toBe('1\n');
    child.stdin.end();
    await once(child, 'close');
    writeFileSync(join(project, 'speak.mjs'), readFileSync(speak));
    expect(
      inside(`for op in stop status hook-inside; do "${process.execPath}" speak.mjs /run/nd7/hook $op; done`).stdout,
    ).toBe('1\n1\n1\n');
    const alarms = runs().flatMap((run) => of(run, 'alarm'));
    expect(alarms.map(({ data }) => data['reason'])).toEqual(Array(4).fill('door refused'));
    expect(alarms.filter(({ data }) => (data['by'] as { pid: number }).pid === 0)).toEqual([]);
    expect(sessions().filter((name) => !name.startsWith('run-'))).toEqual([]);
  });

  it('records by itself where no recorder can be had', () => {
    mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 });
    const lock = openSync(join(home, 'run/recorder.lock'), 'a');
    expect(tryLock(lock)).toBe(true);
    expect(inside([hook(call('s1', 't1')), hook(call('s1', 't2'))].join('\n')).status).toBe(0);
    const [run = ''] = runs();
    expect(of('s1', 'tool.before').map(({ peer }) => peer)).toMatchObject([
      { run, alone: true },
      { run, alone: true },
    ]);
    expect([of('s1', 'session.confined').length, of(run, 'session.joined').length]).toEqual([1, 1]);
  });

  it.each([
    ['required', 'deny'],
    ['best-effort', undefined],
  ])('%s: what cannot be recorded is answered as the session’s policy says', (recording, decision) => {
    mkdirSync(join(home, 'sessions'), { recursive: true, mode: 0o700 });
    writeFileSync(join(home, 'policy.jsonc'), JSON.stringify({ nd7: 1, recording }), { mode: 0o600 });
    // A file where the session's folder would be.
    writeFileSync(join(home, 'sessions/s1'), '');
    const { stdout } = inside(hook(call('s1', 't1')));
    const answer =
      stdout === '' ? undefined : (JSON.parse(stdout) as { hookSpecificOutput: { permissionDecision: string } });
    expect(answer?.hookSpecificOutput.permissionDecision).toBe(decision);
  });
});

canConfine('a session whose nd7 run was killed', () => {
  it('gets its end from the next one, also where no recorder ever ran', async () => {
    const child = spawn(process.execPath, [BIN, 'run', '--', 'sh', '-c', 'echo up; while :; do sleep 1; done'], {
      cwd: project,
      env: { ...env, HOME: user },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'close');
    const [killed = ''] = runs();
    expect(of(killed, 'session.end')).toEqual([]);
    expect(inside('true').status).toBe(0);
    expect(entries(killed).slice(-2)).toMatchObject([
      {
        source: 'recorder:nd7',
        kind: 'session.end',
        data: { reason: 'process gone', noticed: 'another session started' },
      },
      { source: 'recorder:nd7', kind: 'seal' },
    ]);
    expect(readdirSync(join(home, 'run')).filter((name) => name.startsWith('s-'))).toEqual([]);
    expect(existsSync(join(home, 'run/recorder.lock'))).toBe(false);
  });
});

it('a session that was killed between its end and what follows that is put away by the next who sweeps', async () => {
  const dist = (path: string): string => JSON.stringify(join(import.meta.dirname, '../../dist', path));
  const script = `
    const { takeDoor } = await import(${dist('recorder/doors.js')});
    const { RunRecord } = await import(${dist('confine/record.js')});
    const record = RunRecord.begin(${JSON.stringify(home)}, 'required', () => undefined);
    takeDoor(${JSON.stringify(home)}, record.id);
    await record.note('enforcement', {}, 'what holds');
    await record.end({ code: 0, signal: null });
    process.kill(process.pid, 'SIGKILL');`;
  spawnSync(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
  const [session = ''] = runs();
  const keys = (): number => readdirSync(join(home, 'keys/sessions', session)).length;
  const before = entries(session);
  expect([keys(), existsSync(join(home, 'sessions', session, 'head.json'))]).toEqual([2, false]);
  expect(await endDeadSessions(openHome(home), 'test')).toEqual([]);
  expect([keys(), readHead(openHome(home), session)?.entries]).toEqual([1, before.length]);
  expect(entries(session)).toEqual(before);
  expect(await verdictOf(home, session)).toMatchObject({ verdict: 'intact' });
});

describe('the folders of doors', () => {
  it('go with the process that holds them, and only with it', async () => {
    const mine = takeDoor(home, 'run-0000000000000001');
    const script = `const { takeDoor } = await import(${JSON.stringify(join(import.meta.dirname, '../../dist/recorder/doors.js'))}); takeDoor(${JSON.stringify(home)}, 'run-0000000000000002'); console.log('up'); setInterval(() => undefined, 1000);`;
    const other = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(other);
    await once(other.stdout, 'data');
    const none = (): Promise<void> => Promise.resolve();
    expect([othersRun(home, mine.path), deadDoors(home), await sweepDoors(home, none)]).toEqual([true, [], []]);
    other.kill('SIGKILL');
    await once(other, 'close');
    // Asking is not sweeping: whoever sweeps has an end to write.
    expect(othersRun(home, mine.path)).toBe(false);
    expect(deadDoors(home)).toEqual(['run-0000000000000002']);
    // An end that could not be written is left for the next who sweeps.
    const full = (): Promise<void> => Promise.reject(new Error('the disk is full'));
    await expect(sweepDoors(home, full)).rejects.toThrow('the disk is full');
    let whileHeld: string[] | undefined;
    const looks = (): Promise<void> => {
      whileHeld = deadDoors(home);
      return Promise.resolve();
    };
    expect([await sweepDoors(home, looks), whileHeld]).toEqual([['run-0000000000000002'], []]);
    expect([deadDoors(home), existsSync(mine.path)]).toEqual([[], true]);
    mine.release();
    expect(readdirSync(join(home, 'run'))).toEqual([]);
  });
});
