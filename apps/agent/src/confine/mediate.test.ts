// What a session may write into files that are mediated, and what is recorded and told of what it was refused.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compile, leafAt, NO_PUSH, type Mediator, type Ruleset } from '@nd7/policy';
import { judgeChange, type Judgement } from './judge.js';
import { Mediation, summary, type ObservedEvent } from './mediate.js';

let project: string;
let ruleset: Ruleset;
beforeAll(() => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-mediate-')));
  project = join(home, 'app');
  mkdirSync(join(project, '.git/worktrees'), { recursive: true });
  mkdirSync(join(project, 'node_modules/evil.git'), { recursive: true });
  symlinkSync('node_modules/evil.git', join(project, 'link.git'));
  ruleset = compile({
    places: { home, project, tmp: '/tmp', nd7Home: join(home, '.nd7'), variables: {} },
    user: null,
    project: null,
    team: null,
    session: { profile: null, packs: ['claude-code'], policy: null },
    grants: [],
    files: new Map(),
  }).ruleset;
});
afterAll(() => rmSync(join(project, '..'), { recursive: true, force: true }));

const bytes = (text: string | undefined): Uint8Array | undefined =>
  text === undefined ? undefined : Buffer.from(text);
function change(name: string, after: string, before?: string): Judgement {
  const path = join(project, name);
  return judgeChange(ruleset, {
    leaf: leafAt(ruleset.leaves, path),
    path,
    before: bytes(before),
    after: Buffer.from(after),
  });
}

describe('a change of git’s configuration', () => {
  const BASE = '[core]\n\tbare = false\n';

  it('passes where it runs nothing, and is refused by its key where it does', () => {
    const origin = `${BASE}[remote "origin"]\n\turl = https://example.com/x\n`;
    expect(change('.git/config', `${origin}[branch "x"]\n\tremote = origin\n`, origin)).toMatchObject({
      allow: true,
      changed: ['branch.x.remote'],
    });
    expect(change('.git/config', `${BASE}[core]\n\thooksPath = .husky/_\n`, BASE)).toMatchObject({
      allow: false,
      held: ['core.hookspath'],
    });
    expect(change('.git/config', '[core', BASE)).toMatchObject({ allow: false, held: ['line 1: bad-section'] });
    // Taking the file away is a change to nothing.
    expect(change('.git/config', '', BASE).allow).toBe(true);
    expect(change('.git/config', '', `${BASE}[core]\n\thooksPath = .husky\n`).allow).toBe(false);
  });

  it('is given a place for pushes that is none where one would run hooks of the session', () => {
    const given = (url: string): string | undefined => {
      const { allow, content } = change('.git/config', `${BASE}[remote "up"]\n\turl = ${url}\n`, BASE);
      return allow ? ((content && Buffer.from(content).toString()) ?? '') : undefined;
    };
    expect(['https://example.com/x', '/nowhere/a.git', 'file:///nowhere/a'].map(given)).toEqual(['', '', '']);
    for (const url of [
      `${project}/a`,
      `file://${project}/a`,
      'a',
      '../../../nowhere',
      '/nowhere/../tmp/a',
      `/proc/self/root${project}`,
    ])
      expect([url, given(url)]).toEqual([
        url,
        `${BASE}[remote "up"]\n\turl = ${url}\n\n[remote "up"]\n\tpushurl = ${NO_PUSH}\n`,
      ]);
  });

  it('says where a submodule’s work tree is, in its own repository', () => {
    const tree = (path: string): string => `${BASE}[core]\n\tworktree = ${path}\n`;
    expect(change('.git/modules/sub/config', tree('../../../sub'), BASE).allow).toBe(true);
    expect(change('.git/modules/sub/config', tree('../../../..'), BASE).allow).toBe(false);
    expect(change('.git/config', tree('../sub'), BASE).allow).toBe(false);
  });
});

describe('a pointer of git', () => {
  it.each([
    ['wt/.git', () => `gitdir: ${project}/.git/worktrees/wt\n`],
    ['sub/.git', () => 'gitdir: ../.git/modules/sub\n'],
    ['clone/sub/.git', () => 'gitdir: ../.git/modules/sub\n'],
    ['.git/worktrees/wt/commondir', () => '../..\n'],
    ['.git/worktrees/wt/gitdir', () => `${project}/wt/.git\n`],
  ])('%s may be made', (name, content) => {
    expect(change(name, content())).toMatchObject({ allow: true, held: [] });
    expect(change(name, content(), content())).toMatchObject({ allow: true });
  });

  it.each([
    ['a folder that is no repository’s', 'wt/.git', () => `gitdir: ${project}/evil\n`],
    ['a repository among packages', 'wt/.git', () => `gitdir: ${project}/node_modules/evil.git/modules/m\n`],
    ['a repository behind a link', 'wt/.git', () => `gitdir: ${project}/link.git/modules/m\n`],
    // Whose folder could be moved away, and a link made of its name.
    ['a repository that could be moved', 'wt/.git', () => `gitdir: ${project}/store.git/worktrees/wt\n`],
    ['one that is not there yet', 'wt/.git', () => 'gitdir: ../rep/modules/m\n'],
    ['one below a name in .git that may be a link', 'wt/.git', () => 'gitdir: ../.git/foo/modules/m\n'],
    ['one in a folder that could be moved', 'wt/.git', () => `gitdir: ${project}/clone/.git/worktrees/wt\n`],
    ['a repository of the temporary folder', 'wt/.git', () => 'gitdir: /tmp/evil.git/modules/m\n'],
    ['a repository of somebody else', 'wt/.git', () => 'gitdir: /home/other/.git/modules/m\n'],
    ['a common folder elsewhere', '.git/worktrees/wt/commondir', () => '/tmp/evil\n'],
    ['a folder that is a repository by it only', 'y/worktrees/wt/commondir', () => '../..\n'],
    ['one among modules', '.git/modules/a/b/worktrees/wt/commondir', () => '../..\n'],
    ['a work tree outside', '.git/worktrees/wt/gitdir', () => '/etc/.git\n'],
    ['nothing', 'wt/.git', () => ''],
  ])('may not lead to %s', (_what, name, content) => {
    expect(change(name, content())).toMatchObject({ allow: false });
  });

  it('is not turned to another place', () => {
    const before = `gitdir: ${project}/.git/worktrees/a\n`;
    expect(change('wt/.git', `gitdir: ${project}/.git/worktrees/b\n`, before).allow).toBe(false);
  });
});

describe('the state of the agent', () => {
  const state = '../.claude/.claude.json';

  it('is written without what gives rights, which is named', () => {
    const said = change(state, '{"theme":"dark","mcpServers":{"x":{"command":"sh"}}}', '{"theme":"light"}');
    expect(said).toMatchObject({ allow: true, held: ['mcpServers'] });
    expect(JSON.parse(Buffer.from(said.content ?? []).toString())).toEqual({ theme: 'dark' });
    expect(change(state, '{"theme":"dark"}')).toMatchObject({ allow: true, content: undefined, held: [] });
    expect(change(state, 'no JSON')).toMatchObject({ allow: false });
  });
});

it('lets nothing through by a rule that is not mediated, or none', () => {
  expect(change('.claude/settings.json', '{}').allow).toBe(false);
  expect(judgeChange(ruleset, { leaf: undefined, path: '/x', before: undefined, after: Buffer.from('') }).allow).toBe(
    false,
  );
});

describe('what is recorded', () => {
  const leafOf = (name: string): number => ruleset.leaves.findIndex(({ pattern }) => pattern === name);
  const event = (path: string, more: Partial<ObservedEvent> = {}): ObservedEvent => ({
    verdict: 'refused',
    call: 'mkdir',
    rule: { kind: 'leaf', index: leafOf('.claude') },
    path,
    pid: 7,
    program: 'sh',
    ...more,
  });
  const listen = (fail = false) => {
    const entries: { kind: string; data: Record<string, unknown>; source: string }[] = [];
    let ended = 0;
    const note = async (kind: string, data: Record<string, unknown>, _what: string, source: string): Promise<void> => {
      if (fail) throw new Error('no room');
      entries.push({ kind, data, source });
      return Promise.resolve();
    };
    return { entries, mediation: new Mediation(ruleset, note, () => ended++), ends: () => ended };
  };

  it('is each decision once, and how often at the end', async () => {
    const { entries, mediation } = listen();
    for (let i = 0; i < 20_000; i++) mediation.heard(event('/p/.claude'));
    mediation.heard(event('/p/.env', { verdict: 'masked', call: 'open', rule: { kind: 'mask', index: 0 } }));
    mediation.dropped(7);
    await mediation.finish();
    expect(entries.map(({ kind, source }) => [kind, source])).toEqual([
      ['file', 'decision:names'],
      ['file', 'decision:names'],
      ['file.summary', 'decision:names'],
    ]);
    expect(entries[0]?.data).toMatchObject({
      verdict: 'deny',
      call: 'mkdir',
      path: '/p/.claude',
      source: { text: 'protect.refuse: .claude' },
    });
    expect(entries[1]?.data).toMatchObject({ verdict: 'mask', source: { text: 'masks: **/.env*' } });
    expect(entries[2]?.data).toMatchObject({
      rules: [
        { verdict: 'deny', rule: 'protect.refuse: .claude', count: 20_000, path: '/p/.claude', paths: 1 },
        { verdict: 'mask', count: 1 },
      ],
      dropped: 7,
    });
  });

  it('is not what the launcher tried itself before the program ran', async () => {
    const { entries, mediation } = listen();
    for (let i = 0; i < 2; i++) mediation.heard(event('/p/.nd7~self-test', { rule: undefined }));
    await mediation.finish();
    expect(entries.map(({ data }) => data['path'])).toEqual(['/p/.nd7~self-test']);
  });

  it('has a measure that no loop exceeds', async () => {
    const { entries, mediation } = listen();
    for (let i = 0; i < 5_000; i++) mediation.heard(event(`/p/${i}/.claude`));
    await mediation.finish();
    expect(entries.length).toBe(1_001);
    expect(entries.at(-1)?.data).toMatchObject({ rules: [{ count: 5_000, paths: 1_000 }], unrecorded: 4_000 });
  });

  it('tells of what was done all the same by some of its paths', async () => {
    const { entries, mediation } = listen();
    const rule = { kind: 'leaf', index: leafOf('AGENTS.md') } as const;
    for (let i = 0; i < 300; i++)
      mediation.heard(event(`/p/${i}/AGENTS.md`, { verdict: 'recorded', call: 'open', rule }));
    mediation.heard(event('/p/.claude'));
    await mediation.finish();
    expect(entries.map(({ data }) => data['verdict'])).toEqual([
      ...Array<string>(50).fill('record'),
      'deny',
      undefined,
    ]);
    expect(entries.at(-1)?.data).toMatchObject({ rules: [{ verdict: 'record', count: 300, paths: 50 }, { count: 1 }] });
  });

  it('is a question with the keys that it was about, before it is answered', async () => {
    const { entries, mediation } = listen();
    const ask = (mediator: Mediator, path: string, after: string): ReturnType<Mediation['judge']> => {
      const index = ruleset.leaves.findIndex((leaf) => leaf.mediator === mediator);
      const rule = { kind: 'leaf', index } as const;
      return mediation.judge({
        ...event(path, { call: 'rename', rule }),
        before: undefined,
        after: Buffer.from(after),
      });
    };
    expect(await ask('git-config', join(project, '.git/config'), '[core]\n\tfsmonitor = x\n')).toEqual({
      allow: false,
    });
    expect(entries.at(-1)?.data).toMatchObject({ verdict: 'deny', held: ['core.fsmonitor'] });
    expect(await ask('git-config', join(project, '.git/config'), '[user]\n\tname = x\n')).toEqual({ allow: true });
    expect(entries.at(-1)?.data).toMatchObject({ verdict: 'allow', changed: ['user.name'] });
    const held = await ask('claude-state', join(project, '../.claude/.claude.json'), '{"hooks":{"x":1}}');
    expect([held.allow, Buffer.from(held.content ?? []).toString()]).toEqual([true, '{}\n']);
    expect(entries.at(-1)?.data).toMatchObject({ verdict: 'hold', held: ['hooks'] });
  });

  it('ends the session where it must be and cannot, and lets nothing through', async () => {
    const { mediation, ends } = listen(true);
    mediation.heard(event('/p/.claude'));
    mediation.heard(event('/p/a/.claude'));
    const rule = { kind: 'leaf', index: ruleset.leaves.findIndex((leaf) => leaf.mediator === 'git-config') } as const;
    const question = { ...event('/p/.git/config', { rule }), before: undefined, after: Buffer.from('') };
    expect(await mediation.judge(question)).toEqual({ allow: false });
    await expect(mediation.finish()).rejects.toThrow('no room');
    expect(ends()).toBe(1);
  });

  it('is summed up for a person, in words that no path can forge', async () => {
    const { mediation } = listen();
    for (const path of ['/p/.claude', '/p/.claude', "/p/it's\x1b[2J\n/.claude"]) mediation.heard(event(path));
    mediation.heard(event('/p/AGENTS.md', { verdict: 'recorded', rule: { kind: 'leaf', index: leafOf('AGENTS.md') } }));
    mediation.heard(event('/run/x', { call: 'connect', rule: undefined }));
    await mediation.finish();
    expect(summary(mediation.tallies)).toEqual([
      'refused 3 times: /p/.claude and 1 more, by protect.refuse: .claude (nd7 why /p/.claude)',
      'refused 1 time: /run/x, by the boundary (nd7 why /run/x)',
    ]);
    const forged = [{ verdict: 'deny' as const, rule: 'x', policy: null, count: 1, path: "/it's\x1b[2J\n", paths: 1 }];
    expect(summary(forged)).toEqual(["refused 1 time: /it's⟦ESC⟧[2J⟦LF⟧, by x (nd7 why '/it'\\''s⟦ESC⟧[2J⟦LF⟧')"]);
    expect(summary(Array(8).fill(forged[0]))).toHaveLength(6);
  });
});
