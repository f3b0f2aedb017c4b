// Attacks on the supervisor of a session from inside, in the real boundary and as an ordinary user. Each of the first ones has stood once.
import { execFileSync, spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const BIN = join(root, 'apps/agent/bin/nd7.js');
/** Root becomes somebody else: as root an attack would be at the machine's own files. */
const user = process.geteuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};

/** Folders that the ways of native/observe/test/attack.c need. */
const HOOKS = 'mkdir -p closed/folder/hooks ../.github; echo {} > closed/folder/hooks/a.json';
const GIT_DIR = "mkdir -p closed/objects closed/refs; echo 'ref: refs/heads/main' > closed/HEAD";

let base: string;
let home: string;
let project: string;

function start(command: string, ...args: string[]): SpawnSyncReturns<string> {
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
  return spawnSync(command, args, { cwd: project, encoding: 'utf8', env, ...user });
}

function lay(): void {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-supervisor-')));
  home = join(base, 'home');
  project = join(home, 'project');
  chmodSync(base, 0o777);
  spawnSync('mkdir', ['-p', project], user);
  start('git', 'init', '-q', '-b', 'main');
}
const clear = (): void => rmSync(base, { recursive: true, force: true });

/** What a script says that runs inside. */
function inside(script: string): string {
  const ran = start(process.execPath, BIN, 'run', '--', 'sh', '-c', script);
  if (ran.status !== 0) throw new Error(`${ran.stdout}${ran.stderr}`);
  return ran.stdout.trim();
}

function missing(): string | undefined {
  lay();
  try {
    if (start('python3', '--version').status !== 0 || start('cc', '--version').status !== 0) return 'no cc or python3';
    return start(process.execPath, BIN, 'run', '--', 'true').status === 0 ? undefined : 'no boundary here';
  } finally {
    clear();
  }
}
const lacks = process.platform === 'linux' ? missing() : 'no Linux';

(lacks === undefined ? describe : describe.skip)(`a supervisor that is attacked [${lacks ?? 'here'}]`, () => {
  beforeEach(lay);
  afterEach(clear);

  it.each([
    ['source-appears', 'a rename whose source was not there when it was looked at', 'true'],
    ['exchange-closed', 'an exchange with what lies in a folder that is closed and opened again', HOOKS],
    ['head-closed', 'an open in a git directory that is closed and opened again', GIT_DIR],
    ['rename-flips', 'a rename of a file that becomes a link', 'true'],
    ['link-flips', 'a hard link of a file that becomes a link', 'true'],
    ['folder-turns', 'calls whose descriptors and working folder are exchanged under them', 'true'],
  ])('%s: %s makes no protected name', (way, _what, before) => {
    const program = join(base, 'attack');
    execFileSync('cc', ['-O1', '-pthread', '-o', program, join(root, 'native/observe/test/attack.c')]);
    start('sh', '-c', 'mkdir attack && cp "$0" attack/run', program);
    expect(inside(`cd attack; ${before}; ./run ${way} 4`)).toBe('held');
  });

  it('a socket that is bound as HEAD makes no git directory, and hides none that is made afterwards', () => {
    const said = inside(`mkdir -p x/hooks; echo evil > x/config; echo ref > x/H
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("x/HEAD")'
mv -f x/H x/HEAD 2>/dev/null || echo refused`);
    expect([said, lstatSync(join(project, 'x/HEAD')).isSocket()]).toEqual(['refused', true]);
  });

  it.each([
    ['a repository that is not there yet', 'gitdir: ../rep/modules/sub', 'ln -s node_modules/evil rep'],
    ['a name in .git that is a link later', 'gitdir: ../.git/foo/modules/sub', 'ln -s ../node_modules/evil .git/foo'],
    [
      'a module whose name has slashes',
      'gitdir: ../.git/modules/a/sub',
      'mkdir -p .git/modules/a; ln -s ../../../node_modules/evil/modules/sub .git/modules/a/sub',
    ],
    [
      'a module that is moved there with a link in it',
      'gitdir: ../.git/modules/a/sub',
      'mkdir -p a .git/modules; ln -s ../../../node_modules/evil/modules/sub a/sub; mv a .git/modules/a',
    ],
    [
      'a repository that is moved away',
      'gitdir: ../rep/modules/sub',
      'mv rep away; ln -s node_modules/evil rep',
      'mkdir -p rep/modules',
    ],
  ])('a pointer of git does not lead to %s', (_what, pointer, afterwards, before = 'true') => {
    inside(`E=node_modules/evil/modules/sub; mkdir -p $E/objects $E/refs sub; echo 'ref: refs/heads/main' > $E/HEAD
printf '[core]\\n\\tfsmonitor = evil\\n' > $E/config
${before}; printf '${pointer}\\n' > sub/.git; /bin/true; ${afterwards}; true`);
    expect(existsSync(join(project, 'node_modules/evil/modules/sub/config'))).toBe(true);
    expect(start('git', '-C', 'sub', 'config', 'core.fsmonitor').stdout).toBe('');
  });

  it('a folder does not become a repository by a work tree that says so', () => {
    inside(`mkdir -p y/worktrees/q y/objects y/refs; printf '[core]\\n\\tfsmonitor = evil\\n' > y/config
echo 'ref: refs/heads/main' > y/worktrees/q/HEAD; echo ../.. > y/worktrees/q/commondir; /bin/true`);
    expect(existsSync(join(project, 'y/config'))).toBe(true);
    expect(start('git', '-C', 'y/worktrees/q', 'config', 'core.fsmonitor').stdout).toBe('');
  });

  it.each([
    ['deeper', '.git/worktrees/w', '.git/worktrees/a/w', '.git/worktrees'],
    ['away with its repository', 'c/.git', 'c/y', 'c/y'],
    ['deeper with the module whose it is', '.git/modules/m', '.git/modules/a/m', '.git/modules/a/m'],
  ])('a work tree of a repository that is moved %s does not find another one', (_what, from, to, common) => {
    inside(`git init -q c; git init -q m; mkdir -p .git/modules .git/modules/a; mv m/.git/* .git/modules/m; cp -r m/.git .git/modules/m
for g in .git c/.git .git/modules/m; do mkdir -p $g/worktrees/w; echo 'ref: refs/heads/main' > $g/worktrees/w/HEAD; echo ../.. > $g/worktrees/w/commondir; /bin/true; done
mkdir -p .git/worktrees/a; mv ${from} ${to}
mkdir -p ${common}/objects ${common}/refs; rm -f ${common}/HEAD; printf '[core]\n\tfsmonitor = evil\n' > ${common}/config
true`);
    for (const folder of ['.git/worktrees/a/w', 'c/y/worktrees/w', '.git/modules/a/m/worktrees/w'])
      expect(start('git', '-C', folder, 'config', 'core.fsmonitor').stdout).toBe('');
  });

  it.each([
    ['made there', 'cp -r .git node_modules/x; C=node_modules/x/.git/config; rm -f $C; printf "$EVIL" > $C'],
    ['moved there', 'mv node_modules/e node_modules/x/.git'],
    ['exchanged with one', 'git init -q node_modules/x; python3 x.py'],
    ['pointed to', 'echo "gitdir: ../e" > node_modules/x/.git'],
    [
      'pointed to, deeper',
      'mkdir -p node_modules/.git/modules/a; mv node_modules/e node_modules/.git/modules/a/b; echo "gitdir: ../.git/modules/a/b" > node_modules/x/.git',
    ],
    ['linked to', 'ln -s ../e node_modules/x/.git'],
  ])('git outside finds no repository among packages that an index names: %s', (_what, how) => {
    const said = inside(`EVIL='[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "touch ${base}/ran; false"\\n'
echo 'import ctypes; ctypes.CDLL(None).renameat2(-100, b"node_modules/e", -100, b"node_modules/x/.git", 2)' > x.py
mkdir -p node_modules/x; cp -r .git node_modules/e; printf "$EVIL" > node_modules/e/config
grep -c ran node_modules/e/config
${how}; /bin/true
git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,node_modules/x && git ls-files`);
    expect(said).toBe('1\nnode_modules/x');
    start('git', 'status');
    expect(existsSync(join(base, 'ran'))).toBe(false);
  });

  it.each([
    ['a folder', 'git config remote.origin.url node_modules/evil'],
    ['a file URL', 'git config remote.origin.url file://$PWD/node_modules/evil'],
    ['a link, said for pushes alone', 'ln -s node_modules/evil e.git; git config remote.origin.pushurl ./e.git'],
    ['a folder that a branch names', 'git config branch.main.pushRemote node_modules/evil'],
    ['a link that is called like a remote', 'ln -s node_modules/evil e; git config branch.main.remote e'],
    [
      'a link that is called like a remote that has gone',
      'git config remote.e.url a:b; git config branch.main.remote e; git config --unset remote.e.url; ln -s node_modules/evil e',
    ],
    [
      'a file of .git/remotes',
      'git config --unset remote.origin.url; mkdir .git/remotes; echo URL: node_modules/evil > .git/remotes/origin',
    ],
    [
      'a file of .git/branches',
      'git config --unset remote.origin.url; mkdir -p .git/branches; echo node_modules/evil > .git/branches/origin',
    ],
  ])('a push outside runs no hooks of a repository of the session, by %s', (_what, how) => {
    start('git', 'remote', 'add', 'origin', join(base, 'nowhere'));
    for (const [key = '', value = ''] of [
      ['remote', 'origin'],
      ['merge', 'refs/heads/main'],
    ])
      start('git', 'config', `branch.main.${key}`, value);
    start('git', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '--allow-empty', '-m', 'x');
    const said = inside(`E=node_modules/evil; git init -q --bare $E; mkdir $E/hooks
printf '#!/bin/sh\\ntouch ${base}/ran\\n' > $E/hooks/update; chmod +x $E/hooks/update; cat $E/hooks/update
${how}; true`);
    expect(said).toContain('touch');
    start('git', '-c', 'push.default=current', 'push');
    expect(existsSync(join(base, 'ran'))).toBe(false);
  });

  it('what the configuration of git has run from the project is none of the session’s, but where the person names it for writing', () => {
    for (const [key = '', value = ''] of [
      ['core.hooksPath', '.githooks'],
      ['include.path', '../.gitconfig'],
      ['core.fsmonitor', 'tools/watch'],
    ])
      start('git', 'config', key, value);
    start('mkdir', '.githooks', 'tools');
    const all =
      'for f in .githooks/pre-commit .gitconfig tools/watch tools/other; do echo x > $f && echo $f; done; true';
    expect(
      inside(
        `exec 2>/dev/null; ${all}; mv .githooks away || echo stays; mkdir x; echo x > x/watch; mv tools more; mv x tools || ln -s x tools || echo held`,
      ),
    ).toBe('tools/other\nstays\nheld');
    start(
      'sh',
      '-c',
      `mkdir -p $HOME/.nd7 tools && echo '{"nd7":1,"files":{"write":{"allow":["./.githooks"]}}}' > $HOME/.nd7/policy.jsonc && chmod 700 $HOME/.nd7`,
    );
    expect(inside(`exec 2>/dev/null; ${all}`).split('\n')).toEqual(['.githooks/pre-commit', 'tools/other']);
  });

  it('what is written, linked or opened by a descriptor is judged by its name', () => {
    const config = readFileSync(join(project, '.git/config'), 'utf8');
    const said = inside(`cat > t.py <<'PY'
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
held = []
def attempt(name, call):
    try:
        call()
        print('done:', name)
    except OSError:
        held.append(name)
def system(number, *args):
    if libc.syscall(number, *args) < 0: raise OSError(ctypes.get_errno(), '')
read = os.open('.git/config', os.O_RDONLY)
path = os.open('.git/config', os.O_PATH)
for way in ('/proc/self/fd/%d', '/dev/fd/%d', '/proc/thread-self/fd/%d', '/proc/' + str(os.getpid()) + '/task/' + str(os.getpid()) + '/fd/%d'):
    for fd in (read, path):
        for flags in (os.O_RDWR, os.O_RDONLY | os.O_TRUNC, 3): attempt(way, lambda: os.open(way % fd, flags))
        attempt('truncate', lambda: os.truncate(way % fd, 0))
for way in ('/proc/self/cwd/.git/config', '/proc/self/root' + os.path.realpath('.git/config'), '/proc/%d/cwd/.git/config' % os.getppid()):
    attempt(way, lambda: os.open(way, os.O_RDWR))
attempt('copy_file_range', lambda: os.copy_file_range(os.open('t.py', 0), read, 10))
attempt('sendfile', lambda: os.sendfile(read, os.open('t.py', 0), 0, 10))
attempt('fallocate', lambda: os.posix_fallocate(read, 0, 10))
attempt('clone', lambda: fcntl.ioctl(read, 0x40049409, os.open('t.py', 0)))
attempt('linkat', lambda: system(265, path, b'', -100, b'second', 0x1000))
attempt('openat2', lambda: system(437, -100, b'.envrc', ctypes.create_string_buffer(b'A' + bytes(23)), 24))
attempt('name_to_handle_at', lambda: system(303, -100, b'.', ctypes.create_string_buffer(200), ctypes.create_string_buffer(8), 0))
attempt('open_by_handle_at', lambda: system(304, -100, ctypes.create_string_buffer(200), 0))
nameless = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o644)
for name in ('.envrc', '.ENVRC', '.envrc/', './/.envrc', '.git/hooks/x', '.git/config'):
    attempt('link', lambda: os.link('/proc/self/fd/%d' % nameless, name, follow_symlinks=True))
    attempt('linkat', lambda: system(265, nameless, b'', -100, name.encode(), 0x1000))
    attempt('mknod', lambda: os.mknod(name, 0o100644))
    attempt('mkfifo', lambda: os.mkfifo(name))
gone = os.open('gone', os.O_CREAT | os.O_RDWR)
os.unlink('gone')
attempt('unlinked', lambda: os.link('/proc/self/fd/%d' % gone, '.envrc', follow_symlinks=True))
for request in (0x50009401, 0x5000940e, 0x50009417, 0x50009418): attempt('subvolume', lambda: fcntl.ioctl(os.open('.', 0), request, bytes(64)))
for way in ('/proc/1/mem', '/proc/1/fd/0', '/proc/1/cwd/x', '/proc/1/root/tmp/x'): attempt(way, lambda: os.open(way, os.O_RDWR | os.O_CREAT))
print('held', len(held))
PY
python3 t.py`);
    expect(said).toMatch(/^held \d{2,}$/);
    expect(readFileSync(join(project, '.git/config'), 'utf8')).toBe(config);
    expect(['.envrc', '.ENVRC', 'second', '.git/hooks/x'].filter((name) => existsSync(join(project, name)))).toEqual(
      [],
    );
  });

  it('hostile arguments fail as they do without it, and it goes on', () => {
    const said = inside(`python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for address in (0, 1, 0xdead, 2**47 - 1, 2**63, 2**64 - 1):
    for number, args in ((257, (-100, ctypes.c_ulong(address), 0x41, 0o644)), (82, (ctypes.c_ulong(address),) * 2), (76, (ctypes.c_ulong(address), 1)), (88, (ctypes.c_ulong(address),) * 2)):
        assert libc.syscall(number, *args) < 0 and ctypes.get_errno() == 14, (number, address)
top = os.open(".", os.O_RDONLY)
for i in range(40):
    try: os.mkdir("d" * 200, dir_fd=top)
    except OSError: break
    top = os.open("d" * 200, os.O_RDONLY, dir_fd=top)
assert i > 10
os.close(os.open("n" * 255, os.O_CREAT | os.O_WRONLY))
try: os.open("n" * 256, os.O_CREAT | os.O_WRONLY)
except OSError as e: print(e.errno)
'`);
    expect(said).toBe('36');
  });

  it('pipes that nobody reads, refusals in a loop, signals and many programs stop no other call', () => {
    const said = inside(`cat > t.py <<'PY'
import os, signal
os.mkfifo('pipe')
waiting = []
for i in range(300):
    pid = os.fork()
    if pid == 0:
        try: os.open('pipe', os.O_WRONLY)
        except OSError: pass
        os._exit(0)
    waiting.append(pid)
makers = []
for k in range(10):
    pid = os.fork()
    if pid == 0:
        for i in range(500):
            open('f%d-%d' % (k, i), 'w').close()
            try: os.open('.envrc', os.O_CREAT | os.O_WRONLY)
            except PermissionError: continue
            os._exit(1)
        os._exit(0)
    makers.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in makers] == [0] * 10
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for i in range(1000): os.close(os.open('s%d' % i, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
signal.setitimer(signal.ITIMER_REAL, 0)
for pid in waiting: os.kill(pid, 9)
for pid in waiting: os.waitpid(pid, 0)
names = os.listdir('.')
print(len([n for n in names if n[0] == 'f']), len([n for n in names if n[0] == 's']), len(os.listdir('/proc/self/fd')))
PY
python3 t.py`);
    expect(said).toBe('5000 1000 4');
    const log = execFileSync('sh', ['-c', `cat ${home}/.nd7/sessions/*/log.jsonl`], { encoding: 'utf8' });
    expect(log.split('\n').filter((line) => line.includes('"decision:names"')).length).toBeLessThan(10);
  });
});
