// The default profile as the supervisor judges by it: what cannot be made, moved or linked to, and how long a judgement takes.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { compile, type Ruleset } from '@nd7/policy';
import { buildOracle, Oracle, type Judged } from './oracle.fixture.js';
import { encodeNames } from './table.js';

let base: string;
let home: string;
let project: string;
let ruleset: Ruleset;
let oracle: Oracle;

beforeAll(() => {
  buildOracle();
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-names-')));
  home = join(base, 'home');
  project = join(home, 'code/app');
  mkdirSync(project, { recursive: true });
  ruleset = compile({
    places: { home, project, tmp: '/tmp', nd7Home: join(home, '.nd7'), variables: {} },
    user: null,
    project: null,
    team: null,
    session: { profile: null, packs: ['claude-code'], policy: null },
    grants: [],
    files: new Map(),
  }).ruleset;
  oracle = new Oracle(encodeNames(ruleset), 'names-oracle-sanitized');
}, 120_000);
afterAll(() => rmSync(base, { recursive: true, force: true }));

const judge = (...names: string[]): Judged[] =>
  oracle.judge(names.map((name) => ({ path: Buffer.from(join(project, name)) })));
const said = ({ mask, leaf, treatment }: Judged): string =>
  [mask === undefined ? '' : 'masked', leaf === undefined ? '' : ['recorded', 'mediated', 'refused'][treatment]]
    .filter((word) => word !== '')
    .join(' ');

it.each([
  ['.claude', 'refused'],
  ['sub/.Claude/settings.json', 'refused'],
  ['.git/hooks/pre-commit', 'refused'],
  ['.git/modules/x/hooks', 'refused'],
  ['.git/config', 'mediated'],
  ['.git/config.lock', ''],
  ['sub/.git', 'mediated'],
  ['.git/worktrees/w/gitdir', 'mediated'],
  ['.github/hooks', 'refused'],
  ['.github/copilot-instructions.md', 'refused'],
  ['.github', ''],
  ['.envrc', 'masked refused'],
  ['.env', 'masked'],
  ['.env.example', ''],
  ['AGENTS.md', 'recorded'],
  ['.hg/hgrc', 'refused'],
  ['sub/.hg/sharedpath', 'refused'],
  ['.hg', ''],
  ['mise.toml', 'refused'],
  ['.config/mise.toml', 'refused'],
  ['.config/Mise/config.local.toml', 'refused'],
  ['.config/mise', ''],
  ['.mise/conf.d/x.toml', 'refused'],
  ['.tool-versions', 'refused'],
  ['.helix/languages.toml', 'refused'],
  ['.pnpmfile.mjs', 'refused'],
  ['.rprofile', 'refused'],
  ['lefthook-local.yml', 'recorded'],
  ['node_modules/x/.claude', ''],
  ['node_modules/x/.env', ''],
  ['node_modules/x/.git', 'mediated'],
  ['node_modules/x/.git/config', 'mediated'],
  ['node_modules/x/.git/hooks/pre-commit', 'refused'],
  ['node_modules/.git/modules/m/config', 'mediated'],
  ['site-packages/.GIT/worktrees/w/commondir', 'mediated'],
  ['.git/modules/node_modules/config', 'mediated'],
  ['node_modules/x/config', ''],
  ['node_modules.pem/.env', 'masked'],
  ['src/index.ts', ''],
])('%s is %j', (path, verdict) => {
  expect(judge(path).map(said)).toEqual([verdict]);
});

it.each<[boolean, string]>([
  [true, '.github'],
  [true, '.hg'],
  [true, '.config/mise'],
  [true, '.git'],
  [true, '.git/modules/x'],
  [true, '.git/modules/packages/x'],
  [true, '.git/worktrees/w/x'],
  [true, '.git/info'],
  [true, '.git/modules'],
  [true, 'bare/worktrees'],
  [true, 'bare/modules/x'],
  [true, 'bare/modules/a/b/c'],
  [false, 'src/modules/x'],
  [false, '.git/objects'],
  [false, 'src'],
  [false, '.circleci'],
  [true, '../../../home'],
  [true, '../../.config'],
])('that a link would lead to protected names is %j of %s', (above, path) => {
  const [judged] = oracle.judge([
    { path: Buffer.from(join(project, path)), gitDirs: [Buffer.from(join(project, 'bare'))] },
  ]);
  expect(judged?.above).toBe(above);
});

it('takes no time that anybody would see', () => {
  const fast = new Oracle(encodeNames(ruleset));
  const paths = [
    'src/components/button/index.tsx',
    'node_modules/react/cjs/react.production.js',
    '.git/objects/ab/cdef',
  ];
  const times = paths.map((path) => fast.time(join(project, path), 100_000));
  // Some 1.3 µs on a machine at rest.
  expect(Math.max(...times)).toBeLessThan(10_000);
});

describe('a folder that is moved', () => {
  const lay = (...files: string[]): void => {
    for (const file of files) {
      const path = join(project, file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, 'x');
    }
  };
  const move = (from: string, to: string): string => {
    const { outcome, path } = oracle.move(join(project, from), join(project, to));
    return `${outcome} ${path}`.trim();
  };
  afterEach(() => {
    rmSync(project, { recursive: true });
    mkdirSync(project);
  });

  it.each([
    ['with nothing in it', ['x/a/b'], 'x', 'y', 'free'],
    ['that becomes .git, with hooks', ['x/hooks/pre-commit'], 'x', '.git', 'refused hooks'],
    ['that becomes .git, without', ['x/a', 'x/info/y'], 'x', '.git', 'free'],
    ['that becomes .git, with a configuration nobody has judged', ['x/config'], 'x', '.git', 'refused config'],
    ['that becomes .git, with attributes deep down', ['x/info/attributes'], 'x', '.git', 'refused info/attributes'],
    ['that becomes a module', ['x/hooks/a'], 'x', '.git/modules/m', 'refused hooks'],
    ['that holds what becomes modules', ['x/m/hooks/a'], 'x', '.git/modules', 'refused m/hooks'],
    ['that becomes .github', ['x/ok', 'x/hooks/a.json'], 'x', '.github', 'refused hooks'],
    ['that becomes .github, with a link', ['x/copilot-x'], 'x', '.github', 'refused copilot-x'],
    ['that becomes .hg, with hooks', ['x/requires', 'x/hgrc'], 'x', '.hg', 'refused hgrc'],
    ['that becomes .jj, with settings', ['x/repo/config.toml'], 'x', '.jj', 'refused repo/config.toml'],
    ['that becomes what mise reads', ['x/config.toml'], 'x', '.config/mise', 'refused config.toml'],
    ['that leaves .github', ['.github/hooks/a'], '.github', 'x', 'refused hooks'],
    ['that comes out of the packages', ['node_modules/p/.claude/a'], 'node_modules/p', 'p', 'refused .claude'],
    ['that stays among the packages', ['node_modules/.p/.claude/a'], 'node_modules/.p', 'node_modules/p', 'free'],
    [
      'that becomes a package’s .git',
      ['node_modules/x/HEAD', 'node_modules/x/config'],
      'node_modules/x',
      'node_modules/y/.git',
      'refused config',
    ],
    ['a package that holds a repository', ['node_modules/p/.git/config'], 'node_modules/p', 'q', 'free'],
    ['that goes to the packages', ['p/.claude/a'], 'p', 'node_modules/p', 'refused .claude'],
    ['with protected names that stay so', ['x/.claude/a', 'x/.git/hooks/h', 'x/.env'], 'x', 'y/z', 'free'],
    ['with the instructions of agents', ['x/AGENTS.md'], 'node_modules', 'y', 'free'],
    ['a repository to a repository of another name', ['x/HEAD', 'x/config', 'x/hooks/h'], 'x', 'y', 'free'],
    ['a repository away from its name', ['.git/HEAD', '.git/config', '.git/hooks/h'], '.git', 'y', 'free'],
    ['what is called like a repository and is none', ['.git/hooks/h'], '.git', 'y', 'refused hooks'],
    ['a repository’s work trees', ['b/HEAD', 'b/worktrees/w/gitdir'], 'b', 'c', 'free'],
    [
      'a work tree’s repository, deeper',
      ['.git/worktrees/w/commondir'],
      '.git/worktrees/w',
      '.git/worktrees/a/w',
      'refused commondir',
    ],
    [
      'a work tree’s repository, out of it',
      ['.git/worktrees/w/HEAD', '.git/worktrees/w/commondir'],
      '.git/worktrees/w',
      'w',
      'refused commondir',
    ],
    [
      'a work tree’s repository, to another name',
      ['.git/worktrees/w/commondir'],
      '.git/worktrees/w',
      '.git/worktrees/v',
      'free',
    ],
    ['all work trees', ['.git/worktrees/w/commondir'], '.git/worktrees', '.git/modules', 'refused w/commondir'],
    [
      'a module that has work trees, deeper',
      ['.git/modules/m/HEAD', '.git/modules/m/worktrees/w/commondir'],
      '.git/modules/m',
      '.git/modules/a/m',
      'refused worktrees/w/commondir',
    ],
    [
      'a module that has work trees, to another name',
      ['.git/modules/m/worktrees/w/commondir'],
      '.git/modules/m',
      '.git/modules/n',
      'free',
    ],
    [
      'a repository that has work trees, away from its name',
      ['.git/HEAD', '.git/worktrees/w/commondir'],
      '.git',
      'y',
      'refused worktrees/w/commondir',
    ],
    ['what holds a repository with work trees', ['x/.git/HEAD', 'x/.git/worktrees/w/commondir'], 'x', 'y/z', 'free'],
    ['that becomes modules of a repository', ['b/HEAD', 'x/m/config'], 'x', 'b/modules', 'refused m/config'],
    ['that becomes a module of a module', ['x/config'], 'x', 's/.git/modules/a/modules/b', 'refused config'],
    ['out of the project', ['x/.claude/a'], 'x', '../../other', 'refused .claude'],
  ])('%s', (_what, files, from, to, outcome) => {
    lay('node_modules/y', ...files);
    expect(move(from, to)).toBe(outcome);
  });

  it('is not looked through for ever, and not through links', () => {
    lay('node_modules/p/a');
    symlinkSync('/', join(project, 'node_modules/p/root'));
    expect(move('node_modules/p', 'p')).toBe('free');
    execFileSync(
      'sh',
      ['-c', 'cd node_modules/p && for i in $(seq 210); do mkdir $i; (cd $i && touch $(seq 100)); done'],
      {
        cwd: project,
      },
    );
    expect(move('node_modules/p', 'p')).toBe('unknown');
    expect(move('node_modules/p', 'node_modules/q')).toBe('free');
    lay(`node_modules/deep/${'d/'.repeat(110)}x`);
    expect(move('node_modules/deep', 'deep')).toBe('unknown');
  });

  it('of which a link in it would lead to protected names is held back', () => {
    lay('x/y');
    symlinkSync('/tmp', join(project, 'x/info'));
    expect(move('x', '.git')).toBe('refused info');
    expect(move('x', 'z')).toBe('free');
  });
});
