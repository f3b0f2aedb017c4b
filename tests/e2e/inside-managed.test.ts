// An ordinary user inside `nd7 run`, with what an administrator says of hooks: recorded once, or not started.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { callsIn, findClient, sessionIn, until, VERSION, type Entry, type World } from './claude.fixture.js';
import { agentChains, insideWorld, runChain } from './inside.fixture.js';
import { PrivateMachine, USER, whyNoMachine, type Ran } from './managed.fixture.js';

const client = findClient();
const why = 'problem' in client ? client.problem : whyNoMachine();
const withRoot = why === undefined ? describe : describe.skip;

let world: World;
let machine: PrivateMachine;
const MANAGED = '/etc/claude-code/managed-settings.d';

beforeEach(async () => {
  if (why !== undefined) return;
  const path = 'path' in client ? client.path : '';
  world = await insideWorld(path, {
    probe: {
      steps: [
        { calls: [{ tool: 'Bash', input: { command: 'sh probe.sh 2>&1; true', description: 'probe' } }] },
        { text: 'Done.' },
      ],
    },
  });
  machine = await PrivateMachine.make(join(world.folder, 'machine'), world.home, { claude: path });
  spawnSync('chmod', ['711', world.folder]);
  for (const folder of [world.home, world.project]) spawnSync('chown', ['-R', `${USER}:${USER}`, folder]);
});
afterEach(async () => {
  if (why !== undefined) return;
  nd7('recorder', '--stop');
  machine.end();
  await world.end();
});

const user = (command: string, ...args: string[]): Ran =>
  machine.run(USER, world.project, world.environment({ NO_COLOR: '1' }), command, ...args);
const nd7 = (...args: string[]): Ran => user(machine.node, machine.nd7, ...args);
const root = (...args: string[]): Ran => {
  const env = { PATH: process.env['PATH'], HOME: join(world.folder, 'root'), NO_COLOR: '1' };
  return machine.run(0, '/', env, ...(args as [string, ...string[]]));
};
const say = (name: string, settings: object): void => {
  root('sh', '-c', `mkdir -p ${MANAGED}; printf '%s' '${JSON.stringify(settings)}' > ${MANAGED}/${name}`);
};
const claude = (prompt: string): Ran =>
  nd7(
    'run',
    '--',
    '/opt/claude',
    '-p',
    prompt,
    '--output-format',
    'stream-json',
    '--verbose',
    '--allowedTools',
    'Bash,Read,Write,Edit',
  );
const of = (entries: readonly Entry[], kind: string) => entries.filter((entry) => entry.kind === kind);

/** Runs a scenario and answers what stands in the agent's chain, which has to hold each call once. */
async function recorded(scenario: string): Promise<Entry[]> {
  const ran = claude(`[[scenario:${scenario}]] go`);
  const lines = ran.out.split('\n').filter((line) => line.startsWith('{'));
  if (lines.length === 0) throw new Error(`exit ${ran.status}: ${ran.err}`);
  const output = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const session = sessionIn(output);
  await until('the session is sealed', () => world.entries(session).at(-1)?.kind === 'seal');
  const entries = world.entries(session);
  expect(of(entries, 'tool.before').map(({ data }) => data['tool_use_id'])).toEqual(
    callsIn(output).map(({ id }) => id),
  );
  expect(of(entries, 'prompt')).toHaveLength(1);
  for (const { peer } of of(entries, 'tool.before'))
    expect(peer).toMatchObject({ uid: USER, run: runChain(world).session });
  return entries;
}

withRoot(`Claude Code ${VERSION} inside nd7 run, as an ordinary user${why === undefined ? '' : ` (${why})`}`, () => {
  it('is recorded and held as it is for root', async () => {
    const probe =
      'id -u; cat ~/.ssh/id_ed25519 /etc/shadow; echo x > ~/made; echo x > /opt/made; kill -0 1 && ls /run/nd7; cat /proc/1/environ';
    spawnSync('sh', ['-c', `printf '%s' "$1" > "$2/probe.sh"`, 'sh', probe, world.project]);
    await recorded('basic');
    const entries = await recorded('probe');
    const said = String(
      (of(entries, 'tool.after')[0]?.data['tool_response'] as { stdout?: string } | undefined)?.stdout,
    );
    expect(said).toMatch(new RegExp(`^${USER}\\n`));
    expect(said).not.toContain('SECRET');
    expect(
      said.match(/No such file|Permission denied|Read-only file system|Operation not permitted/g)?.length,
    ).toBeGreaterThanOrEqual(4);
    expect(existsSync(join(world.home, 'made'))).toBe(false);
    expect(agentChains(world)).toHaveLength(2);
  });

  it('attached by an administrator: each event once, also where only his hooks may run', async () => {
    expect(root(machine.node, machine.nd7, 'init', '--managed', '--yes').status).toBe(0);
    await recorded('basic');
    say('60-only.json', { allowManagedHooksOnly: true });
    await recorded('basic');
  });

  it.each([
    ['all hooks', { disableAllHooks: true }, 'Ask who manages this machine'],
    ['all hooks but his own', { allowManagedHooksOnly: true }, 'sudo nd7 init --managed'],
  ])('is not started where an administrator switches off %s', (_what, settings, next) => {
    say('10-off.json', settings);
    const ran = claude('[[scenario:one]] go');
    expect([ran.status, ran.out]).toEqual([2, '']);
    expect(ran.err).toContain(`${MANAGED}/10-off.json switches the hooks of this session off`);
    expect(ran.err).toContain(next);
    expect(existsSync(join(world.nd7Home, 'sessions'))).toBe(false);
  });
});
