import fc from 'fast-check';
import { compareClaudeState } from './claude-state.js';
import { compareGitConfig } from './git-config.js';
import { mayBeWorkTree, mayPoint } from './git-pointer.js';
import type { PointerKind } from './git-pointer.js';

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'utf8'));
const DIRS = ['/p/.git', '/p/sub/.git', '/p/.git/modules/m'];
const ROOTS = ['/p'];
const ask = (kind: PointerKind, at: string, after: string, before: string | null = null): boolean =>
  mayPoint({ kind, at, before: before === null ? null : bytes(before), after: bytes(after) }, DIRS, ROOTS).allow;

describe('the work tree of a submodule', () => {
  const CONFIG = '/p/.git/modules/lib/x/config';

  it.each(['../../../../lib/x', '../../../../other'])('may be %s', (value) => {
    expect(mayBeWorkTree(CONFIG, value)).toBe(true);
    const [before, after] = [
      bytes('[core]\n\tbare = false\n'),
      bytes(`[core]\n\tworktree = ${value}\n\tbare = false\n`),
    ];
    const judge = (path: string): boolean => mayBeWorkTree(CONFIG, path);
    expect(compareGitConfig(before, after, judge)).toEqual({
      changed: ['core.worktree'],
      refused: [],
      withoutPush: [],
    });
    expect(compareGitConfig(after, before, judge)).toEqual({
      changed: ['core.worktree'],
      refused: [],
      withoutPush: [],
    });
    expect(compareGitConfig(before, after)).toMatchObject({ refused: ['core.worktree'] });
  });

  it.each<[string, string]>([
    [CONFIG, '/p/lib/x'],
    [CONFIG, '../../../..'],
    [CONFIG, '../../../../../home'],
    [CONFIG, '../../../../lib/../../../home'],
    [CONFIG, '../../../../.git/hooks'],
    [CONFIG, '../../../../sub/.GIT'],
    [CONFIG, ''],
    ['/p/.git/config', '../lib'],
    ['/p/.git/modules/config', '../../x'],
    ['/p/node_modules/modules/x/config', '../../../x'],
  ])('may not, in %s, be %s', (at, value) => {
    expect(mayBeWorkTree(at, value)).toBe(false);
  });
});

describe('a pointer of git', () => {
  it.each<[PointerKind, string, string]>([
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.git/worktrees/wt\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: ../.git/worktrees/wt\n'],
    ['dot-git', '/p/lib/x/.git', 'gitdir: ../../.git/modules/lib/x\n'],
    ['dot-git', '/p/m/n/.git', 'gitdir: /p/.git/modules/m/modules/n'],
    ['commondir', '/p/.git/worktrees/wt/commondir', '../..\n'],
    ['gitdir', '/p/.git/worktrees/wt/gitdir', '/p/wt/.git\n'],
    ['gitdir', '/p/.git/worktrees/wt/gitdir', '../../../wt/.git\n'],
  ])('%s %s may say %j', (kind, at, text) => {
    expect(ask(kind, at, text)).toBe(true);
    expect(ask(kind, at, text, text)).toBe(true);
  });

  it.each<[PointerKind, string, string]>([
    ['dot-git', '/p/wt/.git', 'gitdir: /p/evil\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.git\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.git/worktrees\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.git/hooks/x\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.git/worktrees/../../evil\n'],
    // `link` may lead anywhere, and `..` from there.
    ['dot-git', '/p/wt/.git', 'gitdir: /p/link/../.git/worktrees/wt\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: link/../../.git/worktrees/wt\n'],
    ['gitdir', '/p/.git/worktrees/wt/gitdir', '/p/link/../wt/.git\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.gitx/worktrees/wt\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /outside/.git/worktrees/x\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: ../../../../..\n'],
    ['dot-git', '/p/wt/.git', 'gitdir:/p/.git/worktrees/wt\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.git/worktrees/wt\ngitdir: /x\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.git/worktrees/wt\r\n'],
    ['dot-git', '/p/wt/.git', 'gitdir: /p/.git/worktrees/a\0b\n'],
    ['dot-git', '/p/wt/.git', ''],
    ['dot-git', '/p/wt/.git', `gitdir: /p/.git/worktrees/${'a'.repeat(5_000)}`],
    ['commondir', '/p/.git/worktrees/wt/commondir', '/p/evil\n'],
    ['commondir', '/p/.git/worktrees/wt/commondir', '../../../evil\n'],
    ['commondir', '/p/evil/commondir', '/p/.git\n'],
    ['commondir', '/p/.git/commondir', '/p/sub/.git\n'],
    ['gitdir', '/p/.git/worktrees/wt/gitdir', '/home/.git\n'],
    ['gitdir', '/p/.git/worktrees/wt/gitdir', '/p/wt\n'],
    ['gitdir', '/p/evil/gitdir', '/p/wt/.git\n'],
  ])('%s %s may not say %j', (kind, at, text) => {
    expect(ask(kind, at, text)).toBe(false);
  });

  it('is never turned to another place', () => {
    expect(ask('dot-git', '/p/wt/.git', 'gitdir: /p/.git/worktrees/b', 'gitdir: /p/.git/worktrees/a')).toBe(false);
    expect(ask('dot-git', '/p/wt/.git', 'gitdir: ../.git/worktrees/a', 'gitdir: /p/.git/worktrees/a\n')).toBe(true);
  });

  it('is no UTF-8, no pointer', () => {
    const after = Uint8Array.from([...bytes('gitdir: /p/.git/worktrees/'), 0xff]);
    expect(mayPoint({ kind: 'dot-git', at: '/p/wt/.git', before: null, after }, DIRS, ROOTS)).toEqual({
      allow: false,
      target: null,
    });
  });

  it('leads into worktrees or modules of a repository that is known, whatever is said', () => {
    const part = fc.constantFrom('..', '.', '', '.git', 'worktrees', 'modules', 'p', 'a', 'hooks');
    fc.assert(
      fc.property(fc.boolean(), fc.array(part, { maxLength: 8 }), (absolute, parts) => {
        const text = `gitdir: ${absolute ? '/p/' : ''}${parts.join('/')}`;
        const { allow, target } = mayPoint(
          { kind: 'dot-git', at: '/p/wt/.git', before: null, after: bytes(text) },
          DIRS,
          ROOTS,
        );
        expect(allow).toBe(
          target !== null && DIRS.some((dir) => new RegExp(`^${dir}/(worktrees|modules)/.`).test(target)),
        );
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('the state of Claude Code', () => {
  const before = {
    numStartups: 3,
    mcpServers: { a: { command: 'x' } },
    projects: { '/p': { allowedTools: ['Read'], lastCost: 1 } },
  };
  const change = (after: unknown, was: unknown = before) => {
    const result = compareClaudeState(JSON.stringify(was), JSON.stringify(after));
    return result && { held: result.held, now: JSON.parse(result.text) as unknown };
  };

  it('passes as it is where nothing gives rights', () => {
    const after = {
      ...before,
      numStartups: 4,
      tipsHistory: { x: 1 },
      projects: { '/p': { ...before.projects['/p'], lastCost: 2 } },
    };
    const text = JSON.stringify(after);
    expect(compareClaudeState(JSON.stringify(before), text)).toEqual({ text, held: [] });
  });

  it('may gain members that say nothing yet: a new project', () => {
    const fresh = { allowedTools: [], mcpServers: {}, hasTrustDialogAccepted: false, mcpContextUris: [], lastCost: 0 };
    expect(change({ ...before, projects: { ...before.projects, '/q': fresh } })?.held).toEqual([]);
  });

  it.each<[string, Record<string, unknown>]>([
    ['mcpServers', { mcpServers: { a: { command: 'evil' } } }],
    ['mcpServers', { mcpServers: {} }],
    ['hooks', { hooks: { Stop: [], Start: 1 } }],
    ['apiKeyHelper', { apiKeyHelper: 'evil' }],
    ['env', { env: { PATH: '/x' } }],
    ['permissions', { permissions: { allow: ['Bash'] } }],
    ['bypassPermissionsModeAccepted', { bypassPermissionsModeAccepted: true }],
    ['customApiKeyResponses', { customApiKeyResponses: { approved: ['x'] } }],
    ['statusLine', { statusLine: { command: 'evil' } }],
    ['otelHeadersHelper', { otelHeadersHelper: 'evil' }],
  ])('keeps a change of %s for a person', (name, more) => {
    const result = change({ ...before, ...more, numStartups: 9 });
    expect(result?.held).toEqual([name]);
    expect(result?.now).toEqual({ ...before, numStartups: 9 });
  });

  it('keeps the same in every project, and what was there before stays', () => {
    const result = change({
      ...before,
      projects: {
        '/p': { allowedTools: ['Read', 'Bash'], lastCost: 5, hasTrustDialogAccepted: true },
        '/q': { mcpServers: { x: { command: 'evil' } }, enabledMcpjsonServers: ['x'], lastCost: 1 },
      },
    });
    expect(result?.held).toEqual([
      'projects./p.allowedTools',
      'projects./p.hasTrustDialogAccepted',
      'projects./q.enabledMcpjsonServers',
      'projects./q.mcpServers',
    ]);
    expect(result?.now).toEqual({
      ...before,
      projects: { '/p': { allowedTools: ['Read'], lastCost: 5 }, '/q': { lastCost: 1 } },
    });
  });

  it('keeps what a change takes away', () => {
    expect(change({ numStartups: 4 })).toEqual({
      held: ['mcpServers'],
      now: { numStartups: 4, mcpServers: before.mcpServers },
    });
  });

  it('is not written where it is no JSON object', () => {
    for (const text of ['', '[]', 'null', '{', '"x"', `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`])
      expect(compareClaudeState('{}', text)).toBeNull();
    expect(compareClaudeState('not JSON', '{"env": {"A": "1"}, "x": 1}')).toEqual({
      text: '{\n  "x": 1\n}\n',
      held: ['env'],
    });
  });

  it('may be long', () => {
    const text = JSON.stringify({ history: Array<number>(300_000).fill(1) });
    expect(compareClaudeState('{}', text)).toEqual({ text, held: [] });
  });

  it('cannot be changed through __proto__', () => {
    const result = compareClaudeState(
      '{}',
      '{"__proto__": {"mcpServers": {"a": 1}}, "mcpServers": {"a": 1}, "projects": {"__proto__": {"env": {"A": "1"}}}}',
    );
    expect(result?.held).toEqual(['mcpServers', 'projects.__proto__.env']);
    expect(JSON.stringify(JSON.parse(result?.text ?? ''))).toBe(
      '{"__proto__":{"mcpServers":{"a":1}},"projects":{"__proto__":{}}}',
    );
  });

  it('never changes what gives rights, whatever is written', () => {
    const key = fc.constantFrom('mcpServers', 'hooks', 'env', 'allowedTools', 'lastCost', 'theme');
    const members = fc.dictionary(key, fc.jsonValue({ maxDepth: 1 }));
    const state = fc
      .record({ top: members, projects: fc.dictionary(fc.constantFrom('/p', '/q'), members) })
      .map(({ top, projects }) => ({ ...top, projects }));
    const rights = (value: Record<string, unknown>): string =>
      canonical(
        ['mcpServers', 'hooks', 'env', 'allowedTools']
          .map((name) => value[name])
          .map((item) => (isNothing(item) ? null : item)),
      );
    // The order of members is nobody's business.
    const canonical = (value: unknown): string =>
      JSON.stringify(value, (_key, item: unknown) =>
        typeof item === 'object' && item !== null && !Array.isArray(item)
          ? Object.fromEntries(Object.entries(item).sort())
          : item,
      );
    const isNothing = (item: unknown): boolean =>
      item === undefined ||
      item === null ||
      item === false ||
      item === '' ||
      item === 0 ||
      (typeof item === 'object' && Object.keys(item).length === 0);
    fc.assert(
      fc.property(state, state, (was, now) => {
        const result = compareClaudeState(JSON.stringify(was), JSON.stringify(now));
        const written = JSON.parse(result?.text ?? 'null') as typeof now;
        expect(rights(written)).toBe(rights(JSON.parse(JSON.stringify(was)) as typeof was));
        for (const [path, project] of Object.entries(written.projects))
          expect(rights(project)).toBe(rights((JSON.parse(JSON.stringify(was)) as typeof was).projects[path] ?? {}));
      }),
      { numRuns: 500 },
    );
  });
});
