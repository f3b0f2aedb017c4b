// What a container of an engine's gets and does not get, several at once, and what is left of one whose nd7 was killed.
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../testing/recorder.fixture.js';
import { askedOfDocker, podmanEngine, standInEngine, type TestEngine } from '../testing/engines.fixture.js';
import { EngineDesk } from './container.fixture.js';

const podman = podmanEngine();
const ordinary = podmanEngine(true);
const standIn = standInEngine();
const docker = await askedOfDocker();
const gvisor = await askedOfDocker('gvisor');
const NOBODY = { kind: 'docker', image: 'tiny:1', before: [], left: () => [], remove: () => undefined } as const;
afterAll(() => {
  for (const engine of [podman, ordinary, standIn, docker, gvisor]) if ('remove' in engine) engine.remove();
});

let desk: EngineDesk;
beforeEach(() => void (desk = new EngineDesk()));
afterEach(() => desk.end());

const there = (found: TestEngine | { lacks: string }): typeof it => ('kind' in found ? it : (it.skip as typeof it));
const why = (found: TestEngine | { lacks: string }): string => ('lacks' in found ? ` (${found.lacks})` : '');
/** Of whoever starts nd7, and for nobody inside. */
const SECRETS = {
  AWS_SECRET_ACCESS_KEY: 'CANARY-aws',
  FTP_PROXY: 'http://me:CANARY-ftp@proxy.invalid',
  ftp_proxy: 'http://me:CANARY-ftp@proxy.invalid',
  http_proxy: 'http://me:CANARY-http@proxy.invalid',
};

there(podman)(
  `[podman] has no capability, no new privileges, a call filter, and no network but the way out${why(podman)}`,
  () => {
    const script = `while read l; do case $l in Cap*|NoNewPrivs*|Seccomp:*) echo $l;; esac; done < /proc/self/status; cat /proc/net/dev`;
    const { stdout } = desk.run(podman as TestEngine, script);
    const none = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => `${name}: 0000000000000000`);
    expect(stdout.split('\n').slice(0, 7)).toEqual([...none, 'NoNewPrivs: 1', 'Seccomp: 2']);
    expect(stdout.split('\n').slice(9).join('\n')).toMatch(/^ *lo:[ 0-9]*\n$/);
  },
);

describe.each([
  ['docker’s stand-in', standIn],
  ['[podman]', podman],
  ['[podman] of an ordinary user', ordinary],
])('%s', (_, found) => {
  there(found)(`gives no variable inside that is a secret of who started it${why(found)}`, () => {
    const { stdout } = desk.run(found as TestEngine, 'cat /proc/self/environ', [], SECRETS);
    expect(stdout).toContain('http_proxy=http://127.0.0.1:3128');
    expect(stdout).not.toContain('CANARY');
  });
});

describe(`[podman]${why(podman)}`, () => {
  const test = there(podman);
  const engine = podman as TestEngine;

  test('two at once are two containers, which end each by itself and leave nothing', async () => {
    const script = (name: string): string =>
      `echo up; while [ ! -e ${name} ]; do sleep 0.1; done; echo ${name} > end-${name}`;
    const [a, b] = await Promise.all(['a', 'b'].map((name) => desk.start(engine, script(name))));
    expect(engine.left()).toHaveLength(2);
    writeFileSync(join(desk.project, 'a'), '');
    expect((await once(a as NonNullable<typeof a>, 'close'))[0]).toBe(0);
    expect(readdirSync(desk.project).sort()).toEqual(['a', 'end-a']);
    writeFileSync(join(desk.project, 'b'), '');
    expect((await once(b as NonNullable<typeof b>, 'close'))[0]).toBe(0);
    expect(engine.left()).toEqual([]);
  });

  test('at a terminal the program has one, whose Ctrl-C is the program’s, and ends as it likes', async () => {
    const script =
      'trap "echo told; exit 9" INT; test -t 0 && test -t 1 && echo terminal; echo up; while :; do sleep 0.1; done';
    const child = desk.atTerminal(engine, script);
    let said = '';
    child.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    const closed = once(child, 'close');
    await until('it is up', () => said.includes('up\r'));
    child.stdin?.write('\x03');
    expect((await closed)[0]).toBe(9);
    expect(said).toMatch(/terminal[^]*told/);
    expect(engine.left()).toEqual([]);
  });

  test('a killed nd7 leaves no container, whether its program has begun or not', async () => {
    const begun = await desk.start(engine, 'echo up; sleep 60');
    expect(engine.left()).toHaveLength(1);
    begun.kill('SIGKILL');
    await until('it is gone', () => engine.left().length === 0);
    const child = desk.begin(engine, 'echo x > ran; sleep 60');
    const identity = (): boolean =>
      readdirSync(join(desk.user, '.nd7/run')).some((name) =>
        existsSync(join(desk.user, '.nd7/run', name, 'container')),
      );
    await until('there is a container', identity);
    child.kill('SIGKILL');
    await until('it is gone', () => engine.left().length === 0);
  });
});

/** The engine's interface, as far as it says what is held. */
interface Asked {
  User: string;
  Env: string[];
  Entrypoint: string[];
  WorkingDir: string;
  Healthcheck: unknown;
  HostConfig: {
    NetworkMode: string;
    CapDrop: string[];
    CapAdd: string[] | null;
    SecurityOpt: string[];
    Privileged: boolean;
    AutoRemove: boolean;
    Runtime?: string;
    Binds: string[] | null;
    Mounts: { Type: string; Source?: string; Target: string; ReadOnly?: boolean }[];
  };
}

describe(`docker’s own client${why(docker)} [docker]`, () => {
  const test = there(docker);
  const asked = async (engine: TestEngine & { asked: object[] }): Promise<Asked> => {
    mkdirSync(join(desk.user, '.docker'));
    const proxies = {
      default: {
        httpProxy: 'http://me:CANARY@p.invalid',
        ftpProxy: 'http://me:CANARY@p.invalid',
        allProxy: 'http://me:CANARY@p.invalid',
      },
    };
    writeFileSync(join(desk.user, '.docker/config.json'), JSON.stringify({ proxies }));
    const { status, stderr } = await desk.runBeside(engine, 'true', [], SECRETS);
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/kept, and refused[^]*before the program began/) as string,
    ]);
    return engine.asked.at(-1) as unknown as Asked;
  };

  test('asks its engine for what nd7 means: nothing held by root, no network, the project alone, and nothing of its own configuration', async () => {
    const engine = docker as Exclude<typeof docker, { lacks: string }>;
    const one = await asked(engine);
    expect(one).toMatchObject({
      User: `${process.geteuid?.()}:${process.getegid?.()}`,
      Entrypoint: ['/run/nd7/nd7-box'],
      WorkingDir: desk.project,
      Healthcheck: { Test: ['NONE'] },
      HostConfig: {
        ...{
          NetworkMode: 'none',
          CapDrop: ['ALL'],
          SecurityOpt: ['no-new-privileges'],
          Privileged: false,
          AutoRemove: true,
        },
      },
    });
    expect([one.HostConfig.CapAdd ?? [], one.HostConfig.Binds ?? []]).toEqual([[], []]);
    const writable = one.HostConfig.Mounts.filter(({ Type, ReadOnly }) => Type === 'bind' && ReadOnly !== true);
    expect(writable.map(({ Source }) => Source)).toContain(desk.project);
    expect(writable.every(({ Source = '' }) => Source.startsWith(`${desk.user}/`))).toBe(true);
    expect(JSON.stringify(one)).not.toMatch(/CANARY|docker\.sock|\.ssh/);
    expect(one.Env).toContain('HTTP_PROXY=http://127.0.0.1:3128');
  });

  there(gvisor)('asks for gVisor’s runtime where gVisor is meant', async () => {
    const { HostConfig } = await asked(gvisor as Exclude<typeof gvisor, { lacks: string }>);
    expect(HostConfig.Runtime).toBe('runsc');
  });

  test('without an engine: what it says stands, with exit 2, and nothing has begun', () => {
    const environment = { DOCKER_HOST: `unix://${join(desk.user, 'nobody.sock')}` };
    const { status, stderr } = desk.run({ ...NOBODY, path: '/usr/local/bin', environment }, 'echo x > ran');
    expect([status, readdirSync(desk.project)]).toEqual([2, []]);
    expect(stderr).toMatch(/connect to the Docker daemon|docker API[^]*before the program began/i);
  });
});
