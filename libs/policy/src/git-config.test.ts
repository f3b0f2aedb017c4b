import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { compareGitConfig, isPlainUrl, NO_PUSH, parseGitConfig } from './git-config.js';

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'utf8'));
const BASE = `[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
[remote "origin"]
\turl = https://example.com/a.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
`;

/** What comes of adding lines to an ordinary configuration. */
function added(lines: string): string[] | string {
  const change = compareGitConfig(bytes(BASE), bytes(`${BASE}${lines}\n`));
  return 'fault' in change ? change.fault : change.refused;
}

describe('what git itself does with a configuration passes', () => {
  it.each([
    ['checkout -b with tracking', '[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x'],
    ['branch --edit-description', '[branch "x.y"]\n\tdescription = a\\nb'],
    ['pull.rebase on a branch', '[branch "x"]\n\trebase = true'],
    ['remote add, ssh', '[remote "up"]\n\turl = git@example.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/up/*'],
    ['remote add, path', '[remote "up"]\n\turl = /srv/git/a.git'],
    ['remote add, relative path', '[remote "up"]\n\turl = ../a.git'],
    ['a second fetch refspec', '[remote "origin"]\n\tfetch = +refs/tags/*:refs/tags/*'],
    ['remote set-url --push', '[remote "origin"]\n\tpushurl = ssh://git@example.com:22/a.git'],
    ['submodule add', '[submodule "lib/x"]\n\turl = https://example.com/x.git\n\tactive = true'],
    ['submodule update policy', '[submodule "x"]\n\tupdate = rebase\n\tpath = lib/x\n\tbranch = main'],
    [
      'sparse-checkout',
      '[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n[extensions]\n\tworktreeConfig = true\n[index]\n\tsparse = false',
    ],
    ['an identity', '[user]\n\tname = A\n\temail = a@b'],
    ['gc', '[gc]\n\tauto = 0'],
    ['a clone that leaves out blobs', '[remote "origin"]\n\tpromisor = true\n\tpartialclonefilter = blob:none'],
    ['the same of older versions', '[extensions]\n\tpartialClone = origin'],
    ['a remote with a name beyond ASCII', '[remote "b\u00fcro"]\n\turl = https://example.com/b.git'],
    ['a comment', '# nothing\n; nothing'],
  ])('%s', (_what, lines) => {
    expect(added(lines)).toEqual([]);
  });

  it('branch -d, remote remove: keys that are plain may go', () => {
    const before = `${BASE}[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n[remote "odd"]\n\turl = ext::sh\n`;
    expect(compareGitConfig(bytes(before), bytes(BASE))).toEqual({
      changed: ['branch.x.merge', 'branch.x.remote', 'remote.odd.url'],
      refused: [],
      withoutPush: [],
    });
  });

  it('what was there and stays is nobody’s business, wherever it moves', () => {
    const hooks = '[core]\n\thooksPath = .husky\n[filter "lfs"]\n\tclean = git-lfs clean -- %f\n';
    expect(compareGitConfig(bytes(BASE + hooks), bytes(`${hooks}${BASE}[user]\n\tname = x\n`))).toEqual({
      changed: ['user.name'],
      refused: [],
      withoutPush: [],
    });
  });
});

describe('what would run something, or lead elsewhere, does not', () => {
  it.each([
    ['[core]\n\tfsmonitor = ./x', ['core.fsmonitor']],
    ['[core]\n\thooksPath = .h', ['core.hookspath']],
    ['[CORE]\n\tHooksPath = .h', ['core.hookspath']],
    ['[core] hooksPath = .h', ['core.hookspath']],
    ['[core]\n\tsshCommand = x', ['core.sshcommand']],
    ['[core]\n\teditor = x', ['core.editor']],
    ['[core]\n\tpager = x', ['core.pager']],
    ['[core]\n\taskPass = x', ['core.askpass']],
    ['[core]\n\tgitProxy = x', ['core.gitproxy']],
    ['[core]\n\tattributesFile = x', ['core.attributesfile']],
    ['[core]\n\tworktree = /', ['core.worktree']],
    ['[core "x"]\n\tbare = true', ['core.x.bare']],
    ['[filter "x"]\n\tclean = x', ['filter.x.clean']],
    ['[filter "x"]\n\tprocess = x', ['filter.x.process']],
    ['[diff]\n\texternal = x', ['diff.external']],
    ['[diff "x"]\n\ttextconv = x', ['diff.x.textconv']],
    ['[diff "x"]\n\tcommand = x', ['diff.x.command']],
    ['[merge "x"]\n\tdriver = x', ['merge.x.driver']],
    ['[merge]\n\ttool = x', ['merge.tool']],
    ['[alias]\n\tst = !x', ['alias.st']],
    ['[credential]\n\thelper = !x', ['credential.helper']],
    ['[credential "https://x"]\n\thelper = x', ['credential.https://x.helper']],
    ['[include]\n\tpath = x', ['include.path']],
    ['[includeIf "gitdir:/"]\n\tpath = x', ['includeif.gitdir:/.path']],
    ['[gpg]\n\tprogram = x', ['gpg.program']],
    ['[gpg "ssh"]\n\tprogram = x', ['gpg.ssh.program']],
    ['[protocol "ext"]\n\tallow = always', ['protocol.ext.allow']],
    ['[uploadpack]\n\tpackObjectsHook = x', ['uploadpack.packobjectshook']],
    ['[url "ext::x"]\n\tinsteadOf = https://', ['url.ext::x.insteadof']],
    ['[http]\n\tproxy = x', ['http.proxy']],
    ['[gc]\n\trecentObjectsHook = x', ['gc.recentobjectshook']],
    ['[init]\n\ttemplateDir = x', ['init.templatedir']],
    ['[pull]\n\ttwohead = x', ['pull.twohead']],
    ['[user]\n\tsigningKey = x', ['user.signingkey']],
    ['[remote "x"]\n\turl = ext::sh -c x', ['remote.x.url']],
    ['[remote "x"]\n\turl = --upload-pack=x', ['remote.x.url']],
    ['[remote "x"]\n\turl = ssh://-oProxyCommand=x/y', ['remote.x.url']],
    ['[remote "x"]\n\turl = -oProxyCommand=x:y', ['remote.x.url']],
    ['[remote "x"]\n\turl', ['remote.x.url']],
    ['[remote "x"]\n\turl = https://a\\n/b', ['remote.x.url']],
    ['[remote "x"]\n\tvcs = x', ['remote.x.vcs']],
    ['[remote "x"]\n\tuploadpack = x', ['remote.x.uploadpack']],
    ['[remote "x"]\n\treceivepack = x', ['remote.x.receivepack']],
    ['[remote "origin"]\n\turl = ext::x', ['remote.origin.url']],
    ['[remote "--upload-pack=x"]\n\tpromisor = true', ['remote.--upload-pack=x.promisor']],
    ['[remote "-x"]\n\turl = https://a/b\n\tfetch = +a:b', ['remote.-x.fetch', 'remote.-x.url']],
    ['[remote "ext::x"]\n\tpromisor = true', ['remote.ext::x.promisor']],
    ['[remote ""]\n\tpromisor = true', ['remote..promisor']],
    ['[extensions]\n\tpartialClone = --upload-pack=x', ['extensions.partialclone']],
    ['[extensions]\n\tpartialClone', ['extensions.partialclone']],
    ['[branch "x"]\n\tremote = ext::x', ['branch.x.remote']],
    ['[branch "x"]\n\tpushRemote = -x', ['branch.x.pushremote']],
    ['[branch "x"]\n\tmergeOptions = -s x', ['branch.x.mergeoptions']],
    ['[submodule "x"]\n\tupdate = !x', ['submodule.x.update']],
    ['[submodule "x"]\n\turl = ext::x', ['submodule.x.url']],
    ['[submodule "x"]\n\turl = ../../../:x', ['submodule.x.url']],
    ['[submodule "x"]\n\turl = "../a\\nb"', ['submodule.x.url']],
    ['[submodule "x"]\n\turl = -x', ['submodule.x.url']],
    ['[submodule "../../x"]\n\turl = https://a/b', ['submodule.../../x.url']],
    ['[submodule "x"]\n\tpath = ../x', ['submodule.x.path']],
    ['[submodule "x"]\n\tpath = .GIT/hooks', ['submodule.x.path']],
    ['[submodule "x"]\n\tpath = -x', ['submodule.x.path']],
    ['[a.b "c"]\n\td = 1', ['a.b.c.d']],
    ['[remote.origin]\n\tvcs = x', ['remote.origin.vcs']],
    ['[core]\n\tbare = "\\\n"\n\thooksPath = x', ['core.hookspath']],
    ['[core]\r\n\thooksPath = x\r', ['core.hookspath']],
    ['[core]\n\tbare = true # \\\n\thooksPath = x', ['core.hookspath']],
    ['[user]\n\tname = "# not a comment"\n\temail = a ; b\n[core]\n\tpager = x', ['core.pager']],
  ])('%j', (lines, refused) => {
    expect(added(lines)).toEqual(refused);
  });

  it('taking out what decides what runs', () => {
    expect(compareGitConfig(bytes(`${BASE}[core]\n\thooksPath = .h\n`), bytes(BASE))).toEqual({
      changed: ['core.hookspath'],
      refused: ['core.hookspath'],
      withoutPush: [],
    });
  });

  it('a second value of a key that had one', () => {
    const before = bytes(`${BASE}[core]\n\tfsmonitor = false\n`);
    expect(compareGitConfig(before, bytes(`${BASE}[core]\n\tfsmonitor = false\n\tfsmonitor = ./x\n`))).toHaveProperty(
      'refused',
      ['core.fsmonitor'],
    );
  });

  it('all of a file that was not there, or that nobody could read before', () => {
    expect(compareGitConfig(bytes(''), bytes('[core]\n\thooksPath = x\n'))).toHaveProperty('refused', [
      'core.hookspath',
    ]);
    expect(compareGitConfig(bytes('[core\n'), bytes(`${BASE}[alias]\n\tx = !x\n`))).toHaveProperty('refused', [
      'alias.x',
    ]);
  });

  it.each([
    ['[core', 'bad-section'],
    ['[]\n\ta = 1', 'bad-section'],
    ['[.a]\n\tb = 1', 'bad-section'],
    ['[a "b]\n\tc = 1', 'bad-section'],
    ['[a "b" c]\n\td = 1', 'bad-section'],
    ['[a_b]\n\tc = 1', 'bad-section'],
    ['[a]\n\t1b = 1', 'bad-name'],
    ['[a]\n\tb c = 1', 'bad-name'],
    ['[a]\n\tb: 1', 'bad-name'],
    ['[a]\n\tb = "x', 'bad-value'],
    ['[a]\n\tb = \\x', 'bad-value'],
    ['[a]\n\tb = \0', 'has-nul'],
  ])('%j, which git does not read', (lines, fault) => {
    expect(added(lines)).toBe(fault);
  });

  it('too much of it', () => {
    expect(parseGitConfig(new Uint8Array(2 * 1024 * 1024))).toHaveProperty('fault', 'too-long');
    expect(parseGitConfig(bytes(`[a]\n${'b\n'.repeat(30_000)}`))).toHaveProperty('fault', 'too-long');
    // Each key holds its header: a long one times many entries would be gigabytes.
    for (const header of [`[a "${'b'.repeat(2_000)}"]`, `[${'a'.repeat(2_000)}]`])
      expect(parseGitConfig(bytes(`${header}\nc\n`))).toEqual({ fault: 'too-long', line: 1 });
  });
});

describe('where a push goes', () => {
  const outside = (folder: string): boolean => folder.startsWith('/srv/');
  const change = (before: string, after: string): unknown => {
    const found = compareGitConfig(bytes(BASE + before), bytes(BASE + after), () => false, outside);
    return 'fault' in found ? found.fault : [found.refused, found.withoutPush];
  };
  const up = (...lines: string[]): string => `[remote "up"]\n${lines.map((line) => `\t${line}\n`).join('')}`;
  const on = (remote: string): string => `[branch "x"]\n\tremote = ${remote}\n`;

  it.each([
    ['to another machine', up('url = a:b'), [], []],
    ['to a folder that no session writes', up('url = /srv/a.git'), [], []],
    ['to any other folder', up('url = /p/a.git'), [], ['up']],
    ['to a folder from here', up('url = ../a.git'), [], ['up']],
    ['to a file URL', up('url = file:///p/a'), [], ['up']],
    ['to a file URL that is written otherwise', up('url = file://%2fp'), ['remote.up.url'], ['up']],
    ['to one of two', up('url = a:b', 'url = /p/a'), [], ['up']],
    ['elsewhere than a fetch', up('url = /p/a', 'pushurl = a:b'), [], []],
    ['to a folder, said by itself', up('url = a:b', 'pushurl = /p/a'), ['remote.up.pushurl'], []],
    ['nowhere, as it is held', up('url = /p/a', `pushurl = ${NO_PUSH}`), [], []],
    ['of a branch to a remote', up('url = a:b') + on('up'), [], []],
    ['of a branch to what is no remote', on('p'), ['branch.x.remote'], []],
    ['of a branch to a remote without a place', up('fetch = a') + on('up'), ['branch.x.remote'], []],
    ['of a branch to itself', on('.'), [], []],
    ['of a branch to another machine', on('https://a/b'), [], []],
    ['of a branch to a folder', on('/p/a'), ['branch.x.remote'], []],
  ])('%s', (_what, lines, refused, held) => {
    expect(change('', lines)).toEqual([refused, held]);
  });

  it('a remote does not go from under a branch, whose name for it would be a folder; what a person has said stays', () => {
    expect(change(up('url = a:b') + on('up'), on('up'))).toEqual([['remote.up.url'], []]);
    expect(change(up('url = a:b') + on('up'), '')).toEqual([[], []]);
    expect(change(up('url = /p/a', 'pushurl = a:b'), up('url = /p/a'))).toEqual([[], ['up']]);
    expect(change(up('url = /p/a'), up('url = /p/a', 'fetch = a'))).toEqual([[], []]);
  });
});

describe('isPlainUrl', () => {
  it.each([
    'https://a/b',
    'http://a/b',
    'ssh://git@a:22/b',
    'git://a/b',
    'git+ssh://a/b',
    'file:///a',
    'git@a:b',
    'a:b',
    '[::1]:b',
    '/a/b',
    '../a',
    'a/b',
  ])('takes %s', (url) => {
    expect(isPlainUrl(url)).toBe(true);
  });
  it.each([
    '',
    'ext::sh',
    'fd::17',
    'a::b',
    'ftp://a/b',
    'ssh://-x/b',
    'ssh://u@-x/b',
    'ssh://%2dx/b',
    'ssh:///b',
    '-a',
    '-a:b',
    'u@-a:b',
    'a:-b',
    '[-a]:b',
    'ssh://[-a]/b',
    'https://a b',
    'https://a\u0000b',
    'file://a/b',
    'HTTPS://a',
  ])('refuses %j', (url) => {
    expect(isPlainUrl(url)).toBe(false);
  });
});

describe('beside git', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nd7-git-config-'));
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  /** What git reads of each file: key and value, in order; undefined where it refuses. One shell for all: a start from here is dear. */
  function askGit(contents: Uint8Array[]): ([string, string | null][] | undefined)[] {
    for (const [i, content] of contents.entries()) writeFileSync(join(folder, `${i}.config`), content);
    const loop = `i=0; while [ $i -lt ${contents.length} ]; do git config --file $i.config --no-includes --null --list >$i.out 2>/dev/null || rm $i.out; i=$((i+1)); done`;
    const run = spawnSync('sh', ['-c', loop], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: folder, GIT_CONFIG_NOSYSTEM: '1' },
    });
    if (run.error) throw run.error;
    return contents.map((_, i) => {
      const file = join(folder, `${i}.out`);
      if (!existsSync(file)) return undefined;
      const entries = readFileSync(file, 'latin1').split('\0').slice(0, -1);
      rmSync(file);
      return entries.map((entry) => {
        const cut = entry.indexOf('\n');
        return cut < 0 ? [entry, null] : [entry.slice(0, cut), blanks(entry.slice(cut + 1))];
      });
    });
  }

  const read = (content: Uint8Array): [string, string | null][] | undefined => {
    const ours = parseGitConfig(content);
    return 'fault' in ours
      ? undefined
      : ours.entries.map(({ key, value }) => [key, value === null ? null : blanks(value)]);
  };

  /** Older versions of git turn every blank in a value into a space. */
  const blanks = (value: string): string => value.replace(/[\t\r]/g, ' ');

  const header = fc.constantFrom(
    '[core]',
    '[Core "X y"]',
    '[a.B]',
    '[a.b "C"]',
    '[remote "o\\"r\\\\"]',
    '[x  "y"]',
    '[a]b=1',
    '[ \t"x"]',
    '[x"y"]',
    '[]',
    '[a ]',
  );
  const line = fc.constantFrom(
    ...[
      'name = v',
      'Name=v w ',
      'flag',
      'n = "q # r" s',
      'n = a # b',
      'n = a;b',
      'n = a\\',
      'n = \\t\\n\\b\\\\',
      'n =',
      '  n\t=\t"" x',
      'n = a"b"c',
    ],
    ...[
      'a-1 = 2',
      'n = \\"',
      'n = \u00e9',
      '# c',
      '; c',
      '',
      '\t',
      'n = a\tb  c',
      'n = \r x',
      'n = "a \\',
      'b"',
      'n = \\q',
      '1a = 2',
      'n ; c',
      'n = "a',
    ],
  );
  const odd = fc.oneof(
    fc.constantFrom('\\', '"', '=', ']', '\r', '\v', '\f', '\uFEFF'),
    fc.string({ unit: fc.constantFrom(...'[]"\\= \t#;abAB.-1\r'), maxLength: 12 }),
  );
  const end = fc.constantFrom('\n', '\n', '\n', '\r\n', '');
  const ended = (piece: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.tuple(piece, end).map((parts) => parts.join(''));
  const block = fc
    .tuple(ended(header), fc.array(ended(line), { maxLength: 3 }))
    .map(([first, rest]) => first + rest.join(''));
  const file = fc
    .array(fc.oneof({ arbitrary: block, weight: 6 }, { arbitrary: ended(odd), weight: 1 }), { maxLength: 3 })
    .map((parts) => parts.join(''));

  it('reads what git reads, and takes nothing that git refuses', () => {
    const files = fc.sample(file, 200).map(bytes);
    const theirs = askGit(files);
    let agreed = 0;
    for (const [i, content] of files.entries()) {
      const ours = read(content);
      // Ours may be the stricter one: what it refuses does not pass.
      if (ours === undefined) continue;
      agreed++;
      expect({ file: Buffer.from(content).toString(), entries: ours }).toEqual({
        file: Buffer.from(content).toString(),
        entries: theirs[i],
      });
    }
    expect(agreed).toBeGreaterThan(40);
    const stricter = files
      .filter((content, i) => read(content) === undefined && theirs[i] !== undefined)
      .map((content) => Buffer.from(content).toString());
    expect(stricter.length).toBeLessThan(files.length / 10);
  });

  it('takes every ordinary file that git takes', () => {
    const section = fc.tuple(
      fc.constantFrom('core', 'branch', 'remote', 'x-y'),
      fc.option(fc.string({ unit: fc.constantFrom(...'ab/."\\ -_'), minLength: 1, maxLength: 6 })),
    );
    const entry = fc.tuple(
      fc.constantFrom('url', 'merge', 'fileMode'),
      fc.string({ unit: fc.constantFrom(...'ab/"\\ #;=:'), maxLength: 8 }),
    );
    const quoted = (text: string): string => text.replace(/["\\]/g, '\\$&');
    const ordinary = fc
      .array(fc.tuple(section, fc.array(entry, { maxLength: 3 })), { maxLength: 4 })
      .map((sections) =>
        sections
          .map(
            ([[name, below], entries]) =>
              `[${name}${below === null ? '' : ` "${quoted(below)}"`}]\n${entries.map(([key, value]) => `\t${key} = "${quoted(value)}"\n`).join('')}`,
          )
          .join(''),
      );
    const files = fc.sample(ordinary, 60).map(bytes);
    expect(files.map(read)).toEqual(askGit(files));
  });
});
