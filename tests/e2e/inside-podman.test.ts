// The real client in a container of podman's, with the machine's own programs in it: recorded through the session's door, the model by the proxy alone.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { podmanEngine, type TestEngine } from '../../apps/agent/src/testing/engines.fixture.js';
import { callsIn, clientsFolder, findClient, sessionIn, until, VERSION, type World } from './claude.fixture.js';
import { agentChains, bash, closed, doors, insideWorld, Listener, of, runChain, withClient } from './inside.fixture.js';

const BIN = join(import.meta.dirname, '../../apps/agent/bin/nd7.js');
const found = podmanEngine();
const lacks = 'lacks' in found ? found.lacks : undefined;
const engine = found as TestEngine;
let world: World;
afterEach(async () => {
  Listener.end();
  await world.end();
});
afterAll(() => ('remove' in found ? found.remove() : undefined));

/** What the image lacks is shown from this machine: the client, and the programs that it starts. */
function inPodman(made: World, path: string): void {
  const folders = ['/usr', '/bin', '/lib', '/lib64', '/etc/ssl'].filter((one) => existsSync(one));
  const client = path.startsWith(clientsFolder()) ? clientsFolder() : dirname(path);
  const mounts = [...folders, client].map((one) => `--in-arg=--volume=${one}:${one}:ro`);
  const variables = Object.entries(engine.environment).map(([name, value]) => `${name}=${value}`);
  const words = ['run', '--in', 'podman', '--image', engine.image, ...mounts, '--'];
  made.before = [...engine.before, 'env', ...variables, process.execPath, BIN, ...words];
}

withClient(
  `Claude Code ${VERSION} in nd7 run --in podman, headless [podman]`,
  findClient(),
  (path) => {
    it('basic: every call recorded, by the process that spoke; nothing of the container is left', async () => {
      world = await insideWorld(path);
      inPodman(world, path);
      const output = await world.run('[[scenario:basic]] go');
      const session = sessionIn(output);
      if (session === '') throw new Error(`the client said nothing: ${world.said}`);
      await until('the session is sealed', closed(world, session));
      const entries = world.entries(session);
      const run = runChain(world);
      expect(of(run.entries, 'enforcement')[0]?.data).toMatchObject({ tier: 'podman' });
      expect(output.find((line) => line['type'] === 'result')).toMatchObject({ is_error: false });
      const told = of(entries, 'tool.before').map(({ data }) => data['tool_use_id']);
      expect(callsIn(output).filter(({ id }) => !told.includes(id))).toEqual([]);
      for (const { peer } of entries.filter(({ source }) => source === 'intent:claude-code'))
        expect(peer).toMatchObject({ run: run.session });
      expect(readFileSync(join(world.project, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n');
      expect(of(run.entries, 'network').some(({ data }) => data['verdict'] === 'allow')).toBe(true);
      expect([...of(entries, 'alarm'), ...of(run.entries, 'alarm'), ...of(entries, 'gap')]).toEqual([]);
      for (const one of [run.session, session]) expect(world.verdict(one)).toMatchObject({ verdict: 'intact' });
      expect([engine.left(), doors(world)]).toEqual([[], []]);
    });

    it('SIGTERM ends the client and its container, and both chains are closed', async () => {
      const steps = [bash('while :; do sleep 1; done'), { text: 'Done.' }];
      world = await insideWorld(path, { long: { steps } });
      inPodman(world, path);
      const { child, output } = world.start('[[scenario:long]] go');
      await until('its command runs', () =>
        agentChains(world).some((session) => of(world.entries(session), 'tool.before').length === 1),
      );
      child.kill('SIGTERM');
      await output;
      const [session = ''] = agentChains(world);
      await until('the session is sealed', closed(world, session));
      for (const one of [runChain(world).session, session])
        expect(world.verdict(one)).toMatchObject({ verdict: 'intact' });
      expect(engine.left()).toEqual([]);
    });
  },
  lacks,
);
