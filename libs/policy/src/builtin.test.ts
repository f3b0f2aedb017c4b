import { BUILTINS } from './builtin/index.js';
import { compile } from './compile.js';
import { decideHost, portRule } from './decide.js';
import { PolicyDocument } from './document.js';
import { environmentInside } from './environment.js';
import { parseHost } from './host.js';
import type { Host } from './host.js';
import { leafAt } from './names.js';

import { HOME, PROJECT, base, input, reached, rights, withUser } from './machine.fixture.js';

describe('what nd7 brings', () => {
  it('is of the language, and every profile and pack compiles by itself', () => {
    for (const [name, { layer, document }] of BUILTINS) {
      expect([name, PolicyDocument.safeParse(document).error?.message]).toEqual([name, undefined]);
      const session =
        layer === 'profile'
          ? { profile: name, packs: [], policy: null }
          : { profile: 'offline', packs: [name], policy: null };
      expect(() => compile({ ...input, session })).not.toThrow();
    }
  });

  it('starts under properties that no mask or notifier is needed for', () => {
    expect(base.required.map(({ property }) => property)).toEqual(
      expect.arrayContaining(['files.leaves', 'network.proxy']),
    );
    expect(base.recording).toBe('required');
    expect(base.privateTmp).toBe(true);
  });
});

describe('the default profile', () => {
  it.each([
    ['/', 'r-x'],
    ['/etc/hosts', 'r-x'],
    ['/etc/shadow', '---'],
    ['/etc/ssh/ssh_host_ed25519_key', '---'],
    ['/usr/bin/git', 'r-x'],
    ['/root/x', '---'],
    ['/home/other/x', '---'],
    ['/var/lib/docker/x', '---'],
    ['/var/tmp/x', 'r--'],
    ['/proc/kcore', '---'],
    ['/proc/self/status', 'r--'],
    ['/dev/null', 'rw-'],
    ['/dev/sda', '---'],
    ['/dev/shm/x', 'rw-'],
    ['/run/user/1000/bus', '---'],
    ['/run/nd7/hook', 'r-x'],
    ['/tmp/x', 'rw-'],
    [HOME, 'r-x'],
    [`${HOME}/notes.txt`, 'r-x'],
    [`${HOME}/.zshrc`, 'r-x'],
    [`${HOME}/.nvm/bin/node`, 'r-x'],
    [`${HOME}/.ssh/id_ed25519`, '---'],
    [`${HOME}/.ssh/known_hosts`, 'r-x'],
    [`${HOME}/.ssh/config`, 'r-x'],
    [`${HOME}/.aws/credentials`, '---'],
    [`${HOME}/.gnupg/private.key`, '---'],
    [`${HOME}/.netrc`, '---'],
    [`${HOME}/.git-credentials`, '---'],
    [`${HOME}/.config/gh/hosts.yml`, '---'],
    [`${HOME}/.config/nvim/init.lua`, 'r-x'],
    [`${HOME}/.npmrc`, '---'],
    [`${HOME}/.docker/config.json`, '---'],
    [`${HOME}/.kube/config`, '---'],
    [`${HOME}/.bash_history`, '---'],
    [`${HOME}/.claude/.credentials.json`, '---'],
    [`${HOME}/.claude/settings.json`, 'r-x'],
    [`${HOME}/.codex/auth.json`, '---'],
    [`${HOME}/.mozilla/firefox/x`, '---'],
    [`${HOME}/.nd7/keys/machine.key`, '---'],
    [`${HOME}/other/.env`, '---'],
    [`${HOME}/other/src/x.ts`, 'r-x'],
    [`${HOME}/.npm/_cacache/x`, 'rwx'],
    [`${HOME}/.cargo/registry/x`, 'rwx'],
    [`${HOME}/.cargo/bin/x`, 'r-x'],
    [`${HOME}/.cargo/credentials.toml`, '---'],
    [`${HOME}/.m2/repository/x`, 'rwx'],
    [`${HOME}/.m2/settings.xml`, '---'],
    [`${HOME}/.gradle/caches/x`, 'rwx'],
    [`${HOME}/.gradle/init.d/x`, 'r-x'],
    [`${HOME}/.cache/pip/x`, 'rwx'],
    [`${HOME}/.local/bin/x`, 'r-x'],
    [PROJECT, 'rwx'],
    [`${PROJECT}/src/x.ts`, 'rwx'],
    [`${PROJECT}/.env`, '---'],
    [`${PROJECT}/.env.local`, '---'],
    [`${PROJECT}/.env.d/x`, '---'],
    [`${PROJECT}/packages/a/.env`, '---'],
    [`${PROJECT}/.env.example`, 'rwx'],
    [`${PROJECT}/.envrc.sample`, 'rwx'],
    [`${PROJECT}/keys/id_rsa`, '---'],
    [`${PROJECT}/environment.ts`, 'rwx'],
  ])('of %s allows %s', (path, expected) => {
    expect(rights(base, path)).toBe(expected);
  });

  it.each([
    ['.git/hooks/pre-commit', 'refuse'],
    ['.git/hooks', 'refuse'],
    ['.git/config', 'mediate'],
    ['.git/config.lock', undefined],
    ['.git', 'mediate'],
    ['.git/index', undefined],
    ['.git/info/attributes', 'refuse'],
    ['.git/info/exclude', undefined],
    ['.git/modules/x/hooks/a', 'refuse'],
    ['.git/modules/x/config', 'mediate'],
    ['.git/worktrees/x/commondir', 'mediate'],
    ['sub/.git/hooks/post-checkout', 'refuse'],
    ['hooks/pre-commit', undefined],
    ['src/config', undefined],
    ['.claude/settings.json', 'refuse'],
    ['.claude', 'refuse'],
    ['.CLAUDE/settings.json', 'refuse'],
    ['.cl\u200caude/settings.json', 'refuse'],
    ['.claude./settings.json', 'refuse'],
    ['packages/a/.claude/agents/x.md', 'refuse'],
    ['.mcp.json', 'refuse'],
    ['.vscode/tasks.json', 'refuse'],
    ['.idea/x', 'refuse'],
    ['.codex/config.toml', 'refuse'],
    ['.cursor/mcp.json', 'refuse'],
    ['.gemini/settings.json', 'refuse'],
    ['.github/hooks/x.json', 'refuse'],
    ['.github/copilot-instructions.md', 'refuse'],
    ['.github/workflows/ci.yml', 'record'],
    ['.github/ISSUE_TEMPLATE.md', undefined],
    ['.envrc', 'refuse'],
    ['.husky/pre-commit', 'refuse'],
    ['.npmrc', 'refuse'],
    ['.cargo/config.toml', 'refuse'],
    ['.hg/hgrc', 'refuse'],
    ['sub/.hg/hgrc-not-shared', 'refuse'],
    ['.hg/sharedpath', 'refuse'],
    ['.hg/store/00manifest.i', undefined],
    ['.jj/repo/config.toml', 'refuse'],
    ['.jj/repo/store/type', undefined],
    ['.sl/config', 'refuse'],
    ['mise.toml', 'refuse'],
    ['mise.local.toml', 'refuse'],
    ['.mise.production.toml', 'refuse'],
    ['.config/mise.toml', 'refuse'],
    ['.config/mise/config.toml', 'refuse'],
    ['.config/mise/config.local.toml', 'refuse'],
    ['.config/mise/conf.d/x.toml', 'refuse'],
    ['mise/config.toml', 'refuse'],
    ['.mise/conf.d/x.toml', 'refuse'],
    ['.mise/tasks/build', undefined],
    ['mise-tasks/build', undefined],
    ['.tool-versions', 'refuse'],
    ['.nvmrc', undefined],
    ['.envrc.local', 'refuse'],
    ['.envrc.sample', undefined],
    ['.helix/languages.toml', 'refuse'],
    ['.dir-locals-2.el', 'refuse'],
    ['x.sublime-project', 'refuse'],
    ['.pdbrc', 'refuse'],
    ['.perldb', 'refuse'],
    ['.Rprofile', 'refuse'],
    ['.irbrc', 'refuse'],
    ['.pnpmfile.mjs', 'refuse'],
    ['.yarn/sdks/typescript/lib/tsserver.js', 'refuse'],
    ['.yarn/cache/x.zip', undefined],
    ['pnpm-workspace.yaml', 'record'],
    ['.github/mcp.json', 'refuse'],
    ['.github/skills/x/SKILL.md', 'refuse'],
    ['.agent/rules/x.md', 'refuse'],
    ['.roomodes', 'refuse'],
    ['.roorules-code', 'record'],
    ['QWEN.md', 'record'],
    ['lefthook-local.yaml', 'record'],
    ['.config/lefthook.yml', 'record'],
    ['lint-staged.config.mjs', 'record'],
    ['flake.nix', 'record'],
    ['rust-toolchain.toml', 'record'],
    ['tools/bazel', 'record'],
    ['tools/x', undefined],
    ['x.code-workspace', 'refuse'],
    ['AGENTS.md', 'record'],
    ['agents.md', 'record'],
    ['.gitmodules', 'record'],
    ['.nd7/policy.jsonc', 'refuse'],
    ['node_modules/a/.vscode/x', undefined],
    ['node_modules/a/.npmrc', undefined],
    ['node_modules/.claude/x', undefined],
    ['node_modules/a/.git/hooks/x', 'refuse'],
    ['node_modules/a/.git/config', 'mediate'],
    ['node_modules/a/.git', 'mediate'],
    ['package.json', undefined],
    ['src/.vscodex', undefined],
  ])('treats %s in the project: %s', (path, treatment) => {
    expect(leafAt(base.leaves, `${PROJECT}/${path}`)?.treatment).toBe(treatment);
  });

  it('knows a hooks folder by what its parent is, for those who can look', () => {
    const bare = (folder: string): boolean => folder === `${PROJECT}/bare`;
    expect(leafAt(base.leaves, `${PROJECT}/bare/hooks/x`, bare)?.treatment).toBe('refuse');
    expect(leafAt(base.leaves, `${PROJECT}/bare/hooks/x`)).toBeUndefined();
  });

  it('reaches registries and forges with TLS, and nothing else', () => {
    for (const host of ['registry.npmjs.org', 'pypi.org', 'static.crates.io', 'github.com'])
      expect(reached(base, host)).toBe(true);
    for (const host of [
      'example.com',
      'api.anthropic.com',
      'evil.github.com',
      'localhost',
      '169.254.169.254',
      '127.0.0.1',
    ])
      expect(reached(base, host)).toBe(false);
    expect(reached(base, 'github.com', 80)).toBe(false);
    expect(decideHost(base.network, parseHost('github.com') as Host, 22)).toMatchObject({ allow: true, raw: true });
    expect(decideHost(base.network, parseHost('github.com') as Host, 443)).toMatchObject({ allow: true, raw: false });
    expect(base.sockets).toEqual([]);
    expect(portRule(base.network, 'listen', 3000)).toBeUndefined();
  });

  it('passes what is harmless and holds back what is secret or leads outside', () => {
    const inside = environmentInside(base.environment, {
      PATH: '/bin',
      LANG: 'C',
      MY_SETTING: '1',
      TOKENIZERS_PARALLELISM: 'false',
      AWS_REGION: 'eu',
      AWS_SECRET_ACCESS_KEY: 'x',
      AWS_ACCESS_KEY_ID: 'x',
      GITHUB_TOKEN: 'x',
      GH_TOKEN: 'x',
      ANTHROPIC_API_KEY: 'x',
      DATABASE_URL: 'x',
      my_secret: 'x',
      github_token: 'x',
      npm_config__authToken: 'x',
      SSH_AUTH_SOCK: 'x',
      FTP_PROXY: 'http://me:x@proxy',
      npm_config_https_proxy: 'http://me:x@proxy',
      DBUS_SESSION_BUS_ADDRESS: 'x',
      DISPLAY: ':0',
      TMUX: 'x',
      VSCODE_IPC_HOOK_CLI: 'x',
      ND7_HOME: 'x',
      TMPDIR: '/elsewhere',
      'BASH_FUNC_x%%': '() { :; }',
    });
    expect(
      Object.keys(inside)
        .filter(
          (name) =>
            !['GOTMPDIR', 'GOTELEMETRY', 'PIP_DISABLE_PIP_VERSION_CHECK', 'npm_config_update_notifier'].includes(name),
        )
        .sort(),
    ).toEqual([
      'AWS_REGION',
      'BASH_FUNC_x%%',
      'GIT_TEMPLATE_DIR',
      'LANG',
      'MY_SETTING',
      'PATH',
      'TEMP',
      'TMP',
      'TMPDIR',
      'TOKENIZERS_PARALLELISM',
    ]);
    expect(inside['TMPDIR']).toBe('/tmp');
  });

  it('works for root, and for a project that lies in a hidden or a temporary folder', () => {
    const root = compile({
      ...input,
      places: { ...input.places, home: '/root', project: '/root/p', nd7Home: '/root/.nd7' },
    }).ruleset;
    expect([
      rights(root, '/root/x'),
      rights(root, '/root/p/x'),
      rights(root, '/root/.ssh/x'),
      rights(root, '/home/dev/x'),
    ]).toEqual(['r-x', 'rwx', '---', '---']);
    const hidden = compile({ ...input, places: { ...input.places, project: '/run/build' } }).ruleset;
    expect([rights(hidden, '/run/build/x'), rights(hidden, '/run/x')]).toEqual(['rwx', '---']);
    const temporary = compile({ ...input, places: { ...input.places, project: '/tmp/p' } }).ruleset;
    expect([rights(temporary, '/tmp/p/x'), rights(temporary, '/tmp/x')]).toEqual(['rwx', 'rw-']);
  });

  it('hides secrets where a variable has moved them, and what was left where they lay', () => {
    const moved = compile({
      ...input,
      places: {
        ...input.places,
        nd7Home: '/data/nd7',
        variables: {
          XDG_CONFIG_HOME: '/data/config',
          XDG_DATA_HOME: '/data/share',
          CARGO_HOME: '/data/cargo',
          CLAUDE_CONFIG_DIR: '/data/claude',
          CODEX_HOME: '/data/codex',
        },
      },
    }).ruleset;
    for (const path of [
      'nd7',
      'config/gh/hosts.yml',
      'share/keyrings/x',
      'cargo/credentials.toml',
      'claude/.credentials.json',
      'codex/auth.json',
    ])
      expect([path, rights(moved, `/data/${path}`)]).toEqual([path, '---']);
    for (const path of [
      '.nd7/keys/x',
      '.config/gh/hosts.yml',
      '.local/share/keyrings/x',
      '.cargo/credentials.toml',
      '.claude/.credentials.json',
      '.codex/auth.json',
    ])
      expect([path, rights(moved, `${HOME}/${path}`)]).toEqual([path, '---']);
  });

  it('does not follow a variable that would make the machine or the home folder writable', () => {
    for (const value of ['/', HOME, '/home', 'relative', '/a/../..', '', '//'])
      expect(
        rights(
          compile({ ...input, places: { ...input.places, variables: { CARGO_HOME: value, GOCACHE: value } } }).ruleset,
          `${HOME}/notes.txt`,
        ),
      ).toBe('r-x');
    const moved = compile({ ...input, places: { ...input.places, variables: { GOCACHE: '/data/go/' } } }).ruleset;
    expect(rights(moved, '/data/go/x')).toBe('rwx');
  });
});

describe('packs', () => {
  const claude = compile({ ...input, session: { profile: null, packs: ['claude-code'], policy: null } }).ruleset;

  it('give an agent its state and its service, and keep what is trusted later', () => {
    expect(rights(claude, `${HOME}/.claude/projects/x`)).toBe('rwx');
    expect(rights(claude, `${HOME}/.claude/.credentials.json`)).toBe('---');
    expect(rights(claude, `${HOME}/.codex/x`)).toBe('r-x');
    expect(reached(claude, 'api.anthropic.com')).toBe(true);
    expect(claude.environment.set).toEqual(
      expect.arrayContaining([expect.objectContaining({ name: 'CLAUDE_CONFIG_DIR', value: `${HOME}/.claude` })]),
    );
    expect(environmentInside(claude.environment, { ANTHROPIC_API_KEY: 'x', OPENAI_API_KEY: 'x' })).toHaveProperty(
      'ANTHROPIC_API_KEY',
    );
    expect(environmentInside(claude.environment, { OPENAI_API_KEY: 'x' })).not.toHaveProperty('OPENAI_API_KEY');
    expect(claude.seeds).toEqual([
      expect.objectContaining({ from: `${HOME}/.claude.json`, to: `${HOME}/.claude/.claude.json` }),
    ]);
    for (const [path, treatment] of [
      ['settings.json', 'refuse'],
      ['settings.local.json', 'refuse'],
      ['skills/x/SKILL.md', 'refuse'],
      ['plugins/x', 'refuse'],
      ['plugins/store/x', 'record'],
      ['.claude.json', 'mediate'],
      ['.claude.json.lock', undefined],
      ['projects/x.jsonl', undefined],
      ['history.jsonl', undefined],
    ] as const)
      expect([path, leafAt(claude.leaves, `${HOME}/.claude/${path}`)?.treatment]).toEqual([path, treatment]);
  });

  it('let the login of an agent be seen only where somebody says so', () => {
    const login = withUser({ packs: { 'claude-code-login': true } });
    expect(rights(login, `${HOME}/.claude/.credentials.json`)).toBe('rwx');
    expect(reached(login, 'claude.ai')).toBe(true);
  });

  it('are switched by the person, in either direction', () => {
    const without = withUser({ packs: { npm: false, github: false } });
    expect(rights(without, `${HOME}/.npm/x`)).toBe('r-x');
    expect(reached(without, 'github.com')).toBe(false);
    expect(
      rights(
        withUser(
          { packs: { 'claude-code': false } },
          { session: { profile: null, packs: ['claude-code'], policy: null } },
        ),
        `${HOME}/.claude/x`,
      ),
    ).toBe('r-x');
    expect(() => withUser({ packs: { nmp: true } })).toThrow(/no pack is called "nmp"/);
    expect(() => withUser({ packs: { offline: true } })).toThrow(/no pack is called "offline"/);
  });

  it('make their folders for those who have the program', () => {
    expect(base.makeFolders.find(({ path }) => path === `${HOME}/.gradle/caches`)?.ifPrograms).toEqual(['gradle']);
    expect(claude.makeFolders.find(({ path }) => path === `${HOME}/.claude`)?.ifPrograms).toBeNull();
  });
});
