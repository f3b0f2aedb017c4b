// The real client inside `nd7 run`, in each tier and by each way that it is typed, through all scenarios of its stand-in for a model.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findClient, until, VERSION, type World } from './claude.fixture.js';
import { callOf, doors, insideWorld, intents, of, recorded, withClient, type Typed } from './inside.fixture.js';

let world: World;
afterEach(() => world.end());

const SERVER = join(import.meta.dirname, '../fake-api/mcp-server.mjs');
const MCP = {
  mcpServers: { peer: { command: process.execPath, args: [SERVER] } },
};
interface Process {
  pid: number;
  /** In ticks of the clock since the machine started. */
  start: string;
}
/** What a scenario needs besides. */
const ARGS: Record<string, string[]> = {
  mcp: ['--mcp-config', JSON.stringify(MCP), '--strict-mcp-config', '--allowedTools', 'mcp__peer'],
  denied: ['--disallowedTools', 'Bash(rm:*)'],
};
/** Those in which the client writes logs of its own servers. */
const CACHED = new Set(['mcp']);
const FEW = ['basic', 'failing', 'subagent'];
const MORE = [
  'parallel',
  'two',
  'big',
  'unicode',
  'write1',
  'mcp',
  'subagent2',
  'background',
  'tools',
  'todo',
  'denied',
  'overload',
];

describe.each<[string, Typed, string[]]>([
  ['T1', 'Node', [...FEW, ...MORE]],
  ['T2', 'Node', [...FEW, ...MORE]],
  ['T3', 'Node', [...FEW, 'parallel', 'mcp']],
  ['T1', 'the command on PATH', FEW],
  ['T2', 'the command on PATH', FEW],
])('in tier %s, by %s,', (tier, typed, scenarios) => {
  withClient(`Claude Code ${VERSION} inside nd7 run`, findClient(), (path) => {
    it.each(scenarios)('%s: each call once before, by the process that spoke, and its end', async (scenario) => {
      world = await insideWorld(path, {}, tier, typed);
      const { session, entries, calls, run } = await recorded(world, scenario, ARGS[scenario]);
      expect(of(run.entries, 'enforcement')[0]?.data).toMatchObject({ tier });
      const told = of(entries, 'tool.before').map(callOf);
      expect(new Set(told).size).toBe(told.length);
      const batched = of(entries, 'tool.batch').flatMap(({ data }) =>
        (data['tool_calls'] as { tool_use_id: string }[]).map((call) => call.tool_use_id),
      );
      expect(calls.map(({ id }) => id).filter((id) => !told.includes(id) && !batched.includes(id))).toEqual([]);
      // Who spoke is the hook’s process, below the client: not the supervisor, which opens the door for it in T2.
      const spoke = intents(entries).map(({ peer }) => peer as unknown as Process & { client: Process });
      expect(
        spoke.filter(({ pid, start, client }) => pid === client.pid || Number(start) < Number(client.start)),
      ).toEqual([]);
      if (calls.length > 0) expect(new Set(spoke.map(({ pid }) => pid)).size).toBeGreaterThan(3);
      if (scenario === 'basic')
        expect(readFileSync(join(world.project, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n');
      if (scenario === 'failing')
        expect(of(entries, 'tool.failed').some(({ data }) => String(data['error']).startsWith('Exit code 3'))).toBe(
          true,
        );
      if (scenario === 'subagent') {
        await until('the subagent has ended', () => of(world.entries(session), 'agent.stop').length > 0);
        expect(of(entries, 'agent.start')).toHaveLength(1);
      }
      expect([...of(entries, 'alarm'), ...of(run.entries, 'alarm'), ...of(entries, 'gap')]).toEqual([]);
      expect(doors(world)).toEqual([]);
      // A host takes empty folders of toolchains away when it has nothing else to do.
      const own = ['.claude', '.nd7', '.ssh', ...(CACHED.has(scenario) ? ['.cache'] : [])];
      if (typed === 'Node') expect(readdirSync(world.home).sort()).toEqual(own.sort());
    });
  });
});
