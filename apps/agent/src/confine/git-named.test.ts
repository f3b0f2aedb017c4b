// What git's configuration has run from the project, read from files as git writes them.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { namedByGit } from './git-named.js';

let home: string;
let project: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-named-')));
  project = join(home, 'p');
  execFileSync('git', ['init', '-q', project]);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const git = (key: string, value: string): unknown =>
  execFileSync('git', ['-C', project, 'config', '--add', key, value]);
const named = (): string[] => namedByGit(project, home).map((path) => path.slice(project.length + 1));

it.each([
  ['core.hooksPath', '.githooks', ['.githooks']],
  ['core.hooksPath', '~/p/hooks', ['hooks']],
  ['include.path', '../.gitconfig', ['.gitconfig']],
  ['includeIf.gitdir:~/.path', '../own config', ['own config']],
  ['alias.x', '!sh ./tools/x.sh | "./tools/y"', ['tools/x.sh', 'tools/y']],
  ['filter.x.clean', 'tools/clean %f', ['tools/clean']],
  ['diff.x.textconv', '../p/tools/../t', ['t']],
  ['core.fsmonitor', '.git/hooks/watch', ['.git/hooks/watch']],
  ['filter.lfs.clean', 'git-lfs clean -- %f', []],
  ['core.excludesFile', './ignored', []],
  ['remote.origin.url', './a.git', []],
  ['core.hooksPath', '/usr/share/hooks', []],
  ['core.hooksPath', '.', []],
])('%s = %s', (key, value, paths) => {
  git(key, value);
  expect(named()).toEqual(paths);
});

it('a link on the way is named and what it leads to, what an included file says, and what the person has for every repository', () => {
  mkdirSync(join(project, 'tools'));
  symlinkSync('tools', join(project, 'link'));
  writeFileSync(join(home, '.gitconfig'), '[core]\n\thooksPath = link/hooks\n[include]\n\tpath = more\n');
  writeFileSync(join(home, 'more'), '[core]\n\tfsmonitor = ./watch\n[include]\n\tpath = more\n');
  expect(named()).toEqual(['link/hooks', 'tools/hooks', 'watch']);
});

it('in a linked work tree what its repository says', () => {
  git('core.hooksPath', '.githooks');
  git('user.name', 'a');
  git('user.email', 'a@b');
  execFileSync('git', ['-C', project, 'commit', '-q', '--allow-empty', '-m', 'x']);
  execFileSync('git', ['-C', project, 'worktree', 'add', '-q', join(home, 'w')]);
  expect(namedByGit(join(home, 'w'), home)).toEqual([join(home, 'w/.githooks')]);
});

it('nothing of what cannot be read, or is no configuration', () => {
  writeFileSync(join(project, '.git/config'), '[core\n');
  execFileSync('mkfifo', [join(home, '.gitconfig')]);
  expect(named()).toEqual([]);
  rmSync(join(project, '.git'), { recursive: true });
  expect(named()).toEqual([]);
});
