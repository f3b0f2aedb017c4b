// The real client in a box of bubblewrap: recorded through the session's door, the model by the proxy alone.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { callsIn, findClient, sessionIn, until, VERSION, type Entry, type World } from './claude.fixture.js';
import { insideWorld, Listener, runChain } from './inside.fixture.js';

const client = findClient();
const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-net', 'true']).status === 0;
const why = 'problem' in client ? client.problem : hasBwrap ? undefined : 'bubblewrap makes no box here';
const withClient = why === undefined ? describe : describe.skip;
const path = 'path' in client ? client.path : '';

let world: World;
afterEach(async () => {
  Listener.end();
  await world.end();
});

const of = (entries: readonly Entry[], kind: string) => entries.filter((entry) => entry.kind === kind);

withClient(`Claude Code ${VERSION} in nd7 run --in bwrap, headless${why === undefined ? '' : ` (${why})`}`, () => {
  it('basic: every call recorded, by the process that spoke', async () => {
    world = await insideWorld(path, {});
    world.before = world.before.map((word) => (word === '--tier' ? '--in' : word === 'T1' ? 'bwrap' : word));
    const output = await world.run('[[scenario:basic]] go');
    const session = sessionIn(output);
    if (session === '') throw new Error(`the client said nothing: ${world.said}`);
    await until('the session is sealed', () => world.entries(session).at(-1)?.kind === 'seal');
    const entries = world.entries(session);
    const run = runChain(world);
    expect(of(run.entries, 'enforcement')[0]?.data).toMatchObject({ tier: 'bwrap' });
    expect(output.find((line) => line['type'] === 'result')).toMatchObject({ is_error: false });
    const told = of(entries, 'tool.before').map(({ data }) => data['tool_use_id']);
    expect(callsIn(output).filter(({ id }) => !told.includes(id))).toEqual([]);
    for (const { peer } of entries.filter(({ source }) => source === 'intent:claude-code'))
      expect(peer).toMatchObject({ run: run.session });
    expect(readFileSync(join(world.project, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n');
    expect(of(run.entries, 'network').some(({ data }) => data['verdict'] === 'allow')).toBe(true);
    expect([...of(entries, 'alarm'), ...of(run.entries, 'alarm'), ...of(entries, 'gap')]).toEqual([]);
  });
});
