// Sessions kept by a host for the front on PATH: what is the front's own stays so, and whoever of the two dies, the session ends closed.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { frontIn } from '../testing/front.fixture.js';
import { BIN, removeThrowAways, throwAway } from '../testing/recorder.fixture.js';

let user: string;
let home: string;
let project: string;
let front: string;
beforeEach(() => {
  user = join(throwAway(), 'a user');
  home = join(user, '.nd7');
  project = join(user, 'project');
  mkdirSync(project, { recursive: true });
  front = frontIn(home);
});
afterEach(() => {
  for (const pid of hosts()) process.kill(pid, 'SIGKILL');
  removeThrowAways();
});

const environment = (more: Record<string, string> = {}): Record<string, string> => ({
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: user,
  ...more,
});
const run = (args: string[], options: { env?: Record<string, string>; by?: string[] } = {}) => {
  const [program = '', ...words] = [...(options.by ?? []), front, 'run', ...args];
  const { status, signal, stdout, stderr } = spawnSync(program, words, {
    cwd: project,
    encoding: 'utf8',
    env: environment(options.env),
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  return { status, signal, stdout, stderr };
};

function pids(matches: (pid: number) => boolean): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)
    .filter((pid) => {
      try {
        return matches(pid);
      } catch {
        return false;
      }
    });
}
const words = (pid: number): string[] => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
const of = (pid: number, where = home): boolean =>
  readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`ND7_HOME=${where}`);
const hosts = (where = home): number[] => pids((pid) => words(pid).at(-1) === 'host' && of(pid, where));
const named = (word: string): number[] => pids((pid) => words(pid).includes(word));

async function until(isSo: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + 30_000; !isSo();) {
    if (Date.now() > end) throw new Error(`this did not come: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** A session whose program waits; `word` stands in its command line and nowhere else. */
async function waiting(word: string): Promise<{ child: ChildProcess; said: { stderr: string } }> {
  const child = spawn(front, ['run', '--', 'sh', '-c', 'echo up; read line; exit 5', word], {
    cwd: project,
    env: environment(),
  });
  const said = { stderr: '' };
  child.stderr?.on('data', (bytes: Buffer) => (said.stderr += bytes.toString()));
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  return { child, said };
}

it('stays for the next session, and a second one at the same time has a host of its own', async () => {
  expect(run(['--', 'sh', '-c', 'exit 3'])).toEqual({ status: 3, signal: null, stdout: '', stderr: '' });
  const [first, ...others] = hosts();
  expect([typeof first, others]).toEqual(['number', []]);
  expect(run(['--', 'true']).status).toBe(0);
  expect(hosts()).toEqual([first]);
  const one = await waiting('nd7-test-one');
  expect(run(['--', 'sh', '-c', 'exit 4']).status).toBe(4);
  expect(hosts()).toHaveLength(2);
  one.child.stdin?.end('\n');
  expect(await once(one.child, 'exit')).toEqual([5, null]);
  // One idle host is enough.
  await until(() => hosts().length === 1, 'a single host');
});

it('two first sessions at once both run', async () => {
  const both = [7, 8].map((code) =>
    spawn(front, ['run', '--', 'sh', '-c', `exit ${code}`], { cwd: project, env: environment(), stdio: 'ignore' }),
  );
  expect((await Promise.all(both.map((child) => once(child, 'exit')))).map(([code]) => code as number)).toEqual([7, 8]);
});

it('what is the front’s own is so inside: folder, umask, environment, streams', () => {
  expect(run(['--', 'true']).status).toBe(0);
  const script = 'umask 027; cd ..; mkdir -p other; cd other; exec "$@"';
  const inside = 'umask; pwd; echo "$EDITOR $TZ"; ls -l /proc/self/fd/0 | sed "s/.*-> //"; echo e >&2';
  const { stdout, stderr } = run(['--', 'sh', '-c', inside], {
    by: ['sh', '-c', script, 'sh'],
    env: { EDITOR: 'mine', TZ: 'Pacific/Auckland' },
  });
  expect([stdout.replace(/pipe:.*|socket:.*/, 'stream'), stderr]).toEqual([
    `0027\n${join(user, 'other')}\nmine Pacific/Auckland\nstream\n`,
    'e\n',
  ]);
  // The next one has nothing of it.
  expect(run(['--', 'sh', '-c', 'umask; pwd; echo "[$EDITOR]"']).stdout).toBe(`0022\n${project}\n[]\n`);
  expect(hosts()).toHaveLength(1);
});

it.each<[string, string[], Record<string, string>]>([
  ['has other limits', ['sh', '-c', 'ulimit -n 300; exec "$@"', 'sh'], {}],
  ['has a Node option', [], { NODE_OPTIONS: '--no-warnings' }],
  ['has other certificates', [], { SSL_CERT_FILE: '/etc/hosts' }],
])('a front that %s gets the same from the CLI', (_what, by, env) => {
  expect(run(['--', 'true']).status).toBe(0);
  const [host] = hosts();
  expect(run(['--', 'sh', '-c', 'ulimit -n; exit 6'], { by, env })).toMatchObject({
    status: 6,
    stderr: '',
    ...(by.length === 0 ? {} : { stdout: '300\n' }),
  });
  expect(hosts()).toEqual([host]);
});

it.each<[string, string[], string]>([
  ['help', ['--help'], 'Usage: nd7 run'],
  ['an option that is none', ['--nope', '--', 'true'], ''],
])('%s is the CLI’s', (_what, args, said) => {
  const { status, stdout, stderr } = run(args);
  expect([status, stdout.includes(said), stderr.includes('unknown option')]).toEqual([
    said === '' ? 2 : 0,
    true,
    said === '',
  ]);
});

it('a front that is killed ends its session, and its host serves the next', async () => {
  const { child } = await waiting('nd7-test-front');
  const [host] = hosts();
  expect(named('nd7-test-front').length).toBeGreaterThan(1);
  child.kill('SIGKILL');
  await until(() => named('nd7-test-front').length === 0, 'the end of all that was inside');
  await until(() => existsSync(join(home, 'run/host')), 'the host’s socket');
  expect(run(['--', 'true']).status).toBe(0);
  expect(hosts()).toEqual([host]);
  // What the front could not say is in the record.
  const logs = readdirSync(join(home, 'sessions')).map((name) =>
    readFileSync(join(home, 'sessions', name, 'log.jsonl'), 'utf8'),
  );
  expect(logs.filter((log) => log.includes('"session.end"'))).toHaveLength(2);
});

it('a host that is killed ends its session, and the front says so', async () => {
  const { child, said } = await waiting('nd7-test-host');
  expect(hosts()).toHaveLength(1);
  for (const pid of hosts()) process.kill(pid, 'SIGKILL');
  expect(await once(child, 'exit')).toEqual([1, null]);
  expect(said.stderr).toContain('nd7: the session was ended: its host has gone\n');
  await until(() => named('nd7-test-host').length === 0, 'the end of all that was inside');
  expect(run(['--', 'sh', '-c', 'exit 9']).status).toBe(9);
});

it('what a session leaves that was killed with its host goes at the end of the next host, and the doctor says so before', async () => {
  const { child } = await waiting('nd7-test-left');
  for (const pid of hosts()) process.kill(pid, 'SIGKILL');
  await once(child, 'exit');
  const doors = (): string[] => readdirSync(join(home, 'run')).filter((name) => /^[sc]-/.test(name));
  expect(doors()).toHaveLength(3);
  const env = environment({ ND7_HOME: home });
  const doctor = (): string[] => {
    const { stdout } = spawnSync(process.execPath, [BIN, 'doctor', '--json'], { cwd: project, encoding: 'utf8', env });
    const { checks } = JSON.parse(stdout) as { checks: { name: string; state: string; text: string }[] };
    return checks.filter(({ name }) => name === 'killed sessions').map(({ state, text }) => `${state} ${text}`);
  };
  expect(doctor()).toEqual([expect.stringMatching(/^note run-[0-9a-f]{16} ended without a word/)]);
  expect(doors()).toHaveLength(3);
  const host = spawn(process.execPath, [BIN, 'host'], { env, stdio: 'ignore' });
  await until(() => existsSync(join(home, 'run/host')), 'the host’s socket');
  rmSync(join(home, 'run/host'));
  await once(host, 'exit');
  expect([doors(), doctor()]).toEqual([[], ['ok none has left anything behind']]);
  const [session = ''] = readdirSync(join(home, 'sessions'));
  expect(readFileSync(join(home, 'sessions', session, 'log.jsonl'), 'utf8')).toContain('"reason":"process gone"');
}, 60_000);

it('a host that is killed at any moment leaves records that check out, each with an end', async () => {
  for (const after of [4, 8, 12, 16, 20, 25, 30, 40, 60]) {
    expect(run(['--', 'true']).status).toBe(0);
    const child = spawn(front, ['run', '--', 'sh', '-c', 'exit 7'], {
      cwd: project,
      env: environment(),
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    await new Promise((done) => setTimeout(done, after));
    for (const pid of hosts()) process.kill(pid, 'SIGKILL');
    // Killed before it was asked: another one served. Killed in its midst: the front says so. Killed behind it: nobody noticed.
    expect([1, 7]).toContain((await ended)[0]);
  }
  expect(run(['--', 'true']).status).toBe(0);
  const logs = readdirSync(join(home, 'sessions')).map((name) => {
    const path = join(home, 'sessions', name, 'log.jsonl');
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  });
  const lacking = logs.filter((log) => log.includes('"enforcement"') && !log.includes('"session.end"'));
  expect(lacking).toEqual([]);
  const said = spawnSync(process.execPath, [BIN, 'verify', '--all', '--json'], {
    encoding: 'utf8',
    env: environment(),
  });
  expect([said.status, said.stderr]).toEqual([0, '']);
}, 120_000);

it('a launcher that is killed ends its session as it does without a host', async () => {
  const { child } = await waiting('nd7-test-launcher');
  const [launcher] = pids((pid) => words(pid)[0]?.endsWith('/nd7-launch') === true && parentOf(pid) === child.pid);
  process.kill(launcher ?? 0, 'SIGKILL');
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
  await until(() => named('nd7-test-launcher').length === 0, 'the end of all that was inside');
});

const parentOf = (pid: number): number =>
  Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

it('a launcher that waits for a plan which does not come ends without a word', () => {
  expect(run(['--', 'true']).status).toBe(0);
  writeFileSync(join(home, 'policy.jsonc'), '{ "nd7": 1, "nope": [] }', { mode: 0o600 });
  const { status, stdout, stderr } = run(['--', 'true']);
  expect([status, stdout, /nope/.test(stderr), stderr.includes('nd7-launch')]).toEqual([2, '', true, false]);
  rmSync(join(home, 'policy.jsonc'));
  expect(run(['--', 'sh', '-c', 'exit 3'])).toEqual({ status: 3, signal: null, stdout: '', stderr: '' });
  expect(hosts()).toHaveLength(1);
});

it('a front that is ended at any moment takes its launcher with it, and its host serves the next', async () => {
  expect(run(['--', 'true']).status).toBe(0);
  const launchersOf = (front: number | undefined): number[] =>
    pids((pid) => words(pid)[0]?.endsWith('/nd7-launch') === true && parentOf(pid) === front);
  let seen = 0;
  for (const after of [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20]) {
    const child = spawn(front, ['run', '--', 'sleep', '60'], { cwd: project, env: environment(), stdio: 'ignore' });
    const ended = once(child, 'exit');
    await new Promise((done) => setTimeout(done, after));
    const launchers = launchersOf(child.pid);
    seen += launchers.length;
    child.kill('SIGTERM');
    // Itself, its program, or a launcher that had not begun to pass signals on.
    expect([
      [null, 'SIGTERM'],
      [1, null],
    ]).toContainEqual(await ended);
    await until(() => launchers.every((pid) => !existsSync(`/proc/${pid}`)), 'the end of the launcher');
    await until(() => existsSync(join(home, 'run/host')), 'the host’s socket');
  }
  expect(seen).toBeGreaterThan(0);
  expect(run(['--', 'sh', '-c', 'exit 3'])).toEqual({ status: 3, signal: null, stdout: '', stderr: '' });
}, 120_000);

const hasPerl = spawnSync('perl', ['-e', '0']).status === 0; // no shell lets a program ignore that
(hasPerl ? it : it.skip)('a front that was started to ignore the end of children hears of its program’s', () => {
  expect(run(['--', 'true']).status).toBe(0);
  const by = ['perl', '-e', '$SIG{CHLD} = "IGNORE"; exec @ARGV'];
  expect(run(['--', 'sh', '-c', 'exit 3'], { by }).status).toBe(3);
});

it('signals that processes send reach the program, and its end by one is the front’s', async () => {
  const script = 'trap "echo got; exit 12" USR1; echo up; while :; do sleep 0.05; done';
  const child = spawn(front, ['run', '--', 'sh', '-c', script], { cwd: project, env: environment() });
  let said = '';
  child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()));
  await until(() => said === 'up\n', 'the program');
  child.kill('SIGUSR1');
  expect(await once(child, 'exit')).toEqual([12, null]);
  expect(said).toBe('up\ngot\n');
  expect(run(['--', 'sh', '-c', 'kill -TERM $$'])).toMatchObject({ status: null, signal: 'SIGTERM' });
});

it('is not to be reached from inside, nor is its socket seen', () => {
  expect(run(['--', 'true']).status).toBe(0);
  const { stdout } = run(['--', 'sh', '-c', `ls -a '${home}/run' /run/nd7; '${front}' run -- true; echo $?`]);
  expect(stdout).not.toMatch(/^host/m);
  expect(stdout).toMatch(/12[67]\n$/);
});

it('is found in a home whose path is longer than a socket’s may be', () => {
  const long = join(user, 'x'.repeat(60), 'y y'.repeat(30));
  mkdirSync(join(long, 'run'), { recursive: true, mode: 0o700 });
  const env = { ND7_HOME: long };
  try {
    expect(run(['--', 'sh', '-c', 'exit 3'], { env }).status).toBe(3);
    const [host] = hosts(long);
    expect(run(['--', 'sh', '-c', 'exit 4'], { env }).status).toBe(4);
    expect(hosts(long)).toEqual([host]);
  } finally {
    for (const pid of hosts(long)) process.kill(pid, 'SIGKILL');
  }
});

it('outlives whoever says something else than a front does', async () => {
  expect(run(['--', 'true']).status).toBe(0);
  const [host] = hosts();
  const frame = (...numbers: number[]): Buffer => {
    const bytes = Buffer.alloc(4 * numbers.length);
    numbers.forEach((value, i) => bytes.writeUInt32LE(value, 4 * i));
    return bytes;
  };
  const hostile = [
    Buffer.alloc(0),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    frame(0xffff_ffff, 1),
    frame(4, 9),
    frame(8, 3, 0),
    Buffer.concat([frame(4 + 20 + 1, 1, 1, 0, 0, 0xffff_ffff, 0), Buffer.from('\0')]),
    Buffer.concat([frame(4 + 20 + 3, 1, 1, 0, 0, 1, 0), Buffer.from('/\0\0')]),
  ];
  // Between two guests a host takes its socket away and lays it anew: for a moment it is there and nobody listens.
  const isHeard = async (bytes: Buffer): Promise<boolean> => {
    await until(() => existsSync(join(home, 'run/host')), 'the host’s socket');
    const [passing, control] = [connect(join(home, 'run/host')), connect(join(home, 'run/host'))];
    for (const socket of [passing, control]) socket.on('error', () => undefined);
    control.resume().end(bytes);
    try {
      await once(control, 'close');
      return true;
    } catch (error) {
      if (!['ECONNREFUSED', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      return false;
    } finally {
      passing.destroy();
    }
  };
  for (const bytes of hostile) while (!(await isHeard(bytes)));
  await until(() => existsSync(join(home, 'run/host')), 'the host’s socket');
  expect(run(['--', 'sh', '-c', 'exit 3']).status).toBe(3);
  expect(hosts()).toEqual([host]);
});

it('keeps the code that sessions run through for the next start, when it ends', async () => {
  const folder = join(import.meta.dirname, '../../dist/bundle');
  rmSync(join(folder, 'run.code'), { force: true });
  expect(run(['--', 'true']).status).toBe(0);
  rmSync(join(home, 'run/host'));
  await until(() => hosts().length === 0, 'the end of the host');
  expect(statSync(join(folder, 'run.code')).size).toBeGreaterThan(100_000);
  expect(run(['--', 'sh', '-c', 'exit 3']).status).toBe(3);
});

it('folders that were made for toolchains stay for the next session, and go with the host', async () => {
  const made = (): string[] => readdirSync(user).filter((name) => !['.nd7', 'project'].includes(name));
  expect(run(['--', 'true']).status).toBe(0);
  const has = ['/usr/local/bin/npm', '/usr/bin/npm', '/bin/npm'].some((path) => existsSync(path));
  expect(made().includes('.npm')).toBe(has);
  rmSync(join(home, 'run/host'));
  await until(() => hosts().length === 0, 'the end of the host');
  expect(made()).toEqual([]);
});

it('what a session has recorded is whole when its front ends', () => {
  expect(run(['--', 'true']).status).toBe(0);
  for (let i = 0; i < 5; i++) {
    const before = new Set(readdirSync(join(home, 'sessions')));
    expect(run(['--', 'sh', '-c', `exit ${i}`]).status).toBe(i);
    const [session = ''] = readdirSync(join(home, 'sessions')).filter((name) => !before.has(name));
    const log = readFileSync(join(home, 'sessions', session, 'log.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');
    const kinds = log.map((line) => (JSON.parse(line) as { kind: string }).kind);
    expect(kinds).toEqual(['session.start', 'enforcement', 'session.end', 'seal']);
  }
});

it('ends where its home is taken away', async () => {
  expect(run(['--', 'true']).status).toBe(0);
  expect(hosts()).toHaveLength(1);
  rmSync(join(home, 'run'), { recursive: true });
  await until(() => hosts().length === 0, 'the end of the host');
});

it('a first session of all, without a home, is the CLI’s', () => {
  const other = join(user, 'other home');
  expect(run(['--', 'sh', '-c', 'exit 3'], { env: { ND7_HOME: other } }).status).toBe(3);
  expect(hosts(other)).toEqual([]);
  writeFileSync(join(project, 'file'), '');
});

it('lets a server inside be reached by a port that the policy names', async () => {
  const spare = createServer().listen(0, '127.0.0.1');
  await once(spare, 'listening');
  const { port } = spare.address() as AddressInfo;
  await new Promise((done) => spare.close(done));
  const policy = { nd7: 1, extends: ['default'], network: { listen: [port] } };
  writeFileSync(join(home, 'policy.jsonc'), JSON.stringify(policy), { mode: 0o600 });
  const server = `require('http').createServer((q, s) => s.end('inside ' + q.url)).listen(${port}, '127.0.0.1', () => console.log('up'))`;
  const child = spawn(front, ['run', '--', process.execPath, '-e', server], { cwd: project, env: environment() });
  await once(child.stdout, 'data');
  expect(hosts()).toHaveLength(1);
  for (const path of ['/a', '/b'])
    expect(await (await fetch(`http://127.0.0.1:${port}${path}`)).text()).toBe(`inside ${path}`);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
});

it('hands hooks from inside on to the recorder, which takes them from the keeper of the door', async () => {
  const payload = JSON.stringify({ session_id: 'inside', hook_event_name: 'SessionStart', source: 'startup' });
  const script = `echo '${payload}' | '${home}/bin/nd7-shim' --home '${home}' --agent claude-code; echo $?`;
  const { stdout, stderr } = run(['--', 'sh', '-c', script]);
  expect([stdout, stderr]).toEqual(['0\n', '']);
  expect(hosts()).toHaveLength(1);
  const entries = readFileSync(join(home, 'sessions/inside/log.jsonl'), 'utf8').trim().split('\n');
  expect(entries.map((line) => (JSON.parse(line) as { kind: string }).kind)).toEqual([
    'session.start',
    'session.confined',
    'session.start',
  ]);
  // The recorder wrote it, not the host in its place.
  expect(entries.join('\n')).not.toContain('"alone":true');
  for (const pid of pids((one) => words(one).at(-1) === 'recorder' && of(one))) process.kill(pid, 'SIGKILL');
});
