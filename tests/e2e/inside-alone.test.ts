// The real client inside tier T3, with Landlock and the call filter alone: recorded as in T1, through a door that is a port.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { callsIn, findClient, sessionIn, until, VERSION, type Entry, type World } from './claude.fixture.js';
import { doors, insideWorld, Listener, runChain } from './inside.fixture.js';

const client = findClient();
const why =
  'problem' in client ? client.problem : process.platform === 'linux' ? undefined : 'nd7 run confines on Linux';
const withClient = why === undefined ? describe : describe.skip;
const path = 'path' in client ? client.path : '';

let world: World;
afterEach(async () => {
  Listener.end();
  await world.end();
});

const of = (entries: readonly Entry[], kind: string) => entries.filter((entry) => entry.kind === kind);
const callOf = ({ data }: Entry) => data['tool_use_id'] as string;

withClient(`Claude Code ${VERSION} inside nd7 run --tier T3, headless${why === undefined ? '' : ` (${why})`}`, () => {
  it.each(['basic', 'parallel', 'subagent'])('%s: every call recorded, by the process that spoke', async (scenario) => {
    world = await insideWorld(path, {}, 'T3');
    const output = await world.run(`[[scenario:${scenario}]] go`);
    const session = sessionIn(output);
    if (session === '') throw new Error(`the client said nothing: ${world.said}`);
    await until('the session is sealed', () => world.entries(session).at(-1)?.kind === 'seal');
    const entries = world.entries(session);
    const run = runChain(world);
    expect(of(run.entries, 'enforcement')[0]?.data).toMatchObject({ tier: 'T3' });
    expect(output.find((line) => line['type'] === 'result')).toMatchObject({ is_error: false });
    const intents = entries.filter(({ source }) => source === 'intent:claude-code');
    expect(intents.length).toBeGreaterThan(5);
    // Who spoke is the hook’s process, below the client, as the kernel says of the other end of its connection.
    for (const { peer } of intents) {
      const { pid, client: above } = peer as { pid: number; client: { pid: number } };
      expect(peer).toMatchObject({ run: run.session });
      expect(pid).toBeGreaterThan(above.pid);
    }
    expect(new Set(intents.map(({ peer }) => (peer as { pid: number }).pid)).size).toBeGreaterThan(3);
    const told = of(entries, 'tool.before').map(callOf);
    const batched = of(entries, 'tool.batch').flatMap(({ data }) =>
      (data['tool_calls'] as { tool_use_id: string }[]).map((call) => call.tool_use_id),
    );
    expect(
      callsIn(output)
        .map(({ id }) => id)
        .filter((id) => !told.includes(id) && !batched.includes(id)),
    ).toEqual([]);
    if (scenario === 'basic') expect(readFileSync(join(world.project, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n');
    expect([...of(entries, 'alarm'), ...of(run.entries, 'alarm'), ...of(entries, 'gap')]).toEqual([]);
    expect(doors(world)).toEqual([]);
    expect(readdirSync(world.home).sort()).toEqual(['.claude', '.nd7', '.ssh']);
  });
});
