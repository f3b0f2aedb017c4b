import { execFileSync } from 'node:child_process';
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FileNode, Ruleset } from '@nd7/policy';
import fc from 'fast-check';
import { Machine } from '../session.fixture.js';
import { Aliases } from './aliases.js';
import { buildView } from './build.js';
import { parseIndex } from './git-index.js';
import { resolvePath } from './resolve.js';
import { countsAsGitDir, isGitDir, scan } from './scan.js';
import { boundSockets } from './sockets.js';

let base: string;
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-view-')));
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

describe('the git index', () => {
  const repository = (): { git: (...args: string[]) => string; folder: string } => {
    const folder = mkdtempSync(join(base, 'repo-'));
    const git = (...args: string[]): string => execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8' });
    git('init', '-q');
    for (const name of ['a', 'a.b', 'dir/one', 'dir/one-more', 'dir/öne', 'x'.repeat(200), 'dir2/deep/er/file']) {
      mkdirSync(join(folder, name, '..'), { recursive: true });
      writeFileSync(join(folder, name), name);
    }
    git('add', '.');
    return { git, folder };
  };

  it.each(['2', '3', '4'])('is read as git reads it, version %s', (version) => {
    const { git, folder } = repository();
    if (version === '3') {
      writeFileSync(join(folder, 'later'), 'x');
      git('add', '--intent-to-add', 'later');
    } else git('update-index', '--index-version', version);
    const bytes = readFileSync(join(folder, '.git/index'));
    expect(bytes.readUInt32BE(4)).toBe(Number(version));
    const listed = git('ls-files', '-s', '-z')
      .split('\0')
      .filter((line) => line !== '')
      .map((line) => [line.slice(line.indexOf('\t') + 1), line.split(' ')[1]]);
    expect([...parseIndex(bytes)]).toEqual(listed);
  });

  it('is refused or read, never followed out of its bytes, whatever it holds', () => {
    const { folder } = repository();
    const good = readFileSync(join(folder, '.git/index'));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 6 }),
        fc.nat(good.length),
        (changes, length) => {
          const bytes = Buffer.from(good.subarray(0, length));
          for (const [at, value] of changes) if (at < length) bytes[at] = value;
          try {
            return [...parseIndex(bytes).values()].every((id) => typeof id === 'string');
          } catch (error) {
            // Errors of Buffer come from outside of the test's realm.
            return /Error/.test(String(error));
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('links', () => {
  it('lead where the kernel says they lead, and are all named', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    const target = fc.oneof(
      fc.array(fc.oneof(name, fc.constant('..')), { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/')),
      fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => `ROOT/${parts.join('/')}`),
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.array(name, { minLength: 1, maxLength: 3 }), fc.option(target)), { maxLength: 10 }),
        fc.array(name, { minLength: 1, maxLength: 4 }),
        (entries, asked) => {
          const top = mkdtempSync(join(base, 'links-'));
          // So deep that ten links of four steps up lead nowhere else.
          const root = join(top, 'r/'.repeat(40));
          mkdirSync(root, { recursive: true });
          try {
            for (const [parts, to] of entries) {
              try {
                if (to === null) mkdirSync(join(root, ...parts), { recursive: true });
                else symlinkSync(to.replace('ROOT', root), join(root, ...parts));
              } catch {
                // Something is there already, or nothing is above it.
              }
            }
            const path = join(root, ...asked);
            let real: string | undefined;
            try {
              real = realpathSync.native(path);
            } catch {
              real = undefined;
            }
            expect(resolvePath(path)?.path).toBe(real);
          } finally {
            rmSync(top, { recursive: true, force: true });
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('are given with the path', () => {
    mkdirSync(join(base, 'target'));
    symlinkSync('target', join(base, 'one'));
    symlinkSync('one', join(base, 'two'));
    expect(resolvePath(join(base, 'two'))).toEqual({
      path: join(base, 'target'),
      links: [join(base, 'two'), join(base, 'one')],
    });
    expect(resolvePath(join(base, 'two/none'))).toBeUndefined();
    expect(resolvePath('/')).toEqual({ path: '/', links: [] });
  });
});

describe('the search', () => {
  let machine: Machine;
  beforeEach(() => {
    machine = new Machine(undefined);
  });
  afterEach(() => machine.close());
  const below = (name: string): string => join(machine.project, name);

  it('finds names at any depth, in any case, and not among packages', () => {
    for (const name of [
      '.envrc',
      'a/b/.ENVRC',
      'node_modules/x/.envrc',
      '.env',
      'a/.env',
      'a/.env.example',
      'node_modules/y/.env',
    ])
      machine.file(`project/${name}`);
    machine.protect('.envrc');
    machine.mask('**/.env', { exceptTracked: false, notBelow: ['node_modules'] });
    const found = scan(machine.ruleset());
    expect(found.leaves.map(({ path }) => path).sort()).toEqual([below('.envrc'), below('a/b/.ENVRC')]);
    expect(found.masked.sort()).toEqual([below('.env'), below('a/.env')]);
    expect(found.unseen).toEqual([]);
    // Somebody who wants them among packages too has them looked for there.
    machine.mask('node_modules/**/.env');
    expect(scan(machine.ruleset()).masked).toContain(below('node_modules/y/.env'));
  });

  it('finds names in folders that are called as those of git are, and what git holds', () => {
    execFileSync('git', ['init', '-q', machine.project]);
    for (const name of ['src/objects/.env', '.git/objects/.env', 'held/.env']) machine.file(`project/${name}`);
    execFileSync('git', ['-C', machine.project, 'add', 'held/.env']);
    machine.mask('**/.env');
    const { masked, held } = scan(machine.ruleset());
    expect([masked, held]).toEqual([[below('src/objects/.env')], [below('held/.env')]]);
  });

  it('knows git directories by what they hold, whatever they are called', () => {
    execFileSync('git', ['init', '-q', '--bare', below('some.thing')]);
    execFileSync('git', ['init', '-q', below('sub')]);
    mkdirSync(below('fake/.git/hooks'), { recursive: true });
    machine.protect('hooks', { at: 'git-dir' });
    const found = scan(machine.ruleset());
    expect(found.gitDirs.sort()).toEqual([below('some.thing'), below('sub/.git')]);
    expect(found.leaves.map(({ path }) => path).sort()).toEqual([below('some.thing/hooks'), below('sub/.git/hooks')]);
    expect(isGitDir(below('fake/.git'))).toBe(false);
    // What is called like one, begins to be one or lies in one counts as one for the supervisor.
    machine.file('project/begun/HEAD');
    const counted = ['fake/.git', 'begun', 'some.thing', 'some.thing/modules/x', 'fake', 'fake/modules/x'];
    expect(counted.filter((name) => countsAsGitDir(below(name)))).toEqual(counted.slice(0, 4));
  });

  it('stops after its measure and says what it has not seen', () => {
    for (let i = 0; i < 30; i++) machine.file(`project/many/${i}/.envrc`);
    machine.protect('.envrc');
    const found = scan(machine.ruleset(), 10);
    expect(found.unseen.length).toBe(22);
    expect(found.leaves.length).toBe(8);
    expect(buildView(machine.ruleset(), []).shortfalls).toEqual([]);
  });

  it('leaves mediated files to a supervisor where there is one, and only those', () => {
    for (const name of ['.envrc', 'config']) machine.file(`project/${name}`);
    machine.protect('.envrc');
    machine.protect('config', { treatment: 'mediate', mediator: 'git-config' });
    const readOnly = (isObserved: boolean): string[] =>
      buildView(machine.ruleset(), [], [], isObserved)
        .view.filter(({ kind, path }) => kind === 'show' && path.startsWith(machine.project))
        .map(({ path }) => path);
    expect([readOnly(false), readOnly(true)]).toEqual([[below('.envrc'), below('config')], [below('.envrc')]]);
  });

  it('lets out of a protected folder what is recorded in it, unless a link leads there', () => {
    for (const name of ['plugins/store/a', 'other/x']) machine.file(`project/${name}`);
    symlinkSync('../other', below('plugins/linked'));
    machine.protect('plugins');
    for (const name of ['plugins/store', 'plugins/linked', 'other']) machine.protect(name, { treatment: 'record' });
    const { view, stateOf } = buildView(machine.ruleset(), []);
    const mounts = view
      .filter(({ path }) => path.startsWith(`${machine.project}/`))
      .map(({ kind, path }) => `${kind} ${path}`);
    expect(mounts).toEqual([`show ${below('plugins')}`, `writable ${below('plugins/store')}`]);
    expect(stateOf(below('plugins/store/a'))).toBe('writable');
  });

  it('keeps what a rule names for writing in the temporary folder', () => {
    mkdirSync(join(machine.home, '.state'));
    const ruleset = machine.ruleset();
    const [tmp, home] = [machine.base, join(machine.home, '.state')];
    const node = (path: string): FileNode => ({
      ...(ruleset.files[0] as FileNode),
      path,
      access: { read: true, write: true, exec: true },
    });
    // As the compiler has it: what is as the folder above has no node of its own.
    const compiled = {
      ...ruleset,
      tmp,
      files: [ruleset.files[0] as FileNode, node(tmp)],
      reasons: [...ruleset.reasons, node(tmp), node(home)],
    };
    const writable = (of: Ruleset): string[] =>
      buildView(of, [])
        .view.filter(({ kind }) => kind === 'writable')
        .map(({ path }) => path);
    expect(writable(compiled)).toContain(home);
    expect(writable({ ...compiled, privateTmp: false })).not.toContain(home);
  });

  it('names protected files that have other names', () => {
    linkSync(machine.file('project/.envrc'), below('other-name'));
    machine.protect('.envrc');
    expect(buildView(machine.ruleset(), []).shortfalls).toEqual([
      { path: below('.envrc'), what: 'protected, but it has other names' },
    ]);
  });

  it('does not follow links, and hides what a masked link leads to unless the project stands on it', () => {
    const secret = machine.file('keys/one', 'x');
    symlinkSync(secret, below('.env'));
    symlinkSync(machine.home, below('.env.home'));
    symlinkSync(machine.project, below('around'));
    machine.mask('**/.env*');
    const { view, found } = buildView(machine.ruleset(), []);
    expect(found.masked.sort()).toEqual([below('.env'), below('.env.home')]);
    expect(view.filter(({ kind }) => kind === 'cover').map(({ path }) => path)).toContain(secret);
    expect(view.some(({ kind, path }) => kind === 'cover' && path === machine.home)).toBe(false);
  });
});

describe('other paths to one file', () => {
  it('are found by the table of mounts, where the same file is there', () => {
    const [real, table] = [join(base, 'a\\b real'), join(base, 'mountinfo')];
    for (const name of ['real/u/.ssh', 'other/.ssh', 'sub']) mkdirSync(join(real, name), { recursive: true });
    // In place of a bind mount: a link leads to the same file, as one would.
    symlinkSync(join(real, 'real'), join(base, 'bound'));
    const line = (device: string, root: string, at: string): string =>
      `1 1 ${device} ${[root, at].map((path) => path.replaceAll('\\', '\\134').replaceAll(' ', '\\040')).join(' ')} rw - x x rw`;
    const key = join(real, 'real/u/.ssh');
    const found = (...lines: string[]): string[] => {
      writeFileSync(table, `${['garbage', ...lines].join('\n')}\n`);
      return new Aliases(table).of(key);
    };
    const own = line('8:1', '/@home', join(real, 'real'));
    expect(found(own, line('8:1', '/@home', join(base, 'bound')))).toEqual([join(base, 'bound/u/.ssh')]);
    expect(found(own, line('8:1', '/', join(base, 'bound')))).toEqual([]);
    expect(found(own, line('8:1', '/@home/u', join(base, 'bound/u')))).toEqual([join(base, 'bound/u/.ssh')]);
    expect(found(own, line('8:1', '/@home/u', join(real, 'other')))).toEqual([]);
    expect(found(own, line('8:2', '/@home', join(base, 'bound')))).toEqual([]);
    expect(found()).toEqual([]);
  });
});

describe('sockets that are bound outside', () => {
  it('are found by the kernel’s table, also with blanks in their names', async () => {
    const path = join(base, 'a socket.sock');
    const server = createServer();
    await new Promise<void>((done) => server.listen(path, done));
    try {
      expect(boundSockets()).toContain(path);
    } finally {
      server.close();
    }
    expect(boundSockets(join(base, 'none'))).toEqual([]);
  });
});
