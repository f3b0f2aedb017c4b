// `nd7 run --in docker|podman`: the container is an engine's, the record, the hooks' door and the way out are nd7's.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BIN } from '../testing/recorder.fixture.js';
import { podmanEngine, standInEngine, type TestEngine } from '../testing/engines.fixture.js';
import { EngineDesk } from './container.fixture.js';

const engines = {
  'docker, for which a stand-in of bubblewrap’s stands here': standInEngine(),
  '[podman]': podmanEngine(),
  '[podman] of an ordinary user': podmanEngine(true),
};
afterAll(() => {
  for (const engine of Object.values(engines)) if ('remove' in engine) engine.remove();
});

let desk: EngineDesk;
beforeEach(() => void (desk = new EngineDesk()));
afterEach(() => desk.end());

describe.each(Object.entries(engines))('nd7 run --in %s', (_, found) => {
  const test = 'kind' in found ? it : it.skip;
  const engine = found as TestEngine;
  const why = 'lacks' in found ? ` (${found.lacks})` : '';

  test(`gives the program its streams, its exit code and the project alone${why}`, () => {
    const script = `read x; echo "$x"; echo y > made; cat made; cat ../.ssh/id; echo z > ../out; cat ../.nd7/policy.jsonc; exit 7`;
    const { status, stdout, stderr } = desk.run(engine, script);
    expect([status, stdout]).toEqual([7, 'in\ny\n']);
    expect(stderr).toMatch(/nd7 records and is the way out, and says nothing of what the box holds/);
    expect([readdirSync(desk.project), readdirSync(desk.user).includes('out')]).toEqual([['made'], false]);
    expect(desk.log()).toMatch(new RegExp(`"kind":"enforcement","data":\\{"tier":"${engine.kind}"`));
    expect(readdirSync(join(desk.user, '.nd7/run')).filter((name) => name.startsWith('s-'))).toEqual([]);
  });

  test(`claims nothing${why}`, () => {
    const { stderr } = desk.run(engine, 'kill -9 $$', ['--json']);
    const line = stderr.split('\n').find((one) => one.startsWith('{')) ?? '';
    const { properties } = JSON.parse(line) as { properties: Record<string, string>[] };
    expect(new Set(properties.map(({ status, provider }) => `${status} ${provider}`))).toEqual(
      new Set([`none ${engine.kind}`]),
    );
    expect(desk.log()).toMatch(/"kind":"session.end","data":\{[^}]*137/);
  });

  test(`has the proxy as its only way out, and what is refused is recorded${why}`, () => {
    const script = `curl -sS -m 5 -o /dev/null -w '%{http_connect}' https://example.com; curl -sS -m 5 --noproxy '*' http://1.1.1.1/; true`;
    expect(desk.run(engine, script).stdout).toBe('403');
    expect(desk.log()).toMatch(/"kind":"network","data":\{[^}]*"host":"example.com"[^}]*"verdict":"deny"/);
  });

  test(`hears the hooks inside, by the kernel’s word about who speaks${why}`, () => {
    const hook = `{"hook_event_name":"SessionStart","session_id":"11111111-2222-4333-8444-555555555555","cwd":"${desk.project}","source":"startup"}`;
    const { status, stderr } = desk.run(
      engine,
      `echo '${hook}' | ../.nd7/bin/nd7-shim --home ${desk.user}/.nd7 --agent claude-code`,
    );
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(desk.log()).toMatch(/"kind":"session.joined"/);
    expect(desk.log()).not.toMatch(/"kind":"alarm"/);
    expect(desk.log()).toMatch(/"source":"intent:claude-code"[^\n]*"run":"run-/);
  });

  test(`passes a signal on, and ends as the program does${why}`, async () => {
    const child = await desk.start(engine, `trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done`);
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([9, null]);
  });

  test(`ends the container when nd7 is killed${why}`, async () => {
    const child = await desk.start(engine, `echo up; while :; do echo x >> beat; sleep 0.1; done`);
    const beats = (): number => statSync(join(desk.project, 'beat')).size;
    await sleep(500);
    const before = beats();
    await sleep(500);
    expect(beats()).toBeGreaterThan(before);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await sleep(500);
    const after = beats();
    await sleep(1000);
    expect(beats()).toBe(after);
  });
});

const standIn = engines['docker, for which a stand-in of bubblewrap’s stands here'];
(('lacks' in standIn ? describe.skip : describe) as typeof describe)(
  'a container that the engine tells wrongly',
  () => {
    it.each([
      ['of another process', '1', /process 1, and nd7 is below that itself/],
      ['of none that there is', '99999999', /the container is process 99999999, and there is none/],
    ])('%s: the program does not begin', (_, told, why) => {
      const { status, stderr } = desk.run(standIn as TestEngine, 'echo x > ran', [], { ND7_TOLD: told });
      expect([status, readdirSync(desk.project)]).toEqual([2, []]);
      expect(stderr).toMatch(why);
    });

    it('an image that is not there: what the engine says stands, with exit 2', () => {
      const { status, stderr } = desk.run({ ...(standIn as TestEngine), image: 'none' }, 'echo x > ran');
      expect([status, stderr]).toEqual([
        2,
        expect.stringMatching(/no such image[^]*before the program began/) as string,
      ]);
    });
  },
);

describe('what is typed', () => {
  const nd7 = (args: string[], PATH = '/nowhere') =>
    spawnSync(process.execPath, [BIN, 'run', ...args, '--', 'true'], {
      ...{ cwd: desk.project, encoding: 'utf8' },
      env: { PATH, HOME: desk.user },
    });
  it.each([
    [['--in', 'docker', '--image', 'a'], /docker is not there[^]*Install docker/],
    [['--in', 'gvisor', '--image', 'a'], /docker is not there/],
    [['--in', 'podman', '--image', 'a'], /podman is not there/],
    [['--in', 'podman'], /podman needs an image/],
    [['--in', 'podman', '--image', 'a', '--tier', 'T1'], /--tier says how nd7 confines/],
    [['--in', 'lxc', '--image', 'a'], /there is no box "lxc"/],
    [['--in', 'bwrap', '--image', 'a'], /of no image/],
    [['--image', 'a'], /--image needs a box/],
  ])('%j is refused with exit 2', (args, why) => {
    expect(nd7(args)).toMatchObject({ status: 2, stderr: expect.stringMatching(why) as string });
  });
});
