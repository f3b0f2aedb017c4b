// Names that are made during a session, as a developer and as an attacker make them: what git and tools must go on doing, what is refused and
// recorded, and what stands on the disk afterwards.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BIN = join(import.meta.dirname, '../../apps/agent/bin/nd7.js');

let base: string;
let home: string;
let project: string;

const environment = (): Record<string, string> => ({ PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, TERM: 'xterm' });
const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-C', folder, '-c', 'user.name=n', '-c', 'user.email=n@x', ...args], {
    encoding: 'utf8',
    env: environment(),
  }).trim();

/** Runs each command by itself inside one session: what it ended with, and the last thing that it said on stderr. */
function inside(commands: readonly string[], ...options: string[]): { results: string[]; stderr: string } {
  const script = commands
    .map((command) => `( ${command} ) >/tmp/out 2>/tmp/err; echo "$? $(tail -n 1 /tmp/err)" >&3`)
    .join('\n');
  const ran = spawnSync(process.execPath, [BIN, 'run', ...options, '--', 'sh', '-c', `exec 3>&1\n${script}`], {
    cwd: project,
    encoding: 'utf8',
    env: environment(),
  });
  const results = ran.stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.trimEnd());
  if (ran.status !== 0 || results.length !== commands.length) throw new Error(`${ran.stdout}${ran.stderr}`);
  return { results, stderr: ran.stderr };
}

interface Decision {
  verdict: string;
  path: string;
  call: string;
  held?: string[];
  rules?: { count: number; rule: string }[];
}

/** The decisions about names that the last session's chain holds. */
function decisions(): Decision[] {
  const sessions = join(home, '.nd7/sessions');
  const [session = ''] = readdirSync(sessions).filter((name) => name.startsWith('run-'));
  return readFileSync(join(sessions, session, 'log.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"decision:names"'))
    .map((line) => (JSON.parse(line) as { data: Decision }).data);
}

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-boundary-')));
  home = join(base, 'home');
  project = join(home, 'project');
  mkdirSync(project, { recursive: true });
  for (const name of ['remote.git', 'lib.git']) {
    git(base, 'init', '-q', '--bare', '-b', 'main', join(project, name));
    git(base, 'clone', '-q', join(project, name), join(base, 'seed'));
    writeFileSync(join(base, 'seed/file'), 'x');
    git(join(base, 'seed'), 'add', '.');
    git(join(base, 'seed'), 'commit', '-qm', 'seed');
    git(join(base, 'seed'), 'push', '-q', 'origin', 'main');
    rmSync(join(base, 'seed'), { recursive: true });
  }
  git(project, 'init', '-q', '-b', 'main');
  git(project, 'config', 'user.name', 'n');
  git(project, 'config', 'user.email', 'n@x');
  git(project, 'config', 'core.hooksPath', '.husky/_');
  git(project, 'remote', 'add', 'origin', './remote.git');
  git(project, 'pull', '-q', 'origin', 'main');
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const OK = '0';
const all = (results: readonly string[], commands: readonly string[]): string[] =>
  results.map((result, i) => `${result} ← ${commands[i] ?? ''}`);

it('git goes on working: branches that track, remotes, submodules, work trees, clones, new repositories', () => {
  const commands = [
    'git fetch -q',
    'git checkout -q -b topic --track origin/main',
    'echo y > other && git add other && git commit -qm y',
    'git push -q -u origin topic',
    'git remote add other https://example.com/x.git',
    'git config user.name m',
    'git branch -q gone && git branch -q -D gone',
    'git -c protocol.file.allow=always submodule --quiet add $PWD/lib.git lib',
    'git commit -qm lib',
    'git worktree add -q wt',
    'git -C wt status',
    'git worktree remove wt',
    'git init -q new && git -C new config user.name n && git -C new config user.email n@x',
    'touch new/f && git -C new add f && git -C new commit -qm f',
    'git clone -q remote.git clone && git -C clone log -1',
    'git init -q --bare bare.git',
    'git stash list && git gc -q && git rebase -q HEAD~1',
    'rm -rf clone bare.git',
  ];
  const { results } = inside(commands);
  expect(all(results, commands)).toEqual(
    all(
      commands.map(() => OK),
      commands,
    ),
  );
  expect(git(project, 'config', 'branch.topic.merge')).toBe('refs/heads/topic');
  expect(git(project, 'config', 'remote.other.url')).toBe('https://example.com/x.git');
  expect(git(join(project, 'lib'), 'log', '--format=%s', '-1')).toBe('seed');
  expect(git(project, 'config', 'core.hooksPath')).toBe('.husky/_');
  expect(git(project, 'status', '--short', '--untracked-files=no')).toBe('');
  expect(git(join(project, 'new'), 'log', '--format=%s', '-1')).toBe('f');
  expect(readdirSync(project).sort()).toEqual(
    ['.git', '.gitmodules', 'file', 'lib', 'lib.git', 'new', 'other', 'remote.git'].sort(),
  );
});

it('a key that runs something is refused with its name, and the configuration stays as it was', () => {
  const before = readFileSync(join(project, '.git/config'), 'utf8');
  const commands = [
    'git config core.hooksPath .other',
    'git config core.fsmonitor ./run',
    'git config --unset core.hooksPath',
    'git config alias.x "!sh"',
    'printf "[core]\\n\\tfsmonitor = x\\n" > .git/config',
    'printf "[core]\\n\\tfsmonitor = x\\n" > c && mv c .git/config',
    'ln .git/config linked',
    // By a descriptor, which has a name as well.
    'exec 5< .git/config; printf x > /proc/self/fd/5',
    'exec 5< .git/config; printf x >> /dev/fd/5',
    'printf x > /proc/$$/cwd/.git/config',
    'exec 5< .git/config; truncate -s 0 /proc/self/fd/5',
    `python3 -c 'import os; os.truncate(".git/config", 0)'`,
    `python3 -c 'import os; os.open(".git/config", os.O_RDONLY | os.O_TRUNC)'`,
    `python3 -c 'import os; os.open("/proc/self/fd/%d" % os.open(".git/config", os.O_PATH), os.O_RDWR)'`,
    `python3 -c 'import os; os.link("/proc/self/fd/%d" % os.open(".git/config", os.O_RDONLY), "l", follow_symlinks=True)'`,
  ];
  const { results } = inside(commands);
  expect(results.map((result) => result.startsWith('0'))).toEqual(commands.map(() => false));
  expect(readFileSync(join(project, '.git/config'), 'utf8')).toBe(before);
  const refused = decisions().filter(({ verdict }) => verdict === 'deny');
  expect(refused.flatMap(({ held = [] }) => held)).toEqual(
    expect.arrayContaining(['core.hookspath', 'core.fsmonitor', 'alias.x']),
  );
});

it.each<[string, string, string]>([
  ['a settings folder', 'mkdir .cursor', '.cursor'],
  ['a file', 'echo x > .envrc', '.envrc'],
  ['a name in another case', 'mkdir .CLAUDE', '.CLAUDE'],
  ['a folder that is renamed', 'mkdir x && mv x .gemini', '.gemini'],
  [
    'a folder whose content comes to match',
    'mkdir -p x/hooks && touch x/hooks/a.json && mv x .github',
    '.github/hooks',
  ],
  ['what mise runs at the next prompt', 'mkdir -p .config && echo x > .config/mise.toml', '.config/mise.toml'],
  ['what puts a folder of the project before all programs', 'echo "node path:./x" > .tool-versions', '.tool-versions'],
  ['hooks of Mercurial', 'mkdir -p .hg && echo x > .hg/hgrc', '.hg/hgrc'],
  ['hooks of Mercurial that a folder brings', 'mkdir -p x && touch x/hgrc && mv x .hg', '.hg'],
  ['settings of Jujutsu that a folder brings', 'mkdir -p x/repo && touch x/repo/config.toml && mv x .jj', '.jj'],
  ['a place of such settings by a link', 'mkdir -p x && ln -s x .hg', '.hg'],
  ['hooks of a repository to be', 'mkdir -p x/.git/hooks', 'x/.git/hooks'],
  ['hooks of a repository that a folder becomes', 'mkdir -p x/hooks && touch x/hooks/post-checkout x/HEAD', 'x/HEAD'],
  [
    'a repository around what lies in its modules',
    'mkdir -p x/modules/y && echo evil > x/modules/y/config && touch x/HEAD',
    'x/HEAD',
  ],
  [
    'the configuration of a module of a module',
    'mkdir -p s/.git/modules/x/modules/y && echo evil > s/.git/modules/x/modules/y/config',
    's/.git/modules/x/modules/y/config',
  ],
  ['hooks that a folder brings', 'mkdir -p x/hooks && touch x/hooks/post-checkout && mkdir s && mv x s/.git', 's/.git'],
  [
    'an exchange',
    `mkdir -p x/hooks .github && touch x/hooks/a && python3 -c 'import ctypes,sys; sys.exit(ctypes.CDLL(None).renameat2(-100, b"x", -100, b".github", 2))'`,
    '.github/hooks',
  ],
  ['a symbolic link', 'ln -s /tmp .vscode', '.vscode'],
  ['a symbolic link on the way', 'mkdir -p x/hooks && ln -s x .github', '.github'],
  ['a hard link', 'touch x && ln x .npmrc', '.npmrc'],
  ['a fifo', 'mkfifo .envrc', '.envrc'],
  ['attributes of git', 'mkdir -p .git/info && echo x > .git/info/attributes', '.git/info/attributes'],
  [
    'a pointer to a planted repository',
    // It can be written; it is not there afterwards.
    'mkdir s && echo "gitdir: /tmp/evil" > s/.git; test -e s/.git',
    's/.git',
  ],
  [
    'a pointer to a repository that becomes a link',
    'mkdir -p sub node_modules/evil; echo "gitdir: ../rep/modules/m" > sub/.git; ln -s node_modules/evil rep; test -e sub/.git',
    'sub/.git',
  ],
  ['packages that come out of their folder', 'mkdir -p node_modules/p/.claude && mv node_modules/p p', 'p/.claude'],
  ['a work tree elsewhere', 'git config core.worktree ..', ''],
])('%s is not made', (_what, command, path) => {
  const [result = ''] = inside([command]).results;
  expect(result.startsWith('0')).toBe(false);
  if (path !== '') expect(existsSync(join(project, path))).toBe(false);
  expect(decisions().some(({ verdict }) => verdict === 'deny')).toBe(true);
});

const policy = (document: Record<string, unknown>): void => {
  mkdirSync(join(home, '.nd7'), { mode: 0o700 });
  writeFileSync(join(home, '.nd7/policy.jsonc'), JSON.stringify({ nd7: 1, ...document }), { mode: 0o600 });
};
const works = (results: readonly string[]): boolean[] => results.map((result) => result.startsWith('0'));

it('what is masked does not come out under another name, and what the session makes is its own', () => {
  mkdirSync(join(project, 'sub'));
  writeFileSync(join(project, 'sub/.env'), 'SECRET');
  const { results } = inside([
    'cat sub/.env',
    'mv sub/.env sub/plain',
    'ln sub/.env sub/linked',
    'rm sub/.env',
    'mv sub moved && cat moved/.env',
    'cp file .env && cat .env',
    'git checkout -q -b env && git add -f .env && git commit -qm env && git checkout -q main && test ! -e .env',
    'git checkout -q env && git status --porcelain -uno | grep . || git reset -q --hard main',
  ]);
  expect(works(results)).toEqual([false, false, false, false, false, true, true, true]);
  expect(readFileSync(join(project, 'moved/.env'), 'utf8')).toBe('SECRET');
});

it('a mask that lets out nothing holds for what the session makes, too', () => {
  policy({ masks: [{ pattern: '**/*.key', exceptTracked: false }] });
  const { results } = inside([
    'echo SECRET > a.key',
    'cat a.key',
    'cp file x && mv x b.key',
    'cat b.key',
    'mv a.key plain',
    'ln a.key linked',
    'mkdir -p node_modules/p && echo x > node_modules/p/c.key && cat node_modules/p/c.key',
  ]);
  expect(works(results)).toEqual([true, false, true, false, false, false, false]);
  expect(readFileSync(join(project, 'a.key'), 'utf8')).toBe('SECRET\n');
  expect(decisions().filter(({ verdict }) => verdict === 'mask')).toHaveLength(3);
});

it('the agent’s state is written without what gives rights, and its settings are not made', () => {
  policy({ packs: { 'claude-code': true } });
  const state = '{"theme":"dark","mcpServers":{"x":{"command":"sh"}}}';
  const { results } = inside([
    `echo '${state}' > ~/.claude/new && mv ~/.claude/new ~/.claude/.claude.json && grep dark ~/.claude/.claude.json`,
    'grep mcpServers ~/.claude/.claude.json',
    'echo x > ~/.claude/.claude.json',
    'echo {} > ~/.claude/settings.json',
    'echo {} > ~/.claude/settings.local.json',
    'mkdir ~/.claude/agents',
    'mkdir ~/.claude/plugins/x',
    'echo x > ~/.claude/plugins/store/index',
    'mkdir ~/.claude/projects && echo x > ~/.claude/projects/x.jsonl',
  ]);
  expect(works(results)).toEqual([true, false, false, false, false, false, false, true, true]);
  expect(JSON.parse(readFileSync(join(home, '.claude/.claude.json'), 'utf8'))).toEqual({ theme: 'dark' });
  expect(decisions().find(({ verdict }) => verdict === 'hold')?.held).toEqual(['mcpServers']);
});

it('a loop of refusals is one entry and a count, and the person is told when they ask', () => {
  const { stderr } = inside(
    ['i=0; while [ $i -lt 600 ]; do mkdir .claude; i=$((i+1)); done; echo x >> AGENTS.md; exit 0'],
    '--verbose',
  );
  const found = decisions();
  expect(found.length).toBeLessThan(10);
  expect(found.at(-1)?.rules?.find(({ rule }) => rule.endsWith(': .claude'))).toMatchObject({ count: 600 });
  expect(found.filter(({ verdict }) => verdict === 'record').map(({ path }) => path)).toEqual([
    join(project, 'AGENTS.md'),
  ]);
  expect(stderr).toContain(
    `refused 600 times: ${project}/.claude, by protect.refuse: .claude (nd7 why ${project}/.claude)`,
  );
  expect(inside(['mkdir .claude']).stderr).toBe('');
});

describe('where no supervisor can answer calls', () => {
  // As on a kernel or in a container without notifications: a filter around everything refuses to make a listener.
  const WITHOUT = `
import ctypes, os, platform, sys
number = 317 if platform.machine() == "x86_64" else 277
code = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 24), (0x45, 0, 1, 8), (0x06, 0, 0, 0x50016), (0x06, 0, 0, 0x7fff0000)]
class Filter(ctypes.Structure): _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]
class Program(ctypes.Structure): _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(Filter))]
filters = (Filter * len(code))(*[Filter(*one) for one in code])
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Program(len(code), filters)), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])`;
  const run = (...args: string[]) =>
    spawnSync('python3', ['-c', WITHOUT, process.execPath, BIN, 'run', ...args], {
      cwd: project,
      encoding: 'utf8',
      env: environment(),
    });

  it('nothing is started by the default profile, and it is said why', () => {
    const { status, stderr } = run('--', 'touch', 'ran');
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/does not give here: files\.leaves\n.*lets no supervisor answer calls/s),
    ]);
    expect(existsSync(join(project, 'ran'))).toBe(false);
  });

  it('a profile that does not require it starts, and the manifest says what is missing', () => {
    mkdirSync(join(home, '.nd7/profiles'), { recursive: true, mode: 0o700 });
    const all = {
      nd7: 1,
      files: { read: { allow: ['/'] }, write: { allow: ['.', '$TMP'] }, exec: { allow: ['/'] } },
      privateTmp: true,
    };
    const rules = { protect: { refuse: ['.envrc'] }, environment: { pass: ['*'] }, recording: 'best-effort' };
    writeFileSync(join(home, '.nd7/profiles/plain.jsonc'), JSON.stringify({ ...all, ...rules }), { mode: 0o600 });
    const { status, stderr } = run('--profile', 'plain', '--verbose', '--', 'touch', '.envrc');
    expect([status, stderr]).toEqual([0, expect.stringMatching(/partial files\.leaves/)]);
    expect(inside(['touch .envrc.x', 'touch .envrc'], '--profile', 'plain').results.map((line) => line[0])).toEqual([
      '0',
      '1',
    ]);
  });
});
