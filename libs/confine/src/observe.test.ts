// Names that do not exist when a session starts, made inside the real boundary on the real kernel; and that everything else goes on as without a supervisor.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Question } from './observe.js';
import { buildLaunchers, isAlive, Machine, until, USERS } from './session.fixture.js';

const BUILT = join(import.meta.dirname, '../../../native/launch/build');

beforeAll(buildLaunchers, 120_000);

/** A program of native/observe/test, where the machine's user can run it. */
function program(machine: Machine, name: string): string {
  const path = join(machine.home, name);
  copyFileSync(join(BUILT, name), path);
  chmodSync(path, 0o755);
  return path;
}

/** The words of /proc/PID/stat that follow the name: the state is the first, times in user and in system are the twelfth and thirteenth. */
function statOf(pid: string): string[] {
  return (readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1) as string).split(' ');
}

function protectedMachine(user: { uid: number; gid: number } | undefined, build?: 'nd7-launch-sanitized'): Machine {
  const machine = new Machine(user, build);
  machine.protect('.claude');
  machine.protect('.envrc');
  machine.protect('.github/hooks');
  machine.protect('hooks', { at: 'git-dir' });
  machine.protect('config', { at: 'git-dir', treatment: 'mediate', mediator: 'git-config' });
  machine.protect('AGENTS.md', { treatment: 'record' });
  machine.mask('**/.env*', { exceptTracked: false });
  return machine;
}

describe.each(USERS)('a session of %s', (_who, user) => {
  let machine: Machine;
  beforeEach(() => {
    machine = protectedMachine(user);
  });
  afterEach(() => machine.close());

  it('makes no protected name, by any call and by any way to it', async () => {
    machine.file('project/plain/file');
    const out = machine.project;
    symlinkSync('.envrc', join(machine.project, 'dangling'));
    const { stdout, stderr } = await machine.run(`
      mkdir .claude; mkdir -p .claude/commands; echo x > .envrc; echo x > plain/.envrc; echo x > .ENVRC; echo x > '.envrc.'; ln -s plain .claude; ln plain/file .envrc
      mkfifo .envrc; mknod .envrc p; mv plain/file .envrc; cp plain/file .envrc; echo x > dangling; echo x > plain/../.envrc; echo x > ${out}/.envrc
      echo x > /proc/self/root${out}/.envrc; echo x > /proc/self/cwd/.envrc; exec 9< plain; echo x > /proc/self/fd/9/.envrc; echo x > /dev/fd/9/../.envrc
      mkdir d && mv d .claude; mv plain .claude; mv -T d .github; ln -s d .github; mkdir .github/hooks; mkdir -p w/hooks && mv w .github
      dd if=/dev/null of=.envrc 2>&1; tar cf t.tar -C plain file --transform 's/file/.envrc/' && tar xf t.tar
      truncate -s 3 .envrc; touch .envrc; install -m 644 t.tar .envrc; ls -A; ls -A plain .github`);
    expect(stdout).not.toMatch(/^\.(claude|envrc|ENVRC)/m);
    for (const name of readdirSync(machine.project, { recursive: true }) as string[])
      expect(name).not.toMatch(/\.envrc|\.claude|\.github\/hooks/i);
    expect(stderr.match(/Permission denied/g)?.length).toBeGreaterThan(20);
    expect(stderr).not.toContain('ENOSYS');
    expect(machine.heard.filter(({ verdict }) => verdict === 'refused').length).toBeGreaterThan(20);
    expect(machine.heard.map(({ path }) => path)).toContain(join(machine.project, '.envrc'));
  });

  it('names a file that had no name only where it may', async () => {
    const script = `
      import ctypes, os
      libc = ctypes.CDLL(None, use_errno=True)
      fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600)
      for to in ['.envrc', 'fine']:
        print(to, libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, to.encode(), 0x400), ctypes.get_errno())`;
    machine.file('project/t.py', script.replaceAll('\n      ', '\n').trim());
    expect((await machine.run('python3 t.py')).stdout).toBe('.envrc -1 13\nfine 0 13\n');
  });

  it('makes no folder a git directory that holds hooks, and none with hooks one by its name', async () => {
    const { stdout } = await machine.run(`
      mkdir -p bare/hooks bare/objects bare/refs && echo x > bare/hooks/post-checkout; echo ref: refs/heads/main > bare/HEAD; echo x > h; mv h bare/HEAD; ln h bare/HEAD
      mkdir -p sub/x/hooks && echo x > sub/x/hooks/pre-commit && mv sub/x sub/.git; ls bare; ls -A sub`);
    expect(stdout).toBe('hooks\nobjects\nrefs\nx\n');
  });

  it('holds while threads exchange what the names mean', async () => {
    const race = program(machine, 'race');
    const { stdout, code } = await machine.run(`mkdir r && cd r && timeout 60 ${race} 2000 .envrc`);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^held: [1-9]\d* made, [1-9]\d* refused/)]);
  });

  it('masks what is made under a masked name before the call returns', async () => {
    const { stdout, stderr } = await machine.run(
      `echo SECRET > .env; cat .env; echo SECRET > a; mv a .env.local; cat .env.local; ln a .env2; echo more >> .env; mkdir s; echo SECRET > s/.env; cp s/.env copy; grep -r SECRET .; ls -A`,
    );
    expect(stdout).toBe('.env\n.env.local\ns\n');
    expect(stderr.match(/Permission denied/g)?.length).toBeGreaterThanOrEqual(5);
    expect(readFileSync(join(machine.project, '.env'), 'utf8')).toBe('SECRET\n');
    expect(machine.heard.map(({ verdict, path }) => [verdict, path])).toContainEqual([
      'masked',
      join(machine.project, '.env'),
    ]);
  });

  it('asks its front about mediated files, and writes what was judged and nothing else', async () => {
    execFileSync('git', ['init', '-q', machine.project]);
    const config = join(machine.project, '.git/config');
    const asked: Question[] = [];
    machine.judge = (question) => {
      asked.push(question);
      const after = Buffer.from(question.after).toString();
      if (/hookspath/i.test(after)) return Promise.resolve({ allow: false });
      return Promise.resolve({ allow: true, ...(after.includes('held') ? { content: Buffer.from('[user]\n') } : {}) });
    };
    const { stdout, stderr } = await machine.run(`
      git config user.name me && git config user.name; git config core.hooksPath /x || echo refused; echo x >> .git/config; echo x > .git/config; truncate -s 0 .git/config
      mv .git/config c; ln .git/config c; ln -sf c .git/config; exec 9<> lock; echo '[user]' >&9; echo '	name = you' >&9; mv lock .git/config; echo evil >&9; git config user.name
      GIT_TEMPLATE_DIR= git init -q sub && ls sub/.git`);
    expect(stdout).toMatch(/^me\nrefused\nyou\n/);
    expect(stdout).toContain('config');
    expect(readFileSync(config, 'utf8')).not.toMatch(/evil|hookspath/i);
    expect(stderr.match(/Permission denied|could not/g)?.length).toBeGreaterThanOrEqual(5);
    expect(asked[0]).toMatchObject({ call: 'rename', path: config, program: 'git', rule: { kind: 'leaf', index: 4 } });
    expect(Buffer.from(asked[0]?.before ?? []).toString()).toContain('[core]');
    await machine.run('git config user.name held');
    expect(readFileSync(config, 'utf8')).toBe('[user]\n');
  });

  it('lets git, archives and builds do their work', async () => {
    machine.judge = () => Promise.resolve({ allow: true });
    const { stdout, stderr, code } = await machine.run(
      `export GIT_TEMPLATE_DIR= GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e; set -e
      git init -q -b main; mkdir -p src/a/b; for i in 1 2 3; do echo $i > src/a/b/$i; done; git add .; git commit -qm one; git checkout -q -b side; echo x > side; git add .; git commit -qm two
      git checkout -q main; echo y > other; git add .; git commit -qm three; git checkout -q side; git rebase -q main; git clone -q . clone; git -C clone log --oneline | wc -l
      git stash -q 2>/dev/null || true; git gc -q; git remote add origin ./clone; tar cf t.tar src; mkdir x; tar xf t.tar -C x; umask 077; mkdir private; : > private/f; stat -c %a private private/f
      mkfifo p; (echo through > p &) ; cat p; echo to-null > /dev/null; echo AGENTS > AGENTS.md; ( set -C; echo x > t.tar ) 2>/dev/null || echo noclobber; git status --short | wc -l`,
    );
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toBe('3\n700\n600\nthrough\nnoclobber\n5\n');
    expect(machine.heard.map(({ verdict, path }) => [verdict, path])).toEqual([
      ['refused', join(machine.project, '.nd7~self-test')],
      ['recorded', join(machine.project, 'AGENTS.md')],
    ]);
  });

  it('answers eight processes that make ten thousand files', async () => {
    const many = program(machine, 'many');
    const { stdout, code } = await machine.run(`${many} 8 1250`);
    expect([code, stdout]).toEqual([0, '1250 of 1250 were made by one alone\n']);
    expect(readdirSync(join(machine.project, 'many-7'))).toHaveLength(1250);
  });

  it.each([4, 23, 104])('gives every call the answer that the kernel gives, seed %i', async (seed) => {
    const said: string[] = [];
    for (const isObserved of [false, true]) {
      const twin = protectedMachine(user);
      twin.isObserved = isObserved;
      mkdirSync(join(twin.project, 'w'));
      try {
        const { stdout, stderr, code } = await twin.run(`cd w && timeout 60 ${program(twin, 'same')} ${seed} 3000`);
        said.push(`${stdout.replaceAll(twin.base.slice(-6), 'BASE')}${stderr}${code}`);
      } finally {
        twin.close();
      }
    }
    expect(said[0]?.split('\n').length).toBeGreaterThan(2000);
    expect(said[1]?.split('\n')).toEqual(said[0]?.split('\n'));
  });

  it('gives nothing that the program has not: devices, memory of its first process, what its streams are', async () => {
    const outside = machine.file('outside', 'untouched\n');
    const { stdout } = await machine.run(`
      mknod dev b 7 0; mknod dev c 1 3; for f in /proc/1/mem /proc/1/environ /proc/1/root/etc/passwd /proc/sysrq-trigger /dev/mem ${outside}; do echo x > $f && echo WROTE $f; done
      exec 9< ${outside}; echo x > /proc/self/fd/9 && echo WROTE; echo x > /dev/fd/9 && echo WROTE; truncate -s 0 /proc/self/fd/9 && echo WROTE; echo x > /dev/tty && echo TTY; true`);
    expect(stdout).toBe('');
    expect(readFileSync(outside, 'utf8')).toBe('untouched\n');
    expect(existsSync(join(machine.project, 'dev'))).toBe(false);
  });

  it('lets a program be run that was written a moment ago', async () => {
    const { stdout } = await machine.run(
      `(while :; do : > busy; done) & for i in $(seq 200); do cp /bin/true t$i && ./t$i || echo not $i; rm t$i; done 2>&1; echo all; kill $!`,
    );
    expect(stdout).toBe('all\n');
  });

  it('ends with its supervisor, and answers nothing more', async () => {
    const session = machine.start(['/bin/sh', '-c', 'echo up; while :; do echo x > file || echo unanswered; done']);
    let said = '';
    session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await until('the session is up', () => said.includes('up'));
    const launcher = String(session.process.pid);
    const [supervisor, init] = readFileSync(`/proc/${launcher}/task/${launcher}/children`, 'utf8')
      .split(' ')
      .map(Number);
    const status = readFileSync(`/proc/${supervisor}/status`, 'utf8');
    // Of its own session, and without a capability in effect.
    expect(status).toMatch(/^CapEff:\t0{16}$/m);
    expect(readFileSync(`/proc/${supervisor}/stat`, 'latin1').split(') ')[1]?.split(' ')[3]).toBe(String(supervisor));
    process.kill(supervisor as number, 'SIGKILL');
    expect(await session.ended).toMatchObject({ code: 125, failure: { step: 'observe' } });
    expect(isAlive(init as number)).toBe(false);
    session.prepared.clean();
  });

  it('takes no processor once nobody is left who could ask', async () => {
    const session = machine.start(['/bin/sh', '-c', 'echo up; while [ ! -e go ]; do sleep 0.05; done']);
    let said = '';
    session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await until('the session is up', () => said.includes('up'));
    const launcher = session.process.pid as number;
    const children = readFileSync(`/proc/${launcher}/task/${launcher}/children`, 'utf8').trim().split(' ');
    const isEnded = (pid: string): boolean => statOf(pid)[0] === 'Z';
    // Who would end the supervisor stands still.
    process.kill(launcher, 'SIGSTOP');
    try {
      mkdirSync(join(machine.project, 'go'));
      await until('all inside has ended', () => children.some(isEnded));
      const supervisor = children.find((pid) => !isEnded(pid)) as string;
      const ticks = (): number => Number(statOf(supervisor)[11]) + Number(statOf(supervisor)[12]);
      const before = ticks();
      await new Promise((done) => setTimeout(done, 400));
      expect(ticks() - before).toBeLessThan(5);
    } finally {
      process.kill(launcher, 'SIGCONT');
    }
    expect(await session.ended).toMatchObject({ code: 0 });
    session.prepared.clean();
  });

  // Nobody but root looks into the supervisor.
  (process.geteuid?.() === 0 ? it : it.skip)(
    'keeps no descriptor and no thread of what it answered [root]',
    async () => {
      const [same, many] = ['same', 'many'].map((name) => program(machine, name));
      const script = `
      echo up; while [ ! -e go ]; do sleep 0.05; done; mkdir a; (cd a; timeout 60 ${same} 500 2000 > ../said); ${many} 8 100
      for i in 1 2 3 4 5 6 7 8; do (timeout -s KILL 0.0$i ${many} 4 500; rm -rf many-* all-*) 2> /dev/null; done
      mkfifo p; for i in 1 2 3; do timeout -s INT 0.1 sh -c 'echo x > p'; done; echo done; while [ ! -e stop ]; do sleep 0.05; done`;
      const session = machine.start(['/bin/sh', '-c', script]);
      let said = '';
      session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
      await until('the session is up', () => said.includes('up'));
      const launcher = String(session.process.pid);
      const supervisor = readFileSync(`/proc/${launcher}/task/${launcher}/children`, 'utf8').split(' ')[0];
      // Whose umask is known is held by a pidfd, of 64 threads at most for each of its own.
      const held = (): string[] => [
        ...readdirSync(`/proc/${supervisor}/fd`)
          .map((fd) => readlinkSync(`/proc/${supervisor}/fd/${fd}`))
          .filter((target) => !target.includes('pidfd'))
          .sort(),
        ...readdirSync(`/proc/${supervisor}/task`),
      ];
      const before = held();
      mkdirSync(join(machine.project, 'go'));
      await until('the storm is over', () => said.includes('done'), 120_000);
      await until('all is let go', () => held().length <= before.length);
      expect(held()).toEqual(before);
      mkdirSync(join(machine.project, 'stop'));
      expect(await session.ended).toMatchObject({ code: 0 });
      session.prepared.clean();
    },
  );

  it('does not start with a table that is none', async () => {
    const { code, failure } = await machine.run('true', { names: Uint8Array.of(1, 2, 3) });
    expect([code, failure?.step]).toEqual([125, 'names']);
  });

  it('holds with the sanitizers as well', async () => {
    const sanitized = protectedMachine(user, 'nd7-launch-sanitized');
    sanitized.judge = () => Promise.resolve({ allow: true });
    try {
      const same = program(sanitized, 'same');
      const { stdout, stderr, code } = await sanitized.run(
        `mkdir w; (cd w; timeout 100 ${same} 7 1500 > ../said); mkdir .claude; mkdir d; mv d .claude; GIT_TEMPLATE_DIR= git init -q r; echo s > .env; : > free; wc -l < said`,
      );
      expect([code, Number(stdout) > 1000, stderr.match(/denied/g)?.length]).toEqual([0, true, 2]);
      expect(stderr).not.toMatch(/runtime error|Sanitizer/);
      expect(lstatSync(join(sanitized.project, 'free')).isFile()).toBe(true);
    } finally {
      sanitized.close();
    }
  });
});
