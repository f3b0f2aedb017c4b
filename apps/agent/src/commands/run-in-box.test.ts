// `nd7 run --in bwrap`: the box is bubblewrap's, the record, the hooks' door and the way out are nd7's.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bwrapArguments } from '../confine/box-bwrap.js';
import { Person } from '../testing/person.fixture.js';
import { BIN } from '../testing/recorder.fixture.js';
import { rulesetFor } from '../confine/ruleset.js';

const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-net', 'true']).status === 0;
const withBwrap = hasBwrap ? describe : describe.skip;

let person: Person;
let user: string;
let project: string;
beforeEach(() => {
  person = new Person();
  ({ user, project } = person);
  mkdirSync(join(user, '.ssh'), { mode: 0o700 });
  writeFileSync(join(user, '.ssh/id'), 'SECRET');
});
afterEach(() => person.end());

const nd7 = (args: string[], path?: string) => person.nd7(args, path);
const log = (): string => person.log().join('\n');

it('makes the view of the policy, shows the door in it and shares no network', () => {
  const nd7Home = join(user, '.nd7');
  const environment = { HOME: user };
  const { ruleset } = rulesetFor({ profile: 'offline', agent: undefined, home: user, project, nd7Home, environment });
  const shows = [{ path: '/run/nd7', source: '/door' }];
  const common = { ruleset, nd7Home, shows, cwd: project, argv: ['true'], isTerminal: false, filter: 3 };
  const text = bwrapArguments({ ...common, given: undefined }).join(' ');
  expect(text).toMatch(/^--ro-bind \/ \/ --dev \/dev --proc \/proc --tmpfs \/tmp --tmpfs \/var\/tmp /);
  for (const part of [`--ro-bind ${user} ${user}`, `--bind ${project} ${project}`, `--tmpfs ${user}/.ssh`])
    expect(text).toContain(` ${part} `);
  // What is nd7's lies over all that the policy says.
  expect(text).toMatch(
    new RegExp(
      `--tmpfs ${nd7Home} --cap-drop ALL --tmpfs /run --ro-bind /door /run/nd7 --unshare-net --unshare-pid --unshare-ipc --as-pid-1 --die-with-parent --seccomp 3 --new-session --chdir ${project} -- true$`,
    ),
  );
  const own = bwrapArguments({ ...common, given: ['--bind', '/', '/'], isTerminal: true }).join(' ');
  expect(own).toMatch(
    new RegExp(`^--bind / / --tmpfs ${nd7Home} --cap-drop ALL --tmpfs /run --ro-bind /door /run/nd7 --unshare-net`),
  );
  expect(own).not.toContain('--new-session');
});

it('says what is missing, with exit 2, before anything is started', () => {
  expect(nd7(['run', '--in', 'bwrap', '--', 'true'], '/nowhere')).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/bwrap is not there[^]*Install bubblewrap/) as string,
  });
  expect(nd7(['run', '--in', 'bwrap', '--tier', 'T1', '--', 'true']).status).toBe(2);
  expect(nd7(['run', '--in-arg=x', '--', 'true']).status).toBe(2);
});

withBwrap(`nd7 run --in bwrap${hasBwrap ? '' : ' (bubblewrap makes no box here)'}`, () => {
  it('gives the program its streams and exit code, and the policy’s files', () => {
    const script = `read x; echo "$x"; echo y > made; cat made; touch ../out; cat ../.ssh/id; ls ../.nd7/sessions; kill -0 ${process.pid}; exit 7`;
    const run = spawnSync(process.execPath, [BIN, 'run', '--in', 'bwrap', '--', 'sh', '-c', script], {
      ...{ cwd: project, encoding: 'utf8', input: 'in\n' },
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: user },
    });
    expect([run.status, run.stdout]).toEqual([7, 'in\ny\n']);
    expect(run.stderr).toMatch(/nd7 records and is the way out, and says nothing of what the box holds/);
    expect([existsSync(join(user, 'out')), readdirSync(user).sort()]).toEqual([false, ['.nd7', '.ssh', 'project']]);
  });

  it('has no rights of root’s inside that take the view away', () => {
    const script = `grep -E 'Cap(Eff|Prm)' /proc/self/status | cut -f2; umount ${user}/.ssh; cat ${user}/.ssh/id; mount -o remount,rw / && echo WRITABLE`;
    const { stdout } = nd7(['run', '--in', 'bwrap', '--', 'sh', '-c', script]);
    expect(stdout).toBe('0000000000000000\n'.repeat(2));
  });

  it('claims nothing, and records what it was and how it ended', () => {
    const { stderr } = nd7(['run', '--in', 'bwrap', '--json', '--', 'sh', '-c', 'kill -9 $$']);
    const line = stderr.split('\n').find((one) => one.startsWith('{')) ?? '';
    const { tier, properties } = JSON.parse(line) as { tier: string; properties: Record<string, string>[] };
    expect(tier).toBe('bwrap');
    expect(new Set(properties.map(({ status, provider }) => `${status} ${provider}`))).toEqual(new Set(['none bwrap']));
    expect(properties[0]?.['limit']).toMatch(/not shown by nd7’s self-test/);
    expect(log()).toMatch(/"kind":"enforcement","data":\{"tier":"bwrap"/);
    expect(log()).toMatch(/"kind":"session.end"/);
    expect(readdirSync(join(user, '.nd7/run')).filter((name) => name.startsWith('s-'))).toEqual([]);
  });

  it('has the proxy as its only way out, and what is refused is recorded', () => {
    const script = `curl -sS -m 5 -o /dev/null -w '%{http_connect}\\n' https://example.com; curl -sS -m 5 --noproxy '*' http://1.1.1.1/; true`;
    const { stdout, stderr } = nd7(['run', '--in', 'bwrap', '--', 'sh', '-c', script]);
    expect([stdout, stderr]).toEqual(['403\n', expect.stringMatching(/Could|unreachable|connect/i) as string]);
    expect(log()).toMatch(/"kind":"network","data":\{[^}]*"host":"example.com"[^}]*"verdict":"deny"/);
  });

  it('takes a view that the person gives, and tells what became of protected names in it', () => {
    const given = ['--bind', '/', '/', '--dev', '/dev', '--proc', '/proc'].map((word) => `--in-arg=${word}`);
    const { status, stderr } = nd7([
      'run',
      '--in',
      'bwrap',
      ...given,
      '--',
      'sh',
      '-c',
      'touch ../out .envrc; ls ../.ssh',
    ]);
    expect([status, existsSync(join(user, 'out'))]).toEqual([0, true]);
    expect(stderr).toMatch(/changed 1 protected name, which a box of bwrap does not refuse[^]*made .*\.envrc/);
  });

  it('is not made by a program that a session can have laid on PATH', () => {
    const own = join(project, 'bin');
    mkdirSync(own);
    writeFileSync(join(own, 'bwrap'), '#!/bin/sh\ntouch ran\n', { mode: 0o755 });
    const { status, stderr } = nd7(['run', '--in', 'bwrap', '--', 'true'], `${own}:/usr/bin:/bin`);
    expect([status, readdirSync(project)]).toEqual([2, ['bin']]);
    expect(stderr).toMatch(/bin\/bwrap lies where a session may write/);
  });

  it('does not start where a policy of the person’s own requires a property', () => {
    writeFileSync(join(user, '.nd7/policy.jsonc'), '{"nd7": 1, "require": ["files.read"]}', { mode: 0o600 });
    const { status, stderr } = nd7(['run', '--in', 'bwrap', '--', 'touch', 'ran']);
    expect([status, readdirSync(project)]).toEqual([2, []]);
    expect(stderr).toMatch(/requires what a box of bwrap does not give here: files\.read/);
  });
});
