// How an agent's command line becomes one that is recorded, and when nothing is started.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLAUDE_EVENTS } from '@nd7/hooks';
import { removeThrowAways, throwAway } from '../testing/recorder.fixture.js';
import { codexShell } from './attach-codex.js';
import { attach } from './attach.js';
import { readManaged } from './attach-managed.js';

let base: string;
beforeEach(() => {
  base = throwAway();
  mkdirSync(join(base, 'project/.claude'), { recursive: true });
});
afterEach(removeThrowAways);

const attached = (own: string[], environment: NodeJS.ProcessEnv = {}) =>
  attach({
    argv: ['claude', ...own],
    found: { name: 'claude-code', at: 0 },
    nd7Home: join(base, '.nd7'),
    project: join(base, 'project'),
    settings: join(base, '.claude'),
    environment,
    cwd: base,
  });
const settingsOf = (own: string[]) =>
  JSON.parse(attached(own).files['settings.json'] ?? '') as {
    hooks: Record<string, { hooks: { command: string }[] }[]>;
  } & Record<string, unknown>;

describe('Claude Code for one session', () => {
  it('registers what nd7 init registers, by the same command, and leaves confining to the boundary', () => {
    const settings = settingsOf(['-p', 'x']);
    const events = Object.entries(CLAUDE_EVENTS).flatMap(([event, { register }]) => (register ? [event] : []));
    expect(Object.keys(settings.hooks).sort()).toEqual(events.sort());
    expect(settings.hooks['PreToolUse']?.[0]?.hooks[0]).toMatchObject({
      command: join(base, '.nd7/bin/nd7-shim'),
      args: ['--home', join(base, '.nd7'), '--agent', 'claude-code'],
    });
    expect(settings).toMatchObject({ disableAllHooks: false, sandbox: { enabled: false } });
    expect(attached(['-p', 'x']).argv.slice(0, 4)).toEqual([
      'claude',
      '--settings',
      '/run/nd7/settings.json',
      '--append-system-prompt',
    ]);
    expect(attached(['-p', 'x']).argv.slice(-2)).toEqual(['-p', 'x']);
  });

  it.each([
    [
      'as text',
      [
        '--settings',
        '{"model":"m","hooks":{"Stop":[{"hooks":[{"command":"mine"}]}]},"sandbox":{"enabled":true,"excludedCommands":["x"]}}',
      ],
    ],
    ['as a file', ['--settings=own.json']],
    ['twice, of which the last holds', ['--settings', '{"model":"first"}', '--settings', 'own.json']],
  ])('takes the person’s own settings in, %s', (_how, own) => {
    writeFileSync(
      join(base, 'own.json'),
      '{"model":"m","hooks":{"Stop":[{"hooks":[{"command":"mine"}]}]},"sandbox":{"enabled":true,"excludedCommands":["x"]}}',
    );
    const settings = settingsOf([...own, '-p', 'x']);
    expect(settings).toMatchObject({ model: 'm', sandbox: { enabled: false, excludedCommands: ['x'] } });
    expect(settings.hooks['Stop']?.map(({ hooks }) => hooks[0]?.command)).toEqual([
      'mine',
      join(base, '.nd7/bin/nd7-shim'),
    ]);
    expect(attached([...own, '-p', 'x']).argv.filter((word) => word.startsWith('--settings'))).toHaveLength(1);
  });

  it('adds its line to the person’s own words of the system prompt', () => {
    for (const own of [['--append-system-prompt', 'mine'], ['--append-system-prompt=mine']]) {
      const { argv } = attached([...own, 'prompt']);
      expect(argv.filter((word) => word.startsWith('--append-system-prompt'))).toHaveLength(1);
      expect(argv[argv.indexOf('--append-system-prompt') + 1]).toMatch(/^mine\n\nYou run inside an nd7 boundary/);
    }
  });

  it('takes nothing behind -- for an option', () => {
    const { argv } = attached(['-p', '--', '--settings', '--bare']);
    expect(argv.slice(-4)).toEqual(['-p', '--', '--settings', '--bare']);
  });

  it('says which settings do not hold', () => {
    writeFileSync(join(base, 'project/.claude/settings.json'), '{"disableAllHooks":true}');
    expect(attached([]).notes).toMatchObject([expect.stringContaining('project/.claude/settings.json') as string]);
  });

  it.each([
    [['--bare'], {}],
    [['-p', '--safe-mode'], {}],
    [[], { CLAUDE_CODE_SAFE_MODE: 'yes' }],
    [['--settings', 'not-there.json'], {}],
    [['--settings', '[1]'], {}],
  ])('is not started with %j %j', (own, environment) => {
    expect(() => attached(own, environment)).toThrow(expect.objectContaining({ exitCode: 2 }) as Error);
  });

  it('of a switch that is off the words do not matter', () => {
    expect(() => attached([], { CLAUDE_CODE_SIMPLE: '0', CLAUDE_CODE_SAFE_MODE: '' })).not.toThrow();
  });
});

describe('an administrator’s settings', () => {
  const managed = (files: Record<string, unknown>) => {
    mkdirSync(join(base, 'etc/managed-settings.d'), { recursive: true });
    for (const [name, value] of Object.entries(files)) writeFileSync(join(base, 'etc', name), JSON.stringify(value));
    return readManaged(join(base, '.nd7'), join(base, 'etc/managed-settings.d'));
  };

  it('are absent on most machines', () => {
    expect(readManaged('/x', join(base, 'none/managed-settings.d'))).toEqual({
      silence: undefined,
      isAttached: false,
      sandbox: undefined,
    });
  });

  it('switch off all hooks, or all but their own; of two words the later file’s holds', () => {
    expect(managed({ 'managed-settings.json': { disableAllHooks: true } }).silence).toMatchObject({
      what: 'disableAllHooks',
    });
    expect(
      managed({ 'managed-settings.d/10-a.json': { disableAllHooks: false, allowManagedHooksOnly: true } }).silence,
    ).toMatchObject({
      what: 'allowManagedHooksOnly',
      file: join(base, 'etc/managed-settings.d/10-a.json'),
    });
    expect(
      managed({ 'managed-settings.d/20-b.json': { allowManagedHooksOnly: false, sandbox: { enabled: true } } }),
    ).toEqual({
      silence: undefined,
      isAttached: false,
      sandbox: join(base, 'etc/managed-settings.d/20-b.json'),
    });
  });
});

describe('the shell of Codex', () => {
  const root = 'root:x:0:0:root:/root:/bin/bash';
  const ada = 'ada:x:1000:1000:Ada,,,:/home/ada:/bin/bash';
  it('is the one of its user’s entry, in whose place the stub stands, and nothing else of the file changes', () => {
    const passwd = `${root}\n${ada}\nbob:x:1001:1001::/home/bob:/bin/bash\n`;
    expect(codexShell(passwd, 1000)).toEqual({
      path: '/bin/bash',
      passwd: passwd.replace(ada, ada.replace('/bin/bash', '/run/nd7/bash')),
    });
  });

  it.each([
    ['an entry that is not there', root],
    ['a shell that there is no stub for', ada.replace('/bin/bash', '/usr/bin/fish')],
    ['one that is not there', ada.replace('/bin/bash', '/nowhere/bash')],
    ['none', ada.replace('/bin/bash', '')],
    ['an entry that is cut short', ada.replace(':/bin/bash', '')],
    ['no file', ''],
  ])('is not stood for with %s', (_, passwd) => {
    expect(codexShell(passwd, 1000)).toBeUndefined();
  });
});
