// The real client in a box of bubblewrap: recorded through the session's door, the model by the proxy alone.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callsIn, findClient, sessionIn, until, VERSION, type Entry, type World } from './claude.fixture.js';
import { agentChains, allow, bash, insideWorld, Listener, runChain } from './inside.fixture.js';

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
    world = await insideWorld(path, {}, 'bwrap');
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
    // What the client read and wrote itself, and how its calls ended.
    expect(
      of(entries, 'tool.after')
        .map(({ data }) => data['tool_use_id'])
        .sort(),
    ).toEqual([...told].sort());
    for (const session of [run.session, sessionIn(output)])
      expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
  });

  it('is widened for a host while it lives; refusals are in the record, and the model is told how to ask', async () => {
    const curl = `curl -s -o /dev/null -w 'code %{http_connect}' --noproxy '' https://docs.invalid/; true`;
    const wait = bash('while [ ! -e go ]; do sleep 0.05; done');
    const ask = bash('nd7 ask net other.invalid --reason "the docs"; nd7 ask write /etc/x; true');
    world = await insideWorld(
      path,
      { widened: { steps: [bash(curl), ask, wait, bash(curl), { text: 'Done.' }] } },
      'bwrap',
    );
    const listener = await Listener.before(world.port);
    world.port = listener.port;
    allow(world, listener.port);
    const { output } = world.start('[[scenario:widened]] go');
    const calls = () => agentChains(world).flatMap((session) => of(world.entries(session), 'tool.before'));
    await until('it waits', () => calls().length === 3);
    const { sessions } = JSON.parse(world.nd7('grants', '--json')) as { sessions: { requests: { what: string }[] }[] };
    expect(sessions[0]?.requests.map(({ what }) => what)).toEqual(['other.invalid:443']);
    world.nd7('allow', 'net', 'docs.invalid');
    writeFileSync(join(world.project, 'go'), '');
    expect(callsIn(await output)).toHaveLength(4);
    const { session, entries } = runChain(world);
    const reasons = entries
      .filter(({ source, data }) => source === 'decision:egress' && data['host'] === 'docs.invalid')
      .map(({ data }) => data['reason']);
    // Granted, and then there is no such name.
    expect(reasons).toEqual(['no-rule', 'no-address']);
    expect(entries.filter(({ source }) => source === 'decision:grant').map(({ kind }) => kind)).toEqual(['grant']);
    expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
    expect(listener.bodies.at(-1)).toContain('the proxy refused docs.invalid:443');
    expect(listener.bodies.at(-1)).toMatch(
      /other\.invalid[^]*put to the person[^]*is denied: nobody can grant that now/,
    );
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    '%s ends the client as it does without a box, and both chains are closed',
    async (name) => {
      world = await insideWorld(
        path,
        { long: { steps: [bash('while :; do sleep 1; done'), { text: 'Done.' }] } },
        'bwrap',
      );
      const { child, output } = world.start('[[scenario:long]] go');
      await until('its command runs', () =>
        agentChains(world).some((session) => of(world.entries(session), 'tool.before').length === 1),
      );
      const ended = new Promise<[number | null, string | null]>((done) => child.once('close', (...how) => done(how)));
      child.kill(name);
      const inside = await ended;
      await output;
      const [session = ''] = agentChains(world);
      await until('both are sealed', () =>
        [session, runChain(world).session].every((one) => world.entries(one).at(-1)?.kind === 'seal'),
      );
      world.before = [];
      const bare = world.start('[[scenario:long]] go');
      await new Promise((done) => setTimeout(done, 4_000));
      const without = new Promise<[number | null, string | null]>((done) =>
        bare.child.once('close', (...how) => done(how)),
      );
      bare.child.kill(name);
      expect(inside).toEqual(await without);
      for (const one of [session, runChain(world).session])
        expect(world.verdict(one)).toMatchObject({ verdict: 'intact' });
    },
  );
});
