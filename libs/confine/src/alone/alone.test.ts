// Tier T3 on the real kernel: Landlock and the call filter alone, as root and as an ordinary user.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import type { BareBuilt } from '../bare/build.js';
import { callFilter } from '../filter/filter.js';
import { buildLaunchers, isAlive, Machine, until, USERS } from '../session.fixture.js';
import { aloneManifest, NOT_OF_T3 } from './manifest.js';
import { compareLeaves, recordLeaves } from './leaves.js';

beforeAll(buildLaunchers, 300_000);

/** Processes below one, by /proc; those that are dead and not yet collected do not count. */
function below(pid: number): number[] {
  const found = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  const parents = new Map(found.map((one) => [one, parentOf(one)]));
  const children = (of: number): number[] =>
    found.flatMap((one) => (parents.get(one) === of ? [one, ...children(one)] : []));
  return children(pid);
}

function parentOf(pid: number): number | undefined {
  try {
    const [, state, parent] = /^.*\) (\S) (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? [];
    return state === 'Z' ? undefined : Number(parent);
  } catch {
    // It has gone meanwhile.
    return undefined;
  }
}

/** The session of processes that one belongs to; undefined where it has gone. */
function sessionOf(pid: number): number | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(/^.*\) \S \d+ \d+ (\d+) /.exec(stat)?.[1]);
}

const tracerOf = (pid: number): number =>
  Number(/^TracerPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

const listening = async (port: number): Promise<{ port: number; close(): void }> => {
  const server = createServer((socket) => socket.end('outside'));
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  return { port: (server.address() as { port: number }).port, close: () => server.close() };
};

describe.each(USERS)('a session of %s in tier T3', (_who, user) => {
  let machine: Machine;
  beforeEach(() => {
    machine = new Machine(user);
    machine.tier = 'T3';
  });
  afterEach(() => machine.close());

  it('writes its project and its own temporary folder, and no file outside', async () => {
    const outside = machine.file('notes/plan');
    const { stdout, proofs } = await machine.run(`
      echo new > made && mv made moved && chmod 700 moved && touch -d @5 moved && rm moved && mkdir -p d/e && rmdir d/e && ln -s x l && rm l && echo ok
      f=$(mktemp) && echo x > $f && cat $f
      for f in ${machine.home}/x ${outside} /usr/x /tmp/nd7-x /x; do echo x > $f && echo WROTE $f; done
      rm ${outside} && echo REMOVED; mv ${outside} . && echo MOVED; ln ${outside} linked && echo LINKED; truncate -s 0 ${outside} && echo CUT
      python3 -c "import os; os.setxattr('${outside}', 'user.x', b'y'); print('ATTRIBUTE')"; true`);
    expect(stdout).toBe('ok\nx\n');
    expect(readFileSync(outside, 'utf8')).toBe('content\n');
    expect(proofs.filter(({ verdict }) => verdict === 'broken')).toEqual([]);
    expect(proofs.filter(({ verdict }) => verdict === 'held').map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        ...['read-hidden', 'write-outside', 'tcp', 'udp', 'signal', 'inspect', 'abstract-socket', 'pathname-socket'],
      ]),
    );
  });

  it.each([5, 3, 2, 1])('cuts nothing short and takes nothing outside with the newest Landlock at %s', async (most) => {
    machine.landlockMost = most;
    const outside = machine.file('notes/plan');
    const { stdout, proofs } = await machine.run(`
      for c in 'truncate -s 0 F' 'cp /dev/null F' 'rm F' 'mv F .' 'ln F l' \\
        'python3 -c "import os; os.truncate(chr(70), 0)"' 'python3 -c "import os; os.open(chr(70), os.O_RDONLY | os.O_TRUNC)"'; do
        sh -c "$(echo "$c" | sed 's#F#${outside}#')" 2>/dev/null && echo "DONE $c"; done
      ln -s ${outside} F; for f in 'os.truncate("F", 0)' 'os.open("F", os.O_RDONLY | os.O_TRUNC)'; do python3 -c "import os; $f" 2>/dev/null && echo "DONE $f"; done
      echo x > made; echo y > made; cat made; rm made`);
    expect(stdout).toBe('y\n');
    expect(readFileSync(outside, 'utf8')).toBe('content\n');
    expect(proofs.filter(({ verdict }) => verdict === 'broken')).toEqual([]);
  });

  it('hides what lies outside of writable folders, also what is made there later, and leaves nothing behind', async () => {
    const key = machine.file('.ssh/id', 'SECRET');
    machine.hide('.ssh');
    const { stdout, stderr } = await machine.run(
      `cat ${key}; cat /proc/self/root${key}; ln -s ${key} l; cat l; ln ${key} h; echo $TMPDIR; touch $TMPDIR/x; cat /proc/1/environ; true > /proc/self/oom_score_adj || echo closed`,
    );
    expect(`${stdout}${stderr}`).not.toContain('SECRET');
    const [folder = '', closed] = stdout.trim().split('\n');
    expect([existsSync(folder), closed]).toEqual([false, 'closed']);
  });

  it('connects to the ports that it was given and that servers get, to no others, and to no unix socket', async () => {
    const servers = await Promise.all([listening(0), listening(20_500 + (process.pid % 500))]);
    const [given, other] = servers.map(({ port }) => port);
    const socket = join(machine.base, 'socket');
    const path = createServer((peer) => peer.end('outside'));
    await new Promise<void>((done) => path.listen(socket, done));
    chmodSync(socket, 0o777);
    machine.file(
      'project/t.py',
      `
import socket, os
def attempt(name, f):
    try: print(name, f())
    except OSError as e: print(name, type(e).__name__)
def to(family, address):
    s = socket.socket(family); s.settimeout(5); s.connect(address); return s.recv(9)
attempt('server port', lambda: to(socket.AF_INET, ('127.0.0.1', ${given})))
attempt('other', lambda: to(socket.AF_INET, ('127.0.0.1', ${other})))
attempt('mapped', lambda: to(socket.AF_INET6, ('::ffff:127.0.0.1', ${other})))
attempt('fast open', lambda: socket.socket().sendto(b'x', socket.MSG_FASTOPEN, ('127.0.0.1', ${other})))
attempt('multipath', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt('unix', lambda: to(socket.AF_UNIX, ${JSON.stringify(socket)}))
attempt('pair', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', ${JSON.stringify(socket)}))
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(5)
if os.fork() == 0:
    s.accept()[0].send(b'own'); os._exit(0)
print(to(socket.AF_INET, s.getsockname()))
a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(9))
import multiprocessing; multiprocessing.Lock(); print('lock')
`,
    );
    const { stdout, stderr } = await machine.run('python3 t.py');
    for (const server of servers) server.close();
    path.close();
    expect(`${stderr}${stdout}`.trim().split('\n')).toEqual([
      "server port b'outside'",
      'other PermissionError',
      'mapped PermissionError',
      'fast open OSError',
      'multipath PermissionError',
      'unix PermissionError',
      'pair PermissionError',
      'udp PermissionError',
      "b'own'",
      "b'pair'",
      'lock',
    ]);
  });

  it('gives new terminals to who makes them, and none of outside, by name or by a race', async () => {
    // Whoever gets the other end of one of these reads what they say.
    const outside = spawn(
      'python3',
      [
        '-c',
        `
import os, sys, time
kept = os.openpty(); os.write(kept[0], b'OUTSIDE\\n'); print(os.ttyname(kept[1]), flush=True)
while os.getppid() == int(sys.argv[1]):
    pairs = [os.openpty() for _ in range(3)]
    for master, _ in pairs: os.write(master, b'OUTSIDE\\n')
    time.sleep(0.004)
    for pair in pairs:
        for fd in pair: os.close(fd)
`,
        String(process.pid),
      ],
      { stdio: ['ignore', 'pipe', 'inherit'], ...user },
    );
    const [kept] = (await once(outside.stdout, 'data')) as [Buffer];
    spawnSync('mkfifo', [join(machine.project, 'fifo')]);
    chmodSync(join(machine.project, 'fifo'), 0o666);
    machine.file(
      'project/t.py',
      `
import fcntl, os, pty, random, threading, time
def attempt(name, f):
    try: print(name, f())
    except OSError as e: print(name, type(e).__name__)
master, slave = os.openpty()
os.write(slave, b'made'); print(os.isatty(slave), os.read(master, 9))
attempt('by name', lambda: os.open(os.ttyname(slave), os.O_RDWR | os.O_NOCTTY))
attempt('outside', lambda: os.open(${JSON.stringify(kept.toString().trim())}, os.O_RDONLY | os.O_NOCTTY))
attempt('no master', lambda: fcntl.ioctl(slave, 0x5441, os.O_RDWR))
attempt('no terminal', lambda: fcntl.ioctl(0, 0x5441, os.O_RDWR))
attempt('input', lambda: fcntl.ioctl(slave, 0x5412, b'x'))
pty.spawn(['sh', '-c', 'test -t 0 && echo spawned'])
print('ready', open('fifo').read().strip())
at, end = 200, time.monotonic() + 3
def exchange():
    while time.monotonic() < end:
        made = os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(made, 0x40045431, b'\\0\\0\\0\\0'); os.dup2(made, at); os.close(made)
        time.sleep(random.random() / 100); os.close(at)
threading.Thread(target=exchange).start()
got = 0
while time.monotonic() < end:
    try:
        peer = fcntl.ioctl(at, 0x5441, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError: continue
    got += 1
    try:
        said = os.read(peer, 99)
        if said: print('REACHED', said)
    except OSError: pass
    os.close(peer)
print('raced', got > 0)
`,
    );
    const script = 'python3 -u t.py; script -qec "echo in a script" /dev/null; tty';
    const session = machine.start(['/bin/sh', '-c', script]);
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      session.process[name]?.on('data', (bytes: Buffer) => (said[name] += bytes.toString()));
    await session.started;
    // Who answers is made slow, so that what threads exchange meanwhile counts.
    const launcher = session.process.pid ?? 0;
    const terminals = below(launcher).findLast((pid) => parentOf(pid) === launcher) ?? 0;
    const slow = ['-qq', '-o', '/dev/null', '-e', 'trace=openat', '-e', 'inject=openat:delay_enter=3000'];
    const tracer = spawn('strace', [...slow, '-p', String(terminals)], { stdio: 'ignore' });
    if (process.geteuid?.() === 0) await until('it is traced', () => tracerOf(terminals) === tracer.pid);
    writeFileSync(join(machine.project, 'fifo'), 'x\n');
    await session.ended;
    session.prepared.clean();
    outside.kill('SIGKILL');
    tracer.kill();
    const { stdout, stderr } = said;
    expect(`${stderr}${stdout}`.trim().split(/\r?\n/)).toEqual([
      "True b'made'",
      'by name PermissionError',
      'outside PermissionError',
      'no master OSError',
      'no terminal OSError',
      'input PermissionError',
      'spawned',
      'ready x',
      'raced True',
      'in a script',
      'not a tty',
    ]);
  });

  it('goes on without terminals where who gives them is killed', async () => {
    const session = machine.start(['/bin/sh', '-c', 'read x < fifo; script -qec true /dev/null || echo none; echo on']);
    spawnSync('mkfifo', [join(machine.project, 'fifo')]);
    chmodSync(join(machine.project, 'fifo'), 0o666);
    let stdout = '';
    session.process.stdout?.on('data', (bytes: Buffer) => (stdout += bytes.toString()));
    await session.started;
    const launcher = session.process.pid ?? 0;
    const [first, terminals] = below(launcher).filter((pid) => parentOf(pid) === launcher);
    expect([first, terminals].map((pid) => sessionOf(pid ?? 0) === pid)).toEqual([false, true]);
    process.kill(terminals ?? 0, 'SIGKILL');
    writeFileSync(join(machine.project, 'fifo'), 'x\n');
    const { code } = await session.ended;
    session.prepared.clean();
    expect([code, stdout]).toEqual([0, 'none\non\n']);
  });

  it('does not start where unix sockets can be made and Landlock does not tell them apart', async () => {
    const filter = callFilter(process.arch === 'x64' ? 'x86_64' : 'aarch64', { scoped: true, alone: 9 });
    machine.landlockMost = 6;
    const { failure } = await machine.run('touch ran', { filter });
    expect([failure?.step, existsSync(join(machine.project, 'ran'))]).toEqual(['self-test', false]);
    expect((await machine.run('touch ran')).code).toBe(0);
  });

  it('has no socket of the internet where Landlock does not tell ports apart', async () => {
    machine.landlockMost = 3;
    const { stdout } = await machine.run(
      'python3 -c "import socket; socket.socket()" 2>&1 | tail -1; python3 -c "import socket; socket.socket(socket.AF_INET6)" 2>&1 | tail -1',
    );
    expect(stdout).toMatch(/^PermissionError.*\nPermissionError.*\n$/);
  });

  it('reaches no process outside, and its own', async () => {
    const victim = spawnSync('sh', ['-c', 'sleep 60 >/dev/null 2>&1 & echo $!'], { encoding: 'utf8', ...user });
    const pid = Number(victim.stdout);
    machine.file(
      'project/t.py',
      `
import os, signal, resource
pid = ${pid}
for name, f in [('kill', lambda: os.kill(pid, 0)), ('priority', lambda: os.setpriority(os.PRIO_PROCESS, pid, 7)), ('user', lambda: os.setpriority(os.PRIO_USER, 0, 7)),
    ('limit', lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (9, 9))), ('affinity', lambda: os.sched_setaffinity(pid, {0})),
    ('environ', lambda: open('/proc/%d/environ' % pid).read()), ('adj', lambda: open('/proc/%d/oom_score_adj' % pid, 'w').write('9'))]:
    try: f(); print('REACHED', name)
    except OSError: pass
child = os.fork()
if child == 0:
    signal.pause()
os.kill(child, 15); print(os.waitpid(child, 0)[1]); print(os.sched_setaffinity(0, os.sched_getaffinity(0))); os.setpriority(os.PRIO_PROCESS, 0, 5)
`,
    );
    const { stdout } = await machine.run('python3 t.py; sleep 9 & kill $!; wait $! ; echo $?');
    process.kill(pid, 'SIGKILL');
    expect(stdout).toBe('15\nNone\n143\n');
  });

  describe.each([undefined, 5])('ends with what holds it, with the newest Landlock at %s', (most) => {
    const script =
      'setsid sh -c "sleep 600 & sleep 600" & (sleep 600 &); setsid -f sleep 600; while :; do sleep 600; done';

    it.each(['launcher', 'first process', 'program', 'front'])('when the %s is killed', async (which) => {
      machine.landlockMost = most;
      const session = machine.start(['/bin/sh', '-c', script]);
      await session.started;
      const launcher = session.process.pid ?? 0;
      const name = (pid: number): string => {
        try {
          return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
        } catch {
          return '';
        }
      };
      await until('all have started', () => below(launcher).filter((pid) => name(pid) === 'sleep').length >= 5);
      const all = below(launcher);
      const first = all.find((pid) => parentOf(pid) === launcher) ?? 0;
      const program = all.find((pid) => parentOf(pid) === first && name(pid) === 'sh') ?? 0;
      if (which === 'front') session.process.stdio[3]?.destroy();
      else process.kill({ launcher, 'first process': first, program }[which] ?? 0, 'SIGKILL');
      await session.ended;
      session.prepared.clean();
      await until('all have gone', () => all.every((pid) => !isAlive(pid) || parentOf(pid) === undefined));
    });
  });

  it('lets protected names be made and changed, and tells what differs afterwards', async () => {
    machine.protect('.envrc');
    machine.protect('.claude');
    machine.protect('AGENTS.md', { treatment: 'record' });
    machine.mask('.env*');
    machine.file('project/.claude/settings.json', '{}');
    machine.file('project/.claude/agents/a.md', 'a');
    machine.file('project/AGENTS.md', 'a');
    const ruleset = machine.ruleset();
    const before = recordLeaves(ruleset);
    const { stdout } = await machine.run(
      'echo \'{"hooks":1}\' > .claude/settings.json && touch .envrc && rm .claude/agents/a.md && ln -s /usr/bin/env .claude/link && echo b > AGENTS.md && echo done',
    );
    const changes = compareLeaves(before, recordLeaves(ruleset));
    expect(stdout).toBe('done\n');
    expect(
      changes.map(({ path, was, is }) => [path.slice(machine.project.length + 1), was?.kind ?? null, is?.kind ?? null]),
    ).toEqual([
      ['.claude/agents/a.md', 'file', null],
      ['.claude/link', null, 'link'],
      ['.claude/link →', null, 'file'],
      ['.claude/settings.json', 'file', 'file'],
      ['.envrc', null, 'file'],
      ['AGENTS.md', 'file', 'file'],
    ]);
  });
});

describe('what protected names held', () => {
  let machine: Machine;
  beforeEach(() => {
    machine = new Machine(undefined);
    machine.protect('.envrc');
    machine.protect('.claude');
    machine.mask('.env');
  });
  afterEach(() => machine.close());

  it('is read no further than it says and waits for nobody: links to files of /proc that have no end, pipes', () => {
    const at = (name: string): string => join(machine.project, name);
    machine.file('project/.claude/a', 'a');
    machine.file('project/.env', 'a');
    const script = `
      import { recordLeaves } from ${JSON.stringify(join(import.meta.dirname, '../../dist/index.js'))};
      const { entries } = recordLeaves(JSON.parse(process.env.RULESET));
      console.log(JSON.stringify([...entries].map(([path, { state }]) => [path, state.sha256 ?? null])));`;
    for (const path of ['.envrc', '.claude/b']) symlinkSync('/proc/self/pagemap', at(path));
    mkfifo(at('.claude/pipe'));
    mkfifo(at('.git'));
    const record = () => {
      const env = { PATH: process.env['PATH'], RULESET: JSON.stringify(machine.ruleset()) };
      const args = ['--max-old-space-size=200', '--input-type=module', '-e', script];
      const limited = ['-c', 'ulimit -t 20; exec "$0" "$@"', process.execPath, ...args];
      const { status, stdout } = spawnSync('sh', limited, { env, encoding: 'utf8', timeout: 30_000 });
      expect(status).toBe(0);
      return new Map(JSON.parse(stdout) as [string, string | null][]);
    };
    const read = record();
    expect(read.get(`${at('.envrc')} →`)).toBeNull();
    expect(read.get(at('.claude/pipe'))).toBeNull();
    expect(read.get(at('.claude/a'))).toMatch(/^[0-9a-f]{64}$/);
    rmSync(at('.git'));
    mkdirSync(at('.git'));
    symlinkSync('/proc/self/pagemap', at('.git/index'));
    expect(record().size).toBe(read.size);
  });

  it.each([
    ['a folder that can be entered and not listed', 'sub', 0o300],
    ['one that can be listed and not entered', 'sub', 0o600],
    ['one that is shut', 'sub', 0],
    ['a protected one', '.claude', 0o600],
    ['one in a folder that can be listed and not entered', 'sub/sub', 0o700],
    ['the project', '.', 0o300],
  ])('does not hide in %s: it is named, and nothing is thrown', (_what, name, mode) => {
    machine.file('project/.claude/a', 'a');
    machine.file('project/sub/sub/b', 'a');
    const folder = join(machine.project, name);
    const ruleset = machine.ruleset();
    const before = asNobody(machine, () => recordLeaves(ruleset));
    expect([...before.closed]).toEqual([]);
    machine.file(`project/${name}/.envrc`, 'evil');
    const shut = name === 'sub/sub' ? dirname(folder) : folder;
    const after = asNobody(machine, () => {
      chmodSync(shut, name === 'sub/sub' ? 0o600 : mode);
      return recordLeaves(ruleset);
    });
    chmodSync(shut, 0o700);
    const told = [...after.closed, ...compareLeaves(before, after).map(({ path }) => path)];
    expect(told.some((path) => path.startsWith(folder))).toBe(true);
  });
});

function mkfifo(path: string): void {
  expect(spawnSync('mkfifo', [path]).status).toBe(0);
}

/** What root may look at is no matter of modes. */
function asNobody<T>(machine: Machine, act: () => T): T {
  if (process.geteuid?.() !== 0) return act();
  expect(spawnSync('chown', ['-R', '65534', machine.base]).status).toBe(0);
  process.seteuid?.(65_534);
  try {
    return act();
  } finally {
    process.seteuid?.(0);
  }
}

describe('the manifest of tier T3', () => {
  const rowsAt = (landlock: number) => {
    const machine = new Machine(undefined);
    machine.tier = 'T3';
    const { built, clean } = machine.prepare(['true']);
    clean();
    const rows = aloneManifest(machine.ruleset(), built as BareBuilt, [], landlock, true);
    machine.close();
    return new Map(rows.map(({ property, status, limit }) => [property as string, { status, limit }]));
  };

  // What changes from one version to the next is said; what is the same in all of them stands once.
  it.each<[number, string[], RegExp | undefined]>([
    [1, ['none', 'partial', 'full', 'full'], /cut short is the call filter/],
    [2, ['none', 'partial', 'full', 'full'], /cut short is the call filter/],
    [3, ['none', 'partial', 'full', 'full'], undefined],
    [4, ['none', 'partial', 'partial', 'none'], undefined],
    [5, ['none', 'partial', 'partial', 'none'], undefined],
    ...[6, 7, 8, 9, 10].map((version): [number, string[], undefined] => [
      version,
      ['full', 'full', 'partial', 'none'],
      undefined,
    ]),
  ])('with Landlock %s', (landlock, statuses, cut) => {
    const rows = rowsAt(landlock);
    const names = ['processes.signal', 'processes.end', 'network.proxy', 'network.loopback'];
    expect(names.map((name) => rows.get(name)?.status)).toEqual(statuses);
    expect(rows.get('files.write')?.limit ?? '').toMatch(cut ?? /^$/);
    expect(rows.get('sockets.pathname')?.limit ?? '').toMatch(landlock >= 9 ? /^$/ : /servers inside have none/);
    for (const name of ['files.leaves', 'files.metadata', 'observe.exec']) expect(rows.get(name)?.status).toBe('none');
    for (const [, { status, limit }] of rows) if (status !== 'full') expect(limit).toBeTruthy();
  });

  it('says of hidden files in writable folders that they can be read, and who takes the tier does without what it never gives', () => {
    const machine = new Machine(undefined);
    machine.tier = 'T3';
    machine.file('project/state/credentials', 'SECRET');
    machine.hide('project/state/credentials');
    const { built, clean } = machine.prepare(['true']);
    clean();
    const row = aloneManifest(machine.ruleset(), built as BareBuilt, [], 7, true).find(
      (one) => one.property === 'files.read',
    );
    expect(row).toMatchObject({ status: 'partial', limit: expect.stringContaining('state/credentials') as string });
    expect(NOT_OF_T3).toEqual(expect.arrayContaining(['files.leaves', 'network.proxy', 'files.metadata']));
    expect(NOT_OF_T3).not.toContain('files.read');
    machine.close();
  });
});
