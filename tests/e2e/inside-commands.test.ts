// The real client inside `nd7 run`, its commands run by the broker: what it reads of them is what it reads outside, and each is recorded with its call.
import { callsIn, findClient, type World, World as Worlds } from './claude.fixture.js';
import { agentChains, insideWorld, runChain, withClient } from './inside.fixture.js';

let world: World;
afterEach(() => world.end());

const bash = (command: string, more: object = {}) => ({
  tool: 'Bash',
  input: { command, description: 'step', ...more },
});
const STEPS = [
  { calls: [bash('mkdir -p d && cd d && pwd; echo err >&2; exit 3')] },
  { calls: [bash('cd src && pwd')] },
  { calls: [bash(`pwd; echo 'it''s' "a \\"b\\" $((1+2))" ü 日本; foo() { echo function; }; foo; alias l=ls`)] },
  {
    calls: [
      bash('cat <<EOF\nhere ${HOME:+home} $0\nEOF'),
      bash('echo $SHELL; tty; cat; umask; ls /proc/self/fd | wc -l'),
    ],
  },
  { calls: [bash('printf "a\\nb\\n" | while read x; do echo "<$x>"; done | sort -r')] },
  { calls: [bash('echo same'), bash('echo same'), bash('for i in 1 2 3; do echo out $i; echo err $i >&2; done')] },
  { calls: [bash('kill -TERM $$')] },
  { calls: [bash('python3 -c "import time; time.sleep(3)"; echo late', { timeout: 1500 })] },
  { calls: [bash('for i in 1 2; do echo "tick $i"; done', { run_in_background: true })] },
  { calls: [bash(`echo ${'x'.repeat(60_000)} | wc -c`)] },
];
const SCENARIO = { broker: { steps: [...STEPS, { text: 'Done.' }] } };

/** What the client tells the model of each call, without what differs from run to run. */
function results(output: readonly Record<string, unknown>[], one: World): string[] {
  const contents = output
    .filter(({ type }) => type === 'user')
    .flatMap(({ message }) => (message as { content: { type: string; content: unknown }[] }).content);
  return contents
    .filter(({ type }) => type === 'tool_result')
    .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)))
    .map((text) => text.replaceAll(one.folder, 'WORLD').replace(/\b[a-z0-9]{9}\b(?=\.|$| ?Output)/g, 'ID'))
    .map((text) => (text.includes('background') ? 'in the background' : text));
}

withClient('commands of the real client by the broker', findClient(), (path) => {
  it('are told to it as they are outside, and stand in the record with their calls', async () => {
    world = await Worlds.make(path, SCENARIO);
    const outside = results(await world.run('[[scenario:broker]] go'), world);
    await world.end();
    world = await insideWorld(path, SCENARIO);
    const output = await world.run('[[scenario:broker]] go');
    expect(results(output, world)).toEqual(outside);
    expect(outside.length).toBe(STEPS.flatMap(({ calls }) => calls).length);

    const run = runChain(world).entries;
    const before = agentChains(world)
      .flatMap((session) => world.entries(session))
      .filter(({ kind }) => kind === 'tool.before')
      .map(({ data }) => data['tool_use_id']);
    const commands = run.filter(({ kind, source }) => kind === 'exec' && source === 'effect:exec-broker');
    const tied = commands.filter(({ data }) => data['tool_use_id'] !== undefined);
    expect(tied.map(({ data }) => data['tool_use_id']).sort()).toEqual([...before].sort());
    expect(new Set(tied.map(({ data }) => data['tied']))).toEqual(new Set(['text']));
    const ends = new Map(run.filter(({ kind }) => kind === 'exec.end').map(({ data }) => [data['command'], data]));
    const endOf = (call: unknown) => ends.get(tied.find(({ data }) => data['tool_use_id'] === call)?.data['command']);
    expect(endOf(before[0])).toMatchObject({ code: 3, signal: null });
    expect(endOf(before[9])).toMatchObject({ code: null, signal: 15 });
    expect(run.filter(({ kind }) => kind === 'alarm' || kind === 'gap')).toEqual([]);
  });

  it.each(['T1', 'T2'])(
    'connect in %s, and the record says which call each connection is of, and what went through it',
    async (tier) => {
      const curl = 'curl -s -o /dev/null --noproxy "" -x "$HTTP_PROXY" "${ANTHROPIC_BASE_URL/127.0.0.1/localhost}/"';
      const steps = [
        { calls: [bash(curl), bash(`for i in 1 2 3; do ${curl}; done`), bash('sleep 0.2')] },
        { text: 'Done.' },
      ];
      world = await insideWorld(path, { connects: { steps } }, tier);
      const calls = callsIn(await world.run('[[scenario:connects]] go'));
      const { entries } = runChain(world);
      const by = (kind: string, source: string) =>
        entries.filter((entry) => entry.kind === kind && entry.source === source).map(({ data }) => data);
      const answers = by('network', 'decision:egress');
      const curls = answers.filter(({ program }) => program === 'curl');
      expect(curls.map(({ tied, tool_use_id }) => `${String(tied)} ${String(tool_use_id)}`).sort()).toEqual(
        [0, 1, 1, 1].map((i) => `process ${calls[i]?.id ?? ''}`).sort(),
      );
      const ends = by('network.end', 'effect:egress');
      for (const { connection, tool_use_id } of curls)
        expect(ends.find((end) => end['connection'] === connection)).toMatchObject({
          tool_use_id,
          sent: expect.any(Number) as number,
          received: expect.any(Number) as number,
        });
      // The client's own are no command's.
      expect(answers.filter(({ program, tied }) => program !== 'curl' && tied === 'process')).toEqual([]);
    },
  );
});
