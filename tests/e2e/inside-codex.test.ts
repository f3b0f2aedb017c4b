// The real Codex client inside `nd7 run`: its hooks speak for this session, its own sandbox is off, the boundary is around it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { CODEX_VERSION, findCodex, until, type World } from './claude.fixture.js';
import { agentChains, allow, insideWorld, Listener, of, runChain, withClient, type Typed } from './inside.fixture.js';

const SCENARIOS = join(import.meta.dirname, '../fake-api/scenarios/codex.json');

let world: World;
afterEach(async () => {
  Listener.end();
  await world.end();
});

/** The settings of a user whose model listens at a port of this machine. Answers the text. */
function configure({ home, project }: World, port: number): string {
  mkdirSync(join(home, '.codex'), { recursive: true });
  const config = [
    'model = "gpt-5.5-codex"',
    'model_provider = "fake"',
    'approval_policy = "never"',
    'sandbox_mode = "read-only"',
    'check_for_update_on_startup = false',
    '[analytics]\nenabled = false',
    `[model_providers.fake]\nname = "fake"\nbase_url = "http://127.0.0.1:${port}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\nrequest_max_retries = 1`,
    `[projects."${project}"]\ntrust_level = "trusted"`,
  ].join('\n');
  writeFileSync(join(home, '.codex/config.toml'), config);
  return config;
}

/** Not at once: a listener of this process may be asked meanwhile. */
async function run(path: string, prompt: string): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const [program = '', ...words] = [...world.before, path, 'exec', '--json', prompt];
  const env = world.environment({ OPENAI_API_KEY: 'sk-dummy-loopback-only' });
  const child = spawn(program, words, { cwd: world.project, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 50_000 });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, stdout, stderr };
}

withClient(`Codex ${CODEX_VERSION} inside nd7 run`, findCodex(), (path) => {
  it.each<[string, Typed]>([
    ['T1', 'Node'],
    ['T2', 'Node'],
    ['T1', 'the command on PATH'],
  ])(
    'exec: recorded from start to end, works without its own sandbox, and stays inside (%s, by %s)',
    async (tier, typed) => {
      const probe = {
        tool: 'exec_command',
        input: { cmd: 'cat ~/.ssh/id_ed25519; echo x > ~/made; echo x > made; echo $?' },
      };
      const scenarios = JSON.parse(readFileSync(SCENARIOS, 'utf8')) as Record<string, unknown>;
      world = await insideWorld(
        path,
        { ...scenarios, probe: { steps: [{ calls: [probe] }, { text: 'Done.' }] } },
        tier,
        typed,
      );
      const config = configure(world, world.port);
      const exec = (prompt: string) => run(path, prompt);
      const ran = await exec('[[scenario:basic]] go');
      expect([ran.status, ran.stderr.match(/^nd7:.*$/gm)]).toEqual([0, null]);
      expect(readFileSync(join(world.project, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n');
      const [session = ''] = agentChains(world);
      await until('the session is sealed', () => world.entries(session).at(-1)?.kind === 'seal');
      const entries = world.entries(session);
      expect(
        entries.filter(({ source }) => source === 'intent:codex').map(({ data }) => data['hook_event_name']),
      ).toEqual([
        'SessionStart',
        'UserPromptSubmit',
        ...Array(4).fill(['PreToolUse', 'PostToolUse']).flat(),
        'Stop',
        'SessionEnd',
      ]);
      const chain = runChain(world);
      expect(of(chain.entries, 'enforcement')[0]?.data).toMatchObject({ tier });
      expect(of(entries, 'session.confined')).toMatchObject([{ data: { run: chain.session } }]);
      expect(of(chain.entries, 'session.joined')).toMatchObject([{ data: { session, agent: 'codex' } }]);
      for (const one of [session, chain.session]) expect(world.verdict(one)).toMatchObject({ verdict: 'intact' });

      expect((await exec('[[scenario:probe]] go')).stdout).toMatch(/id_ed25519: (No such file|Permission denied)/);
      expect([existsSync(join(world.home, 'made')), existsSync(join(world.project, 'made'))]).toEqual([false, true]);
      expect(readFileSync(join(world.home, '.codex/config.toml'), 'utf8')).toBe(config);
    },
  );

  it.each(['T1', 'T2'] as const)(
    'exec: its commands are run by the broker, each tied to its call, and the model is told what the boundary refused (%s)',
    async (tier) => {
      const command = (cmd: string) => ({ tool: 'exec_command', input: { cmd } });
      const steps = [
        { calls: [command('echo one; cat /proc/$PPID/comm; echo $0; exit 3')] },
        { calls: [command('echo x > ~/made')] },
        { calls: [command('sleep 0.3; echo two > two; kill -9 $$')] },
        { text: 'Done.' },
      ];
      world = await insideWorld(path, { broker: { steps } }, tier);
      const listener = await Listener.before(world.port);
      allow(world, listener.port);
      configure(world, listener.port);
      const ran = await run(path, '[[scenario:broker]] go');
      expect([ran.status, ran.stderr.match(/^nd7:.*$/gm)]).toEqual([0, null]);
      const { session, entries } = runChain(world);
      const effects = entries.filter(({ source }) => source === 'effect:exec-broker');
      const begun = effects.filter(({ kind }) => kind === 'exec');
      const ended = effects.filter(({ kind }) => kind === 'exec.end');
      const call = expect.stringMatching(/^call_/) as string;
      expect(begun.map(({ data }) => [data['how'], data['tied'], data['tool_use_id']])).toEqual(
        Array(3).fill(['broker', 'text', call]),
      );
      expect(ended.map(({ data }) => [data['code'], data['signal']])).toEqual([
        [3, null],
        [expect.any(Number), null],
        [null, 9],
      ]);
      expect(entries.filter(({ kind }) => kind === 'alarm')).toEqual([]);
      expect(readFileSync(join(world.project, 'two'), 'utf8')).toBe('two\n');
      // The keeper is the parent, and the shell is the user's own.
      const last = listener.bodies.at(-1) ?? '';
      expect(last).toMatch(/one\\n[^"]*nd7-launch/);
      expect(last).toMatch(/"role":"developer"[^}]*nd7: this call met the boundary of the session/);
      const door = tier === 'T1' ? '/run/nd7' : `${world.home}/.nd7/run/s-[0-9a-f]{16}`;
      expect(last).toMatch(new RegExp(`${door}/nd7 ask write ${join(world.home, 'made')} --reason`));
      expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
    },
  );

  it('exec: what an earlier call has left in the background and uses a grant for a call is an alarm', async () => {
    const command = (cmd: string) => ({ tool: 'exec_command', input: { cmd } });
    const wait = (file: string) => `while [ ! -e ${file} ]; do sleep 0.05; done`;
    const left = `(${wait('go')}; echo left > ~/granted/left; echo more > ~/granted/more; sleep 1; touch done) >/dev/null 2>&1 &`;
    const own = `touch asked; ${wait('given')}; touch go; echo own > ~/granted/own; ${wait('done')}; sleep 0.3`;
    world = await insideWorld(path, {
      call: { steps: [{ calls: [command(left)] }, { calls: [command(own)] }, { text: 'Done.' }] },
    });
    configure(world, world.port);
    mkdirSync(join(world.home, 'granted'));
    const ended = run(path, '[[scenario:call]] go');
    await until('the second call runs', () => existsSync(join(world.project, 'asked')));
    const allow = ['allow', '--yes', '--for', 'call', '--below', 'write', join(world.home, 'granted')];
    const [node = '', bin = ''] = world.before;
    const given = spawn(node, [bin, ...allow], { cwd: world.project, env: world.environment({}), stdio: 'ignore' });
    expect(await once(given, 'close')).toEqual([0, null]);
    writeFileSync(join(world.project, 'given'), '');
    expect((await ended).status).toBe(0);
    expect(readFileSync(join(world.home, 'granted/own'), 'utf8')).toBe('own\n');
    expect(of(runChain(world).entries, 'alarm')).toMatchObject([
      { data: { reason: 'grant used by another', path: join(world.home, 'granted/left'), command: 'c-1' } },
    ]);
  });
});
