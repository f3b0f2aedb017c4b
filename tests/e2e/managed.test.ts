// `nd7 init --managed`: root attaches for everybody, an ordinary user works with the real client, and no setting of his or of a project silences it.
import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callsIn, findClient, sessionIn, until, VERSION, World } from './claude.fixture.js';
import { PrivateMachine, USER, whyNoMachine, type Ran } from './managed.fixture.js';

const client = findClient();
const why = 'problem' in client ? client.problem : whyNoMachine();
const withRoot = why === undefined ? describe : describe.skip;

let world: World;
let machine: PrivateMachine;
const SETTINGS = '/etc/claude-code/managed-settings.d/50-nd7.json';
const OTHER = '/etc/claude-code/managed-settings.d/10-other.json';
const SHIM = '/usr/local/lib/nd7/nd7-shim';

const root = (...args: string[]): Ran => {
  const env = { PATH: process.env['PATH'], HOME: join(world.folder, 'root'), NO_COLOR: '1' };
  return machine.run(0, '/', env, machine.node, machine.nd7, ...args);
};
const asRoot = (command: string, ...args: string[]): Ran =>
  machine.run(0, '/', { PATH: process.env['PATH'] }, command, ...args);
const user = (command: string, ...args: string[]): Ran =>
  machine.run(USER, world.project, world.environment({ NO_COLOR: '1' }), command, ...args);
const nd7 = (...args: string[]): Ran => user(machine.node, machine.nd7, ...args);
const claude = (prompt: string) => {
  const words = ['-p', prompt, '--output-format', 'stream-json', '--verbose', '--allowedTools', 'Bash,Read,Write,Edit'];
  const ran = user('/opt/claude', ...words);
  const lines = ran.out.split('\n').filter((line) => line.startsWith('{'));
  if (lines.length === 0) throw new Error(`the client: exit ${ran.status}: ${ran.err}`);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
};

withRoot(`Claude Code ${VERSION}, nd7 attached by an administrator${why === undefined ? '' : ` (${why})`}`, () => {
  beforeEach(async () => {
    world = await World.make('path' in client ? client.path : '');
    machine = await PrivateMachine.make(join(world.folder, 'machine'), world.home, {
      claude: 'path' in client ? client.path : '',
    });
    mkdirSync(join(world.folder, 'root'), { mode: 0o700 });
    spawnSync('chmod', ['711', world.folder]);
    for (const folder of [world.home, world.project]) spawnSync('chown', ['-R', `${USER}:${USER}`, folder]);
  });
  afterEach(async () => {
    nd7('recorder', '--stop');
    machine.end();
    await world.end();
  });

  it('records every user through one shim, whatever a project or he himself switches off, and goes again without a trace', async () => {
    asRoot('mkdir', '-p', '/etc/claude-code/managed-settings.d');
    asRoot('sh', '-c', `printf '{ "env": { "TEAM": "acme" } }' > ${OTHER}`);
    const tree = (): string =>
      asRoot('sh', '-c', 'find /etc/claude-code /usr/local/lib/nd7 -type f 2>/dev/null | sort | xargs -r cksum').out;
    const before = tree();

    const refused = nd7('init', '--managed', '--yes');
    expect(refused).toMatchObject({ status: 1, err: expect.stringContaining('sudo nd7 init --managed') as string });
    const init = root('init', '--managed', '--yes');
    expect(init).toMatchObject({ status: 0, out: expect.stringContaining('each user’s ~/.nd7') as string });
    expect(asRoot('cat', '/usr/local/lib/nd7/shim.conf').out).toContain('node=/opt/node\nmain=/opt/nd7/');
    expect(asRoot('stat', '-c', '%a %u', SETTINGS, SHIM, '/usr/local/lib/nd7/shim.conf').out).toBe(
      '644 0\n755 0\n644 0\n',
    );

    // Both of the settings that this user may write say that no hook is to run.
    for (const folder of [join(world.project, '.claude'), join(world.home, '.claude')]) {
      writeFileSync(join(folder, 'settings.json'), JSON.stringify({ disableAllHooks: true }));
      chownSync(join(folder, 'settings.json'), USER, USER);
    }
    const output = claude('[[scenario:basic]] go');
    const session = sessionIn(output);
    await until('the session is sealed', () => world.entries(session).at(-1)?.kind === 'seal' && ended(session));
    const entries = world.entries(session);
    const calls = entries.filter(({ kind }) => kind === 'tool.before').map(({ data }) => data['tool_use_id']);
    expect(calls).toEqual(callsIn(output).map(({ id }) => id));
    expect(calls).toHaveLength(4);
    // A recorder of his own was started and asked; what a hook's own process wrote while it started says so.
    const asked = entries.filter(
      ({ source, peer }) => source === 'intent:claude-code' && peer?.['alone'] === undefined,
    );
    expect(asked.length).toBeGreaterThan(0);
    expect(entries.find(({ kind }) => kind === 'tool.before')?.peer).toMatchObject({ uid: USER });
    expect(statSync(join(world.nd7Home, 'sessions', session, 'log.jsonl')).uid).toBe(USER);
    expect(readFileSync(join(world.nd7Home, 'run/recorder.log'), 'utf8')).not.toMatch(/error|cannot/i);
    expect(nd7('verify', session)).toMatchObject({ status: 0 });
    expect(nd7('status').out).toContain(`${SETTINGS} (for everybody)`);

    // He cannot take it away, and is told who can.
    expect(nd7('uninstall', '--managed').status).toBe(1);
    expect(nd7('uninstall').out).toContain('sudo nd7 uninstall --managed');
    expect(root('init', '--managed', '--yes').out).toContain('Already attached');

    const removed = root('uninstall', '--managed', '--json');
    expect(removed.status).toBe(0);
    expect(JSON.parse(removed.out)).toMatchObject({
      changed: [{ settings: SETTINGS, removed_file: true }],
      failed: [],
    });
    expect(tree()).toBe(before);
    expect(asRoot('ls', '/usr/local/lib/nd7').status).not.toBe(0);
    expect(root('uninstall', '--managed')).toMatchObject({
      status: 0,
      out: expect.stringContaining('not attached') as string,
    });
    claude('[[scenario:talk]] go');
    expect(world.sessions()).toEqual([session]);
  });

  it('where nothing but root’s own nd7 can be run by others, says what is closed and writes nothing', () => {
    asRoot('chmod', '700', '/opt');
    const init = root('init', '--managed', '--yes');
    expect(init).toMatchObject({
      status: 1,
      err: expect.stringContaining('other users of this machine cannot get at /opt') as string,
    });
    expect(asRoot('ls', '/etc/claude-code').status).not.toBe(0);
  });
});

function ended(session: string): boolean {
  return world.entries(session).some(({ source, kind }) => source === 'recorder:nd7' && kind === 'session.end');
}
