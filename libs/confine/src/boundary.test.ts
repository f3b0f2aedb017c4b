// What a program may inside the real boundary, on the real kernel, and what it may not.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { callFilter } from './filter/filter.js';
import { manifest } from './manifest.js';
import { buildLaunchers, Machine, USERS } from './session.fixture.js';

beforeAll(buildLaunchers, 120_000);

/** An errno that the kernel says in words of the shell's tools. */
const DENIED =
  /Read-only file system|Permission denied|Operation not permitted|No such file or directory|resource busy|cross-device link/;

describe.each(USERS)('a session of %s', (who, user) => {
  let machine: Machine;
  beforeEach(() => {
    machine = new Machine(user);
  });
  afterEach(() => machine.close());

  it('is the user it was, without a capability, and alone in its namespaces', async () => {
    const { stdout } = await machine.run(
      'id -u; id -g; grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; ls -d /proc/[0-9]*; readlink /proc/self/ns/net',
    );
    const { uid, gid } = user ?? { uid: process.geteuid?.(), gid: process.getegid?.() };
    const lines = stdout.split('\n');
    // Nor does it see into the first process of the session, which belongs to the same user.
    const looks = await machine.run('cat /proc/1/fd/3 /proc/1/environ /proc/1/cwd/. 2>&1');
    expect(looks.stdout).toMatch(/^(.*Permission denied\n){3}$/);
    expect(lines.slice(0, 2)).toEqual([String(uid), String(gid)]);
    expect(lines.filter((line) => line.startsWith('Cap')).map((line) => line.split('\t')[1])).toEqual(
      Array(5).fill('0'.repeat(16)),
    );
    expect(stdout).toContain('NoNewPrivs:\t1');
    expect(stdout).toContain('Seccomp:\t2');
    // init, the shell, ls.
    expect(lines.filter((line) => line.startsWith('/proc/')).length).toBeLessThanOrEqual(3);
    expect(stdout).not.toContain(readlinkSync('/proc/self/ns/net'));
  });

  it('writes its project and nothing else', async () => {
    const outside = machine.file('notes/plan');
    const script = `
      echo new > made && mv made moved && rm moved && mkdir -p d/e && echo ok
      for f in ${machine.home}/x ${outside} /usr/x /etc/x /var/x /x; do echo x > $f && echo WROTE $f; done
      chmod 777 ${outside} && echo MODE; touch -d @1 ${outside} && echo TIME; rm ${outside} && echo REMOVED; mv ${outside} . && echo MOVED
      ln ${outside} linked && echo LINKED; true`;
    const { stdout, stderr } = await machine.run(script);
    expect(stdout).toBe('ok\n');
    for (const line of stderr.trim().split('\n')) expect(line).toMatch(DENIED);
    expect(readFileSync(outside, 'utf8')).toBe('content\n');
  });

  it('does not see what is hidden, by any way to it', async () => {
    const key = machine.file('.ssh/id', 'SECRET');
    const netrc = machine.file('.netrc', 'SECRET');
    machine.hide('.ssh');
    machine.hide('.netrc');
    const script = `
      cat ${key} /proc/self/root${key} ${netrc} .. /proc/1/root${key} 2>/dev/null; ln -s ${key} l; cat l; ln ${netrc} h && cat h; cp ${netrc} c
      echo x > ${netrc}; ls -A ${machine.home}/.ssh; stat -c %a ${netrc}`;
    const { stdout, stderr } = await machine.run(script);
    expect(stdout).toBe('0\n');
    expect(stderr).not.toContain('SECRET');
    // A hidden file is refused, never empty: neither a read nor a write is swallowed.
    expect(stderr).toMatch(/netrc.*Permission denied/);
    expect(stderr).toMatch(/netrc: (Read-only file system|Permission denied)/);
    expect(readFileSync(netrc, 'utf8')).toBe('SECRET');
  });

  it('holds allow in deny in allow, to any depth', async () => {
    machine.file('a/file', 'a');
    machine.file('a/b/file', 'b');
    machine.file('a/b/c/file', 'c');
    machine.file('project/deep/er/file', 'd');
    machine.hide('a');
    machine.show('a/b');
    machine.hide('a/b/c');
    machine.nodes.push([join(machine.project, 'deep'), { read: true, write: false, exec: true }]);
    machine.nodes.push([join(machine.project, 'deep/er'), { read: true, write: true, exec: true }]);
    const { stdout } = await machine.run(`
      cd ${machine.home}; cat a/file a/b/file a/b/c/file 2>/dev/null; echo; ls -A a
      cd project; echo x > deep/new || echo refused; echo x >> deep/er/file && cat deep/er/file; mv deep deeper || echo held; touch ${machine.home}/a/x || echo frozen`);
    expect(stdout).toBe('b\nb\nrefused\ndx\nheld\nfrozen\n');
  });

  it('follows links to what they lead to, and takes none for writing that a session could have made', async () => {
    machine.file('elsewhere/secret', 'SECRET');
    machine.file('other/file', 'other');
    symlinkSync(join(machine.home, 'elsewhere'), join(machine.home, 'alias'));
    symlinkSync(join(machine.home, 'other'), join(machine.project, 'cache'));
    machine.hide('alias');
    machine.nodes.push([join(machine.project, 'cache'), { read: true, write: true, exec: true }]);
    const { stdout } = await machine.run(
      `cat ${machine.home}/elsewhere/secret ${machine.home}/alias/secret; echo x > cache/file; cat cache/file`,
    );
    expect(stdout).toBe('other');
  });

  it('does not change, replace or rename protected names that are there', async () => {
    execFileSync('git', ['init', '-q', machine.project]);
    machine.file('project/.claude/settings.json', '{}');
    machine.file('project/.git/hooks/pre-commit', 'x');
    machine.file('project/sub/.envrc', 'x');
    machine.protect('.claude');
    machine.protect('.envrc');
    machine.protect('hooks', { at: 'git-dir' });
    const script = `
      echo x > .claude/settings.json; echo x > .claude/new; mv .claude c; rm -rf .claude/settings.json; ln package .claude/l; echo x > sub/.envrc; rm -f sub/.envrc
      echo x > .git/hooks/pre-commit; echo x > .git/hooks/post-merge; mv .git/hooks h; mv .git g; mv .git/hooks/pre-commit p
      git -c user.name=n -c user.email=e commit -q --no-verify --allow-empty -m works && git log --oneline | wc -l`;
    const { stdout, stderr } = await machine.run(script);
    expect([stdout.trim(), stderr.split('\n').filter((line) => line !== '' && !DENIED.test(line))]).toEqual(['1', []]);
    expect(readFileSync(join(machine.project, '.claude/settings.json'), 'utf8')).toBe('{}');
    expect(readdirSync(join(machine.project, '.claude'))).toEqual(['settings.json']);
    expect(readFileSync(join(machine.project, '.git/hooks/pre-commit'), 'utf8')).toBe('x');
  });

  it('masks names that match, but for what git holds and what is named', async () => {
    execFileSync('git', ['init', '-q', machine.project]);
    machine.file('project/.env', 'SECRET');
    machine.file('project/a/b/.env.local', 'SECRET');
    machine.file('project/.env.example', 'example\n');
    machine.file('project/tracked/.env', 'tracked\n');
    machine.file('project/planted/.env', 'SECRET');
    const git = (...args: string[]): string =>
      execFileSync('git', ['-C', machine.project, ...args], { encoding: 'utf8' });
    git('add', 'tracked/.env');
    // An index that names a file whose content git does not have says nothing.
    git('update-index', '--add', '--cacheinfo', `100644,${git('rev-parse', ':tracked/.env').trim()},planted/.env`);
    machine.mask('**/.env*', { except: ['**/*.example'] });
    const { stdout, stderr } = await machine.run(
      'cat .env a/b/.env.local planted/.env .env.example tracked/.env; echo more >> .env',
    );
    expect(stdout).toBe('example\ntracked\n');
    expect(stderr.match(/Permission denied/g)).toHaveLength(4);
    expect(readFileSync(join(machine.project, '.env'), 'utf8')).toBe('SECRET');
  });

  it('has a temporary folder, devices and a /run of its own', async () => {
    const name = `nd7-${process.pid}-${Math.random().toString(36).slice(2)}`;
    const { stdout } = await machine.run(`
      echo x > /tmp/${name} && cat /tmp/${name}; echo x > /dev/shm/${name} && echo shm; echo x > /dev/null && head -c 3 /dev/zero | wc -c
      ls /dev; echo run:$(ls -A /run); touch /dev/x /run/x; tmp=$(mktemp) && echo made`);
    expect(stdout.replaceAll('\n', ' ')).toContain(
      'x shm 3 fd full null ptmx pts random shm stderr stdin stdout tty urandom zero run:',
    );
    expect(stdout).toMatch(/made\n$/);
    expect(existsSync(join('/tmp', name)) || existsSync(join('/dev/shm', name))).toBe(false);
  });

  it('does not run files where nothing may be run', async () => {
    machine.file('project/data/tool', '#!/bin/sh\necho RAN\n');
    chmodSync(join(machine.project, 'data/tool'), 0o755);
    machine.nodes.push([join(machine.project, 'data'), { read: true, write: true, exec: false }]);
    const { stdout, stderr } = await machine.run(
      'cp data/tool tool && ./tool; data/tool; cp tool data/other; data/other',
    );
    expect(stdout).toBe('RAN\n');
    expect(stderr.match(/Permission denied/g)).toHaveLength(2);
  });

  it('changes no mode and no time of a device of the host', async () => {
    const { stdout, stderr } = await machine.run(
      'for d in null zero full random urandom tty; do chmod 666 /dev/$d && echo MODE; touch -c -d @1 /dev/$d && echo TIME; done; echo x > /dev/null && echo written',
    );
    expect(stdout).toBe('written\n');
    for (const line of stderr.trim().split('\n')) expect(line).toMatch(/Read-only file system/);
  });

  it('signals the members of its process group that are inside, and none where the kernel cannot tell them apart', async () => {
    // The launcher is in the same process group, and so is whoever runs this test.
    expect(await machine.run('trap "" TERM; kill -TERM 0; echo on; kill -KILL 0')).toMatchObject({
      stdout: 'on\n',
      signal: 'SIGKILL',
    });
    const filter = callFilter(process.arch === 'arm64' ? 'aarch64' : 'x86_64', { scoped: false, observed: true });
    const { stdout, stderr, code } = await machine.run('kill -TERM 0; echo on', { filter });
    expect([stdout, stderr, code]).toEqual(['on\n', expect.stringMatching(/not permitted/), 0]);
  });

  it('says of temporary folders what the loader can do there', async () => {
    machine.nodes.push(['/tmp', { read: true, write: true, exec: false }]);
    const { stdout } = await machine.run(
      `cp /bin/echo /tmp/echo; chmod 755 /tmp/echo; /tmp/echo RAN; for l in /lib*/ld-linux*.so.*; do $l /tmp/echo loaded; done`,
    );
    expect(stdout).toMatch(/^(loaded\n)+$/);
    const { built } = machine.prepare(['true']);
    expect(manifest(machine.ruleset(), built, []).find(({ property }) => property === 'files.exec')).toMatchObject({
      status: 'partial',
      limit: expect.stringContaining('/tmp') as string,
    });
  });

  it('reaches its own loopback and nobody else’s', async () => {
    const server = createServer((socket) => socket.end('OUTSIDE'));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as { port: number };
    const socketPath = join(machine.home, 's.sock');
    const unix = createServer((socket) => socket.end('OUTSIDE'));
    await new Promise<void>((done) => unix.listen(socketPath, done));
    chmodSync(socketPath, 0o777);
    const client = `
      const net = require('net');
      const ask = (to) => new Promise((done) => { let got = ''; net.connect(to).on('data', (d) => (got += d)).on('error', (e) => done(e.code)).on('close', () => done(got)); });
      const own = net.createServer((s) => s.end('INSIDE')).listen(0, '127.0.0.1', async () => {
        console.log(await ask(own.address().port), await ask(${port}), await ask('${socketPath}'), Object.keys(require('os').networkInterfaces()).join());
        own.close();
      });`;
    try {
      const { stdout } = await machine.run(`${process.execPath} -e "${client.replaceAll(/\s+/g, ' ')}"`);
      expect(stdout.trim()).toMatch(/^INSIDE ECONNREFUSED (EACCES|ECONNREFUSED) lo$/);
    } finally {
      server.close();
      unix.close();
    }
  });

  it('writes no setting of the kernel; an ordinary user writes what is about its own processes', async () => {
    const { stdout } = await machine.run(
      'echo x > /proc/sys/kernel/core_pattern; echo 500 > /proc/self/oom_score_adj && echo own',
    );
    expect(stdout).toBe(who === 'root' ? '' : 'own\n');
  });
});

// Root on a machine that gives no user namespaces: a capability in place of one.
(process.geteuid?.() === 0 ? it : it.skip)('holds without a user namespace too [root]', async () => {
  const machine = new Machine(undefined);
  try {
    machine.file('.ssh/id', 'SECRET');
    machine.hide('.ssh');
    const script = `
      grep CapEff /proc/self/status; cat ../.ssh/id; echo x > made && echo wrote; echo x > ../x; mount -t tmpfs t /tmp; umount ../.ssh
      mknod b b 7 0; echo 1 > /proc/sys/vm/drop_caches; echo b > /proc/sysrq-trigger; chmod 600 ${machine.home}; su -c true nobody; cat /dev/kmsg`;
    const { stdout, stderr, proofs } = await machine.run(script, { userNamespace: false });
    expect(proofs.filter(({ verdict }) => verdict === 'broken')).toEqual([]);
    expect(stdout.split('\n').slice(0, 2)).toEqual(['CapEff:\t0000000000000000', 'wrote']);
    expect(stderr).not.toContain('SECRET');
    for (const word of ['.ssh/id', '../x', '/tmp', 'mknod', 'drop_caches', 'sysrq-trigger', 'chmod', '/dev/kmsg'])
      expect(stderr).toContain(word);
  } finally {
    machine.close();
  }
});
