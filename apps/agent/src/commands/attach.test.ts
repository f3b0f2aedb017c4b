// init, uninstall, status and doctor as a person runs them, each in a throw-away home.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { allChecks } from '../recorder/checks.js';
import type { Check } from '../recorder/checks.js';
import { capturedIo } from '../testing/cli.fixture.js';
import { BIN, removeThrowAways, throwAway } from '../testing/recorder.fixture.js';
import { register } from './init.js';

let user: string;
let home: string;
let settings: string;
beforeEach(() => {
  user = join(throwAway(), 'a user ünï');
  home = join(user, '.nd7');
  settings = join(user, '.claude/settings.json');
  mkdirSync(join(user, '.claude'), { recursive: true });
  mkdirSync(join(user, 'project'));
});
afterEach(() => {
  if (existsSync(home)) nd7(['recorder', '--stop']); // waits until its process is gone
  removeThrowAways();
});

function nd7(args: string[], options: { env?: Record<string, string>; uid?: number } = {}) {
  const who = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid };
  const ran = spawnSync(process.execPath, [BIN, ...args], {
    cwd: join(user, 'project'),
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: user, ...options.env },
    timeout: 60_000,
    killSignal: 'SIGKILL',
    ...who,
  });
  return { status: ran.status, out: ran.stdout, err: ran.stderr };
}
const json = (args: string[]) => JSON.parse(nd7([...args, '--json']).out) as Record<string, unknown>;
const before =
  '{\n  // mine\n  "model": "opus",\n  "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "say" }] }] }\n}\n';

describe('nd7 init', () => {
  it('shows the change and asks; without somebody to ask it writes nothing', () => {
    writeFileSync(settings, before);
    const asked = nd7(['init']);
    expect(asked).toMatchObject({ status: 2, err: expect.stringContaining('add --yes to write') as string });
    expect(asked.out).toContain('+     "PreToolUse": [{"hooks":[{"type":"command"');
    expect(nd7(['init', '--dry-run'])).toMatchObject({
      status: 0,
      out: expect.stringContaining('Nothing was written') as string,
    });
    expect(readFileSync(settings, 'utf8')).toBe(before);
    expect(existsSync(home)).toBe(false);
  });

  it('shows the change a line each at a terminal, cut to its width, and whole to who reads on', async () => {
    writeFileSync(settings, before);
    const shown = async (isTerminal: boolean) => {
      const io = capturedIo({ home, isTerminal, columns: 72 });
      const program = new Command();
      register(program, io);
      await program.parseAsync(['init', '--dry-run', '--settings', settings], { from: 'user' });
      return io.lines;
    };
    const [cut, whole] = [await shown(true), await shown(false)];
    const hooks = (lines: string[]) => lines.filter((line) => line.startsWith('+     "'));
    expect(hooks(cut)).toEqual(hooks(whole).map((line) => `${line.slice(0, 71)}…`));
    expect(hooks(whole).length).toBeGreaterThan(25);
    expect(cut.filter((line) => line.includes('shows whole lines'))).toHaveLength(1);
    expect(whole.join('\n')).not.toContain('shows whole lines');
  });

  it('attaches, twice is once, and uninstall gives the bytes back', () => {
    writeFileSync(settings, before);
    chmodSync(settings, 0o600);
    expect(nd7(['init', '--yes'])).toMatchObject({
      status: 0,
      out: expect.stringContaining('Attached to Claude Code: 31 hook events') as string,
      err: '',
    });
    const once = readFileSync(settings, 'utf8');
    expect(once).toContain('// mine');
    expect(once).toContain('"command": "say"');
    expect(statSync(settings).mode & 0o777).toBe(0o600);
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect(nd7(['init', '--yes'])).toMatchObject({
      status: 0,
      out: expect.stringContaining('Already attached') as string,
    });
    expect(json(['init', '--yes'])).toMatchObject({ settings, scope: 'user', changed: false, written: false, home });
    expect(readFileSync(settings, 'utf8')).toBe(once);
    expect(nd7(['uninstall', '--dry-run']).out).toContain('Would detach from');
    expect(nd7(['uninstall'])).toMatchObject({
      status: 0,
      out: expect.stringContaining('the bytes from before nd7') as string,
    });
    expect(readFileSync(settings, 'utf8')).toBe(before);
    expect(nd7(['uninstall'])).toMatchObject({ status: 0, out: expect.stringContaining('attached nowhere') as string });
    expect(existsSync(home)).toBe(true);
  });

  it('attaches a project beside the user and says so; uninstall removes both', () => {
    nd7(['init', '--yes']);
    const project = join(user, 'project/.claude/settings.json');
    const second = nd7(['init', '--project', '--yes']);
    expect(second.err).toContain('attached in');
    expect(existsSync(project)).toBe(true);
    expect(json(['uninstall'])).toMatchObject({
      changed: [expect.objectContaining({ removed_file: true }), expect.objectContaining({ removed_file: true })],
      failed: [],
    });
    expect([existsSync(project), existsSync(settings)]).toEqual([false, false]);
  });

  it('refuses broken settings with the place, and options that exclude each other', () => {
    writeFileSync(settings, '{\n  "a": 1,,\n}');
    const refused = nd7(['init', '--yes']);
    expect(refused).toMatchObject({
      status: 1,
      out: '',
      err: expect.stringMatching(/settings\.json is not valid JSON \(line 2, column 1[01]/) as string,
    });
    expect(readFileSync(settings, 'utf8')).toBe('{\n  "a": 1,,\n}');
    expect(nd7(['init', '--project', '--managed'])).toMatchObject({
      status: 2,
      err: expect.stringContaining('exclude each other') as string,
    });
    expect(existsSync(home)).toBe(false);
  });

  it('says what is wrong with a home that cannot be used, before it touches the settings', () => {
    writeFileSync(home, 'a file in the way');
    expect(nd7(['init', '--yes'])).toMatchObject({ status: 1, err: expect.stringContaining('set ND7_HOME') as string });
    expect(existsSync(settings)).toBe(false);
  });

  (process.platform === 'linux' ? it : it.skip)('ends, and says what to do, where no folder can be made at all', () => {
    // Under /proc the system says that the folder above is missing, which is there.
    const env = { ND7_HOME: '/proc/nd7/home' };
    const init = ['init', '--yes'];
    for (const args of [init, ['enrol', 'https://vault.invalid', 'token'], ['recorder']])
      expect(nd7(args, { env })).toMatchObject({
        status: 1,
        err: expect.stringMatching(/^nd7: .*\/proc.*set ND7_HOME to a folder of your own/) as string,
      });
    expect(nd7([...init, '--settings', '/proc/nd7/settings.json'])).toMatchObject({
      status: 1,
      err: expect.stringContaining('cannot write /proc/nd7/settings.json') as string,
    });
    expect(nd7(['hook', '--agent', 'claude-code'], { env })).toMatchObject({ status: 0, out: '' });
    const { checks } = JSON.parse(nd7(['doctor', '--json'], { env }).out) as { checks: Check[] };
    expect(checks.find(({ name }) => name === 'home')).toMatchObject({
      state: 'bad',
      text: '/proc/nd7/home is not there and cannot be made: /proc takes no folder (ENOENT)',
      next: 'set ND7_HOME to a folder of your own',
    });
    expect(checks.filter(({ text }) => text.includes('statfs'))).toEqual([]);
  });

  (process.getuid?.() === 0 ? it : it.skip)(
    'works as an ordinary user, who may not write managed settings (root)',
    () => {
      for (const folder of [user, join(user, '.claude'), join(user, 'project')]) chownSync(folder, 65534, 65534);
      chmodSync(join(user, '..'), 0o755);
      expect(nd7(['init', '--managed', '--yes'], { uid: 65534 })).toMatchObject({
        status: 1,
        err: expect.stringContaining('sudo nd7 init --managed') as string,
      });
      expect(nd7(['init', '--yes'], { uid: 65534 })).toMatchObject({ status: 0 });
      expect(statSync(settings).uid).toBe(65534);
      chmodSync(join(user, '.claude'), 0o555);
      chownSync(join(user, '.claude'), 0, 0);
      expect(nd7(['uninstall'], { uid: 65534 })).toMatchObject({
        status: 1,
        err: expect.stringContaining('cannot write') as string,
      });
      expect(readFileSync(settings, 'utf8')).toContain('--agent');
    },
  );
});

describe('nd7 doctor and status', () => {
  it('prove that what is registered fires, and show what fired', () => {
    expect(nd7(['doctor'])).toMatchObject({ status: 1, out: expect.stringContaining('run `nd7 init`') as string });
    nd7(['init', '--yes']);
    const checked = json(['doctor']) as { healthy: boolean; checks: Check[] };
    expect(checked.checks.filter(({ state }) => state === 'bad')).toEqual([]);
    expect(checked.healthy).toBe(true);
    expect(checked.checks.find(({ name }) => name === 'firing')?.text).toMatch(
      /recorded a probe in \d+ ms \(session nd7-doctor, entry \d+\)/,
    );
    expect(json(['status'])).toMatchObject({
      home,
      attached: [settings],
      sessions: 1,
      enrolled: false,
      unshipped: null,
      last_receipt: null,
      hooks: [{ agent: 'claude-code', event: 'Nd7Probe', session: 'nd7-doctor' }],
    });
    expect(nd7(['status']).out).toMatch(/Recorder .*\n.*\nAttached .*settings\.json\nHooks that fired lately:\n/);
  });

  it('name a home that cannot be written and what to do; what is recorded there can be read, and nd7 be detached, all the same', () => {
    // Root may write everywhere: then somebody else does this.
    const who = process.getuid?.() === 0 ? { uid: 65534 } : {};
    if ('uid' in who)
      for (const folder of [user, join(user, '.claude'), join(user, 'project')]) chownSync(folder, 65534, 65534);
    chmodSync(join(user, '..'), 0o755);
    expect(nd7(['init', '--yes'], who)).toMatchObject({ status: 0 });
    expect(nd7(['doctor'], who)).toMatchObject({ status: 0 }); // and records a probe
    nd7(['recorder', '--stop'], who);
    const folders = [home, join(home, 'sessions'), join(home, 'sessions/nd7-doctor'), join(home, 'attached')];
    for (const folder of folders) chmodSync(folder, 0o500);
    try {
      const mend = `${home} cannot be written: mend its permissions, or set ND7_HOME to a folder of your own`;
      const ran = nd7(['doctor', '--json'], who);
      const { healthy, checks } = JSON.parse(ran.out) as { healthy: boolean; checks: Check[] };
      expect({ status: ran.status, healthy }).toEqual({ status: 1, healthy: false });
      expect(checks.find(({ name }) => name === 'home')).toMatchObject({ state: 'bad', text: mend });
      expect(checks.find(({ name }) => name === 'firing')).toMatchObject({
        state: 'bad',
        text: expect.stringContaining(mend) as string,
      });
      expect(checks.filter(({ state }) => state === 'bad').map(({ name }) => name)).toEqual(['home', 'firing']);
      for (const args of [['init', '--yes'], ['recorder'], ['enrol', 'https://vault.invalid', 'token']])
        expect(nd7(args, who)).toMatchObject({ status: 1, err: `nd7: ${mend}\n` });
      for (const args of [['status'], ['sessions'], ['log', 'nd7-doctor'], ['verify', 'nd7-doctor']])
        expect(nd7(args, who)).toMatchObject({ status: 0, err: '' });
      expect(nd7(['uninstall'], who)).toMatchObject({
        status: 0,
        out: expect.stringContaining('Detached from') as string,
        err: '',
      });
      expect(existsSync(settings)).toBe(false);
      expect(nd7(['uninstall'], who).out).toContain('attached nowhere');
    } finally {
      for (const folder of folders) chmodSync(folder, 0o700);
    }
  }, 120_000);

  it('find hooks that do not fire', () => {
    nd7(['init', '--yes']);
    rmSync(join(home, 'bin'), { recursive: true, force: true });
    const broken = nd7(['doctor']);
    if (readFileSync(settings, 'utf8').includes('nd7-shim'))
      expect(broken).toMatchObject({ status: 1, out: expect.stringContaining('which cannot be run') as string });
  });

  const at = (more: object = {}) => ({
    home,
    env: { HOME: user },
    cwd: join(user, 'project'),
    managedFolder: join(user, 'managed/managed-settings.d'),
    ...more,
  });
  const check = async (name: string) => (await allChecks(at())).filter((one) => one.name === name);

  it('find what would silence them', async () => {
    nd7(['init', '--yes']);
    mkdirSync(join(user, 'project/.claude'));
    writeFileSync(join(user, 'project/.claude/settings.local.json'), '{"disableAllHooks": true}');
    expect(await check('disableAllHooks')).toMatchObject([
      { state: 'bad', text: expect.stringContaining('settings.local.json') as string },
    ]);
    mkdirSync(join(user, 'managed/managed-settings.d'), { recursive: true });
    writeFileSync(join(user, 'managed/managed-settings.json'), '{"allowManagedHooksOnly": true}');
    expect(await check('allowManagedHooksOnly')).toMatchObject([
      { state: 'bad', next: expect.stringContaining('--managed') as string },
    ]);
    expect(nd7(['init', '--settings', join(user, 'managed/managed-settings.d/50-nd7.json'), '--yes'])).toMatchObject({
      status: 0,
    });
    expect(await check('allowManagedHooksOnly')).toMatchObject([{ state: 'ok' }]);
  }, 90_000);

  it('name other hooks that may change a call, and a config.json that holds no settings', async () => {
    writeFileSync(
      settings,
      '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "rtk", "args": ["hook"]}]}]}}',
    );
    nd7(['init', '--yes']);
    expect(await check('other hooks')).toMatchObject([
      { state: 'note', text: expect.stringContaining('rtk') as string },
    ]);
    writeFileSync(join(home, 'config.json'), '{"recording": "sometimes"}');
    expect(await check('config')).toMatchObject([
      { state: 'bad', text: expect.stringContaining('"best-effort" or "required"') as string },
    ]);
  }, 90_000);
});
