// The real Codex client inside `nd7 run`: its hooks speak for this session, its own sandbox is off, the boundary is around it.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CODEX_VERSION, findCodex, until, type Entry, type World } from './claude.fixture.js';
import { agentChains, insideWorld, runChain } from './inside.fixture.js';

const client = findCodex();
const why =
  'problem' in client ? client.problem : process.platform === 'linux' ? undefined : 'nd7 run confines on Linux';
const withClient = why === undefined ? describe : describe.skip;
const SCENARIOS = join(import.meta.dirname, '../fake-api/scenarios/codex.json');

let world: World;
afterEach(async () => {
  await world.end();
});

const of = (entries: readonly Entry[], kind: string) => entries.filter((entry) => entry.kind === kind);

withClient(`Codex ${CODEX_VERSION} inside nd7 run${why === undefined ? '' : ` (${why})`}`, () => {
  it('exec: recorded from start to end, works without its own sandbox, and stays inside', async () => {
    const probe = {
      tool: 'exec_command',
      input: { cmd: 'cat ~/.ssh/id_ed25519; echo x > ~/made; echo x > made; echo $?' },
    };
    const scenarios = JSON.parse(readFileSync(SCENARIOS, 'utf8')) as Record<string, unknown>;
    const path = 'path' in client ? client.path : '';
    world = await insideWorld(path, { ...scenarios, probe: { steps: [{ calls: [probe] }, { text: 'Done.' }] } });
    mkdirSync(join(world.home, '.codex'));
    const config = [
      'model = "gpt-5.5-codex"',
      'model_provider = "fake"',
      'approval_policy = "never"',
      'sandbox_mode = "read-only"',
      'check_for_update_on_startup = false',
      '[analytics]\nenabled = false',
      `[model_providers.fake]\nname = "fake"\nbase_url = "http://127.0.0.1:${world.port}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\nrequest_max_retries = 1`,
      `[projects."${world.project}"]\ntrust_level = "trusted"`,
    ].join('\n');
    writeFileSync(join(world.home, '.codex/config.toml'), config);
    const exec = (prompt: string) => {
      const [program = '', ...words] = [...world.before, path, 'exec', '--json', prompt];
      const env = world.environment({ OPENAI_API_KEY: 'sk-dummy-loopback-only' });
      return spawnSync(program, words, { cwd: world.project, env, encoding: 'utf8', input: '' });
    };
    const ran = exec('[[scenario:basic]] go');
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
    const run = runChain(world);
    expect(of(entries, 'session.confined')).toMatchObject([{ data: { run: run.session } }]);
    expect(of(run.entries, 'session.joined')).toMatchObject([{ data: { session, agent: 'codex' } }]);
    for (const chain of [session, run.session]) expect(world.verdict(chain)).toMatchObject({ verdict: 'intact' });

    expect(exec('[[scenario:probe]] go').stdout).toMatch(/id_ed25519: (No such file|Permission denied)/);
    expect([existsSync(join(world.home, 'made')), existsSync(join(world.project, 'made'))]).toEqual([false, true]);
    expect(readFileSync(join(world.home, '.codex/config.toml'), 'utf8')).toBe(config);
  });
});
