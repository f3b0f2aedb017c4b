// Tier T2 on the real kernel: no namespace and no mount, as root and as an ordinary user.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { bareManifest } from './manifest.js';
import type { BareBuilt } from './build.js';
import { buildLaunchers, isAlive, Machine, until, USERS } from '../session.fixture.js';

beforeAll(buildLaunchers, 300_000);

/** Processes below one, by /proc; those that are dead and not yet collected do not count. */
function below(pid: number): number[] {
  const facts = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const [, state = '', parent = ''] = /^.*\) (\S) (\d+) /.exec(readFileSync(`/proc/${name}/stat`, 'latin1')) ?? [];
      if (state !== 'Z') facts.set(Number(name), Number(parent));
    } catch {
      // It has gone meanwhile.
    }
  }
  const children = (of: number): number[] =>
    [...facts].flatMap(([one, parent]) => (parent === of ? [one, ...children(one)] : []));
  return children(pid);
}

/** What they are called; those that have gone meanwhile are called nothing. */
const nameOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
};
const namesOf = (pids: readonly number[]): string[] => pids.map(nameOf);

describe.each(USERS)('a session of %s in tier T2', (_who, user) => {
  let machine: Machine;
  beforeEach(() => {
    machine = new Machine(user);
    machine.tier = 'T2';
  });
  afterEach(() => machine.close());

  it('writes its project and its own temporary folder, and changes nothing else', async () => {
    const outside = machine.file('notes/plan');
    const { stdout, stderr, proofs } = await machine.run(`
      echo new > made && mv made moved && chmod 700 moved && touch -d @5 moved && rm moved && mkdir -p d/e && rmdir d/e && ln -s x l && rm l && echo ok
      f=$(mktemp) && echo x > $f && cat $f
      for f in ${machine.home}/x ${outside} /usr/x /tmp/nd7-x /x; do echo x > $f && echo WROTE $f; done
      chmod 777 ${outside} && echo MODE; touch -d @1 ${outside} && echo TIME; rm ${outside} && echo REMOVED; mv ${outside} . && echo MOVED
      ln ${outside} linked && echo LINKED; chown $(id -u) ${outside} && echo OWNER; truncate -s 0 ${outside} && echo CUT; true`);
    expect(stdout).toBe('ok\nx\n');
    expect(stderr.trim().split('\n').length).toBeGreaterThanOrEqual(12);
    expect(readFileSync(outside, 'utf8')).toBe('content\n');
    expect(proofs.filter(({ verdict }) => verdict === 'broken')).toEqual([]);
    expect(proofs.filter(({ verdict }) => verdict === 'held').map(({ name }) => name)).toEqual(
      expect.arrayContaining(['read-hidden', 'mode-outside', 'tcp', 'udp', 'signal', 'inspect', 'late-name']),
    );
  });

  it.each([5, 3, 2, 1])('changes nothing outside with the newest Landlock at %s either', async (most) => {
    machine.landlockMost = most;
    const outside = machine.file('notes/plan');
    const { stdout } = await machine.run(`
      for c in 'truncate -s 0 F' 'dd if=/dev/null of=F' 'chmod 777 F' 'rm F' 'mv F .' 'ln F l' 'touch -d @1 F' 'cp /dev/null F' \\
        'python3 -c "import os; os.truncate(chr(70), 0)"'; do (cd ${machine.home}/notes; ln -s plan F; cd ${machine.project}; ln -sfn ${outside} F; sh -c "$(echo "$c" | sed 's#F#${outside}#')") 2>/dev/null && echo "DONE $c"; done
      python3 -c "import os; os.truncate('F', 0)" 2>/dev/null && echo DONE; echo x > made; truncate -s 0 made && rm made && echo ok`);
    expect(stdout).toBe('ok\n');
    expect([readFileSync(outside, 'utf8'), statSync(outside).mode & 0o777]).toEqual(['content\n', 0o644]);
  });

  it('leaves nothing of its own folders behind', async () => {
    const { stdout } = await machine.run(
      "echo $TMPDIR; touch $TMPDIR/x; python3 -c \"open('/dev/shm/nd7-shared', 'w')\"",
    );
    expect(existsSync(stdout.trim())).toBe(false);
    expect(existsSync('/dev/shm/nd7-shared')).toBe(false);
    expect(readdirSync('/dev/shm').filter((name) => name.startsWith(`nd7-${process.pid}-`))).toEqual([]);
  });

  it('hides what lies outside of writable folders by the floor, and what is made there later as well', async () => {
    const key = machine.file('.ssh/id', 'SECRET');
    machine.file('seen', 'seen');
    machine.hide('.ssh');
    const { stdout, stderr } = await machine.run(
      `cat ${machine.home}/seen ${key}; cat /proc/self/root${key}; ln -s ${key} l; cat l; ln ${key} h; ls ${machine.home}`,
    );
    expect(stdout).toMatch(/^seen/);
    expect(`${stdout}${stderr}`).not.toContain('SECRET');
  });

  it('hides what lies in a writable folder by opening for the program whatever it reads', async () => {
    const key = machine.file('project/state/credentials', 'SECRET');
    machine.file('project/state/deep/file', 'seen');
    machine.file('project/kept/file', 'kept');
    machine.hide('project/state/credentials');
    machine.show('project/kept', { write: false });
    const { stdout, stderr } = await machine.run(`
      cat state/credentials; cat /proc/self/cwd/state/credentials; cp state/credentials c; ln state/credentials h; mv state/credentials m
      mv state s2; cat s2/credentials; rm state/credentials; echo x > state/credentials; chmod 777 state/credentials; ln -s state/credentials l; cat l; true > l
      python3 -c "import os; print(os.open('state', os.O_RDONLY | os.O_DIRECTORY) > 2)"
      cat state/deep/file; echo; cat < state/deep/file; echo; head -c 5 /proc/self/status; echo; echo x > kept/file; rm kept/file; touch kept/new; mv kept k2; cat kept/file
      mkfifo p; (echo piped > p &) ; cat p; cat /proc/self/comm; printf '#!/bin/sh\\necho runs' > r; chmod +x r; ./r; for i in 1 2; do echo line; done | while read x; do echo $x; done`);
    expect(stdout).toBe('True\nseen\nseen\nName:\nkeptpiped\ncat\nruns\nline\nline\n');
    expect(stderr).not.toContain('SECRET');
    expect(readFileSync(key, 'utf8')).toBe('SECRET');
    expect(statSync(key).mode & 0o777).toBe(0o644);
  });

  it('has /proc as the kernel would show it to the program, not to its supervisor', async () => {
    machine.file('project/hidden', 'SECRET');
    machine.hide('project/hidden');
    const { stdout } = await machine.run(`
      echo $$; cat /proc/self/stat | cut -d' ' -f1; grep -zc ^HOME= /proc/self/environ
      p=$(cut -d' ' -f4 /proc/$$/stat); q=$(cat /proc/$p/stat 2>/dev/null); for f in environ maps mem fd/4 root/etc/passwd; do cat /proc/$p/$f && echo READ $f; done 2>/dev/null
      for d in /proc/[0-9]*; do cat $d/environ 2>/dev/null | grep -q . && echo $d; done | wc -l; true > /proc/$p/oom_score_adj || echo closed`);
    const [shell, reader, home, seen, closed, ...more] = stdout.trim().split('\n');
    expect(Number(reader)).toBeGreaterThan(Number(shell));
    // Of all processes of this machine only its own: the shell, and the reader itself.
    expect([home, Number(seen) <= 3, closed, more]).toEqual(['1', true, 'closed', []]);
  });

  it('makes no protected name by any way, and takes none away', async () => {
    machine.protect('.envrc');
    machine.protect('.claude');
    machine.file('project/.claude/settings.json', '{}');
    machine.file('project/hooks/x', 'x');
    const { stdout } = await machine.run(`
      for c in 'touch .envrc' 'mkdir .envrc' 'ln -s x .envrc' 'ln hooks/x .envrc' 'mv hooks/x .envrc' 'mkfifo .envrc' 'rm -r .claude' 'mv .claude c' \\
        'rm .claude/settings.json' 'chmod 777 .claude' 'chmod 777 .claude/settings.json' 'touch -d @1 .claude/settings.json' 'truncate -s 0 .claude/settings.json' \\
        'ln .claude/settings.json l' 'python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(chr(46)+chr(101)+chr(110)+chr(118)+chr(114)+chr(99))"'; do
        sh -c "$c" 2>/dev/null && echo "DONE $c"; done; true`);
    expect(stdout).toBe('');
    expect(readFileSync(join(machine.project, '.claude/settings.json'), 'utf8')).toBe('{}');
    expect(existsSync(join(machine.project, '.envrc'))).toBe(false);
  });

  it('reads a masked file in the project only where patterns are not strict, and says so', async () => {
    machine.file('project/.env', 'SECRET');
    machine.file('other/.env', 'SECRET');
    machine.file('other/file', 'file');
    machine.mask('**/.env', { under: [machine.home] });
    const script = `cat ${machine.home}/other/.env ${machine.home}/other/file .env 2>/dev/null; true`;
    const rowOf = (): unknown => {
      const { built, clean } = machine.prepare(['true']);
      clean();
      return bareManifest(machine.ruleset(), built as BareBuilt, [], 7).find((one) => one.property === 'files.masks');
    };
    expect((await machine.run(script)).stdout).toBe('fileSECRET');
    expect(rowOf()).toMatchObject({ status: 'partial', limit: expect.stringContaining('project/.env') as string });
    machine.patterns = 'strict';
    expect((await machine.run(script)).stdout).toBe('file');
    expect(rowOf()).toMatchObject({ status: 'full', limit: undefined });
  });

  it('connects to its own servers and sockets, to no others, and listens on the loopback alone', async () => {
    const foreign = createServer((socket) => socket.end('foreign'));
    const socket = join(machine.base, 'socket');
    const path = createServer((peer) => peer.end('foreign'));
    await new Promise<void>((done) => foreign.listen(0, '127.0.0.1', done));
    await new Promise<void>((done) => path.listen(socket, done));
    chmodSync(socket, 0o777);
    const { port } = foreign.address() as { port: number };
    const program = `
import socket, os
def attempt(name, f):
    try: print(name, f())
    except OSError as e: print(name, type(e).__name__)
def to(family, address):
    s = socket.socket(family); s.settimeout(5); s.connect(address); return s.recv(9)
attempt('tcp', lambda: to(socket.AF_INET, ('127.0.0.1', ${port})))
attempt('mapped', lambda: to(socket.AF_INET6, ('::ffff:127.0.0.1', ${port})))
attempt('any', lambda: to(socket.AF_INET, ('0.0.0.0', ${port})))
attempt('unix', lambda: to(socket.AF_UNIX, ${JSON.stringify(socket)}))
attempt('pair', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', ${JSON.stringify(socket)}))
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
for everywhere in [(socket.AF_INET, ''), (socket.AF_INET6, '::'), (socket.AF_INET, None)]:
    s = socket.socket(everywhere[0])
    if everywhere[1] is not None: s.bind((everywhere[1], 0))
    s.listen(5)
    if os.fork() == 0:
        s.accept()[0].send(b'own'); os._exit(0)
    print(s.getsockname()[0], to(socket.AF_INET, ('127.0.0.1', s.getsockname()[1])))
u = socket.socket(socket.AF_UNIX); u.bind('own'); u.listen(5)
if os.fork() == 0:
    u.accept()[0].send(b'own'); os._exit(0)
print(to(socket.AF_UNIX, os.getcwd() + '/own'))
attempt('abstract', lambda: socket.socket(socket.AF_UNIX).bind('\\0x'))
`;
    machine.file('project/t.py', program);
    const { stdout, stderr } = await machine.run('python3 t.py');
    foreign.close();
    path.close();
    expect(`${stderr}${stdout}`.trim().split('\n')).toEqual([
      'tcp ConnectionRefusedError',
      'mapped ConnectionRefusedError',
      'any ConnectionRefusedError',
      'unix PermissionError',
      'pair PermissionError',
      'udp PermissionError',
      "127.0.0.1 b'own'",
      "::ffff:127.0.0.1 b'own'",
      "127.0.0.1 b'own'",
      "b'own'",
      'abstract PermissionError',
    ]);
  });

  it.each([undefined, 5, 3, 2, 1])('reaches no process outside, with the newest Landlock at %s', async (most) => {
    machine.landlockMost = most;
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
    const { stdout, proofs } = await machine.run('python3 t.py; sleep 9 & kill $!; wait $! ; echo $?');
    process.kill(pid, 'SIGKILL');
    expect(stdout).toBe('15\nNone\n143\n');
    expect(proofs.filter(({ verdict }) => verdict === 'broken')).toEqual([]);
  });

  describe.each([undefined, 5])('ends with what holds it, with the newest Landlock at %s', (most) => {
    const script =
      'setsid sh -c "sleep 600 & sleep 600" & (sleep 600 &); setsid -f sleep 600; while :; do sleep 600; done';

    it.each(['launcher', 'supervisor', 'first process', 'program', 'front'])('when the %s is killed', async (which) => {
      machine.landlockMost = most;
      const session = machine.start(['/bin/sh', '-c', script]);
      await session.started;
      const launcher = session.process.pid ?? 0;
      await until('all have started', () => namesOf(below(launcher)).filter((name) => name === 'sleep').length >= 5);
      const all = below(launcher);
      const child = (pid: number, name: string): number => below(pid).find((one) => nameOf(one) === name) ?? 0;
      const supervisor = child(launcher, 'nd7-launch');
      const first = child(supervisor, 'nd7-launch');
      // Who holds a session stands above it: systems with YAMA let nobody else look.
      expect(below(first).length).toBe(all.length - 2);
      const targets: Record<string, number> = {
        launcher,
        supervisor,
        'first process': first,
        program: child(first, 'sh'),
      };
      if (which === 'front') session.process.stdio[3]?.destroy();
      else process.kill(targets[which] ?? 0, 'SIGKILL');
      await session.ended;
      session.prepared.clean();
      await until('all have gone', () => all.every((pid) => !isAlive(pid) || /\) [ZX] /.test(stateOf(pid))));
    });
  });

  // The measure that keeps it from taking the machine along does not hold for root. Shells spell it in two ways, and without it nothing
  // begins. Root tries it as an ordinary user.
  const LIMIT = '{ ulimit -u 300 || ulimit -p 300; } 2>/dev/null || exit 9';
  const isRoot = user === undefined && process.geteuid?.() === 0;
  if (!isRoot)
    it('outlives no fork bomb', async () => {
      const session = machine.start(['/bin/sh', '-c', `${LIMIT}; b() { b | b & }; b; sleep 1; exit 3`]);
      await session.started;
      expect(await session.ended).toMatchObject({ code: 3 });
      session.prepared.clean();
      await until('nothing of it is left', () => below(process.pid).every((pid) => !namesOf([pid]).includes('sh')));
    });

  it('uses the terminals that it makes itself, and no others', async () => {
    const { stdout } = await machine.run(
      `script -qec 'tty; echo typed' /dev/null; for t in /dev/pts/[0-9]*; do (: < $t) 2>/dev/null && echo READ; (: > $t) 2>/dev/null && echo WROTE; done; true`,
    );
    expect(stdout.replaceAll('\r', '')).toMatch(/^\/dev\/pts\/\d+\ntyped\n$/);
  });
});

function stateOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return ') X ';
  }
}

describe('the manifest of tier T2', () => {
  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])('says what version %s of Landlock takes from it', (abi) => {
    const machine = new Machine(undefined);
    machine.tier = 'T2';
    const { built, clean } = machine.prepare(['true']);
    clean();
    const rows = new Map(
      bareManifest(machine.ruleset(), built as BareBuilt, [], abi).map((row) => [row.property, row]),
    );
    machine.close();
    const older = [...rows.values()]
      .filter(({ limit }) => /Landlock before/.test(limit ?? ''))
      .map((row) => row.property);
    expect(older).toEqual(
      [
        ['files.write', 3],
        ['network.proxy', 4],
        ['processes.signal', 6],
        ['processes.end', 6],
      ].flatMap(([name, needs]) => (abi < Number(needs) ? [name] : [])),
    );
    expect(rows.get('processes.end')?.status).toBe(abi < 6 ? 'partial' : 'full');
  });

  it('has a rule for each neighbour of what is hidden, and no more', () => {
    const machine = new Machine(undefined);
    machine.tier = 'T2';
    mkdirSync(join(machine.home, '.ssh'));
    machine.hide('.ssh');
    const count = (): number => {
      const { plan, clean } = machine.prepare(['true']);
      clean();
      return plan.rules.length;
    };
    const before = count();
    for (let i = 0; i < 300; i++) writeFileSync(join(machine.home, `entry-${i}`), '');
    const after = count();
    machine.close();
    expect(after - before).toBe(300);
  });
});
