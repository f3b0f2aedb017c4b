import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { engineArguments, environmentFile, type EngineInput } from './box-engine.js';
import { firstOf } from './box-gate.js';
import { rulesetFor } from './ruleset.js';

let user: string;
beforeEach(() => void (user = realpathSync(mkdtempSync('/var/tmp/nd7-box-'))));
afterEach(() => rmSync(user, { recursive: true, force: true }));

function inputOf(more: Partial<EngineInput> = {}, name = 'project'): EngineInput {
  const project = join(user, name);
  mkdirSync(join(project, '.git/hooks'), { recursive: true });
  const nd7Home = join(user, '.nd7');
  const environment = { HOME: user };
  const { ruleset } = rulesetFor({ profile: 'offline', agent: undefined, home: user, project, nd7Home, environment });
  return {
    ...{ kind: 'docker', image: 'node:24', ruleset, cwd: project, given: [], isTerminal: false },
    shows: [{ path: '/run/nd7', source: '/door' }],
    argv: ['/run/nd7/nd7-box', 'gate=/run/nd7/gate', '--', 'sh', '-c', 'a b'],
    user: { uid: 1000, gid: 100 },
    files: { environment: '/control/environment', identity: '/control/container' },
    variables: {
      HTTP_PROXY: 'http://127.0.0.1:3128',
      http_proxy: 'http://127.0.0.1:3128',
      FTP_PROXY: 'http://me:KEY@f',
    },
    ...more,
  };
}

const OWN_PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'FTP_PROXY'].flatMap((name) => {
  const value = name === 'HTTP_PROXY' ? 'http://127.0.0.1:3128' : '';
  return [`--env=${name}=${value}`, `--env=${name.toLowerCase()}=${value}`];
});

const golden = (runs: string[], after: string[], proxies: string[]): string[] => [
  ...['run', '--rm', '--interactive', ...runs],
  ...[
    '--pull=never',
    '--network=none',
    '--cap-drop=ALL',
    '--security-opt=no-new-privileges',
    '--no-healthcheck',
    ...proxies,
    '--user=1000:100',
    ...after,
  ],
  ...[`--mount=type=tmpfs,target=${user},tmpfs-mode=1777`],
  `--mount=type=bind,source=${user}/project,target=${user}/project`,
];
const END = [
  '--mount=type=bind,source=/door,target=/run/nd7,readonly',
  ...['--env-file=/control/environment', '--cidfile=/control/container', '--entrypoint=/run/nd7/nd7-box'],
  ...['node:24', 'gate=/run/nd7/gate', '--', 'sh', '-c', 'a b'],
];

it.each([
  ['docker', {}, [], [], OWN_PROXIES],
  ['docker', { isTerminal: true, given: ['--memory=2g'] }, ['--tty', '--memory=2g'], [], OWN_PROXIES],
  ['podman', {}, [], ['--userns=keep-id'], ['--http-proxy=false']],
  ['gvisor', {}, ['--runtime=runsc'], [], OWN_PROXIES],
] as const)('the command line of %s %j', (kind, more, runs, after, proxies) => {
  const words = engineArguments(inputOf({ kind, ...more }));
  const begin = golden([...runs], [...after], [...proxies]);
  expect(words.slice(0, begin.length)).toEqual(begin);
  expect(words.filter((word) => !word.startsWith('--workdir=')).slice(-END.length)).toEqual(END);
  expect(words).toContain(`--workdir=${user}/project`);
});

it('keeps root where podman is root’s', () => {
  expect(engineArguments(inputOf({ kind: 'podman', user: { uid: 0, gid: 0 } }))).not.toContain('--userns=keep-id');
});

it('mounts nothing of the home but what the policy opens, and not the home', () => {
  mkdirSync(join(user, '.ssh'));
  const sources = engineArguments(inputOf()).flatMap((word) => /^--mount=.*source=([^,]*)/.exec(word)?.slice(1) ?? []);
  expect(sources).toContain(join(user, 'project'));
  expect(sources).not.toContain(user);
  expect(sources).not.toContain(join(user, '.ssh'));
  expect(sources.every((one) => one.startsWith(user) || ['/door', '/dev/null'].includes(one))).toBe(true);
});

it.each(['--privileged', '-v/:/host', '', 'a b', 'a\nb', 'a;b', '$(a)', '/a'])('image %j is refused', (image) => {
  expect(() => engineArguments(inputOf({ image }))).toThrow(/no name of an image/);
});

it.each(['a,readonly', 'a",source=', 'a\nb', 'a,source=/etc'])('a workspace called %j is refused', (name) => {
  expect(() => engineArguments(inputOf({}, name))).toThrow(/cannot be mounted by docker/);
});

it.each(['--privileged', 'a b', "a'$(b)", 'a:b'])('a workspace called %j is one word', (name) => {
  const path = join(user, name);
  expect(engineArguments(inputOf({}, name))).toContain(`--mount=type=bind,source=${path},target=${path}`);
});

it('takes no variable that would be two, and leaves the search path to the image', () => {
  const { text, left } = environmentFile({ PATH: '/bin', A: '1=2 "3"', B: 'x\nC=1', 'D=E': '1', '#F': '1', G: '' });
  expect([text, left]).toEqual(['A=1=2 "3"\nG=\n', ['B', 'D=E', '#F']]);
});

describe('who came to the gate', () => {
  const own = { uid: process.geteuid?.() ?? 0, gid: 0 };
  it('is below the container’s first process', async () => {
    const container = spawn('sh', ['-c', 'sleep 20 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const [said] = (await once(container.stdout, 'data')) as [Buffer];
    const inside = { pid: Number(said.toString()), ...own };
    expect(firstOf('docker', inside, container.pid ?? 0)).toMatchObject({ pid: container.pid });
    process.kill(inside.pid);
    await once(container, 'close');
  });
  it.each([
    ['below what nd7 is below itself', { pid: process.pid, ...own }, process.ppid, /nd7 is below that itself/],
    ['nobody that can be seen from here', { pid: 0, ...own }, process.ppid, /virtual machine/],
    ['another user', { pid: process.pid, uid: own.uid + 1, gid: 0 }, process.ppid, /another user/],
    ['the first process itself', { pid: process.pid, ...own }, process.pid, /is not below/],
    ['somebody else', { pid: process.ppid, ...own }, process.pid, /is not below/],
  ])('%s is refused', (_, peer, told, why) => {
    expect(() => firstOf('docker', peer, told)).toThrow(why);
  });
  it('in gVisor, below a monitor that is also nd7’s own is refused', () => {
    expect(() => firstOf('gvisor', { pid: process.pid, ...own }, process.pid)).toThrow(/is not below/);
  });
});
