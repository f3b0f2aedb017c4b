// Container engines for tests: podman itself where it runs, and a stand-in of docker's that makes its box by bubblewrap.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';

/** An engine as `nd7 run` meets it. */
export interface TestEngine {
  kind: 'docker' | 'podman' | 'gvisor';
  image: string;
  /** Comes before the command line of nd7's. */
  before: readonly string[];
  /** Folders of its program before PATH's others, and what else it wants to be told. */
  path: string;
  environment: Readonly<Record<string, string>>;
  /** Whose it is, where that is not who runs the test. */
  uid?: number;
  /** The containers that there are, running or not. */
  left(): string[];
  remove(): void;
}

const SHELL = '/usr/bin:/bin';

/**
 * docker's words, of those that nd7 says, and no other: a word that it does not know ends it with 125. The container is bubblewrap's, in a session
 * and with parents of its own, as a daemon's is; its first process is nd7's first program.
 */
const STAND_IN = `
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
const state = join(dirname(process.argv[1]), 'pid');
const [command, ...words] = process.argv.slice(2);
const fail = (why) => { console.error('stand-in: ' + why); process.exit(125); };
const ID = 'a'.repeat(64);
if (command === 'inspect' || command === 'kill') {
  if (words.at(-1) !== ID || !existsSync(state)) fail('no such container');
  const pid = Number(readFileSync(state, 'utf8'));
  if (command === 'inspect') console.log(process.env.ND7_TOLD ?? pid);
  else try { process.kill(pid, 'SIG' + words[0].slice('--signal='.length)); } catch { fail('not running'); }
} else if (command === 'run') {
  const flags = ['--rm', '--interactive', '--pull=never', '--network=none', '--cap-drop=ALL', '--security-opt=no-new-privileges', '--no-healthcheck'];
  const said = {}, mounts = [], given = [];
  while (words[0]?.startsWith('--')) {
    const word = words.shift(), [, name, value] = /^--([a-z-]+)=(.*)$/.exec(word) ?? [];
    if (flags.includes(word)) flags.splice(flags.indexOf(word), 1);
    else if (name === 'env') given.push(value);
    else if (name === 'mount') mounts.push(Object.fromEntries(value.split(',').map((one) => one.split('='))));
    else if (['user', 'workdir', 'env-file', 'cidfile', 'entrypoint'].includes(name)) said[name] = value;
    else fail('unknown ' + word);
  }
  if (flags.length > 0) fail('missing ' + flags);
  if (words.shift() !== 'tiny:1') fail('no such image');
  if (said.user !== process.geteuid() + ':' + process.getegid()) fail('another user');
  const depth = (mount) => mount.target.split('/').length;
  const args = ['--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin', '--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/run'];
  for (const mount of mounts.toSorted((a, b) => depth(a) - depth(b)))
    if (mount.type === 'tmpfs') args.push('--tmpfs', mount.target);
    else args.push('readonly' in mount ? '--ro-bind' : '--bind', mount.source, mount.target);
  args.push('--unshare-net', '--unshare-pid', '--as-pid-1', '--clearenv', '--setenv', 'PATH', '${SHELL}');
  for (const line of [...readFileSync(said['env-file'], 'utf8').split('\\n').filter(Boolean), ...given]) {
    const at = line.indexOf('=');
    args.push('--setenv', line.slice(0, at), line.slice(at + 1));
  }
  writeFileSync(said.cidfile, ID, { flag: 'wx' });
  const child = spawn('bwrap', ['--info-fd', '3', ...args, '--chdir', said.workdir, '--', said.entrypoint, ...words], { stdio: ['inherit', 'inherit', 'inherit', 'pipe'], detached: true });
  let told = '';
  child.stdio[3].on('data', (bytes) => (told += bytes)).on('end', () => writeFileSync(state, String(JSON.parse(told)['child-pid'])));
  child.on('close', (code) => process.exit(code ?? 125));
} else fail('unknown ' + command);
`;

/** The stand-in, or why there is none here. */
export function standInEngine(): TestEngine | { lacks: string } {
  if (spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-net', 'true']).status !== 0)
    return { lacks: 'bubblewrap makes no box here' };
  const folder = realpathSync(mkdtempSync('/var/tmp/nd7-engine-'));
  writeFileSync(join(folder, 'engine.mjs'), STAND_IN);
  const program = `#!/bin/sh\nexec ${process.execPath} ${join(folder, 'engine.mjs')} "$@"\n`;
  writeFileSync(join(folder, 'docker'), program, { mode: 0o755 });
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  return { kind: 'docker', image: 'tiny:1', before: [], path: folder, environment: {}, left: () => [], remove };
}

/** An ordinary user that this machine need not have: it is one among mounts of the test's own. */
const ORDINARY = 61234;

/** podman with a store of its own and an image of this machine's shell, or why it makes none here. `ordinary`: as an ordinary user, where root runs the test. */
export function podmanEngine(ordinary = false): TestEngine | { lacks: string } {
  if (spawnSync('podman', ['--version']).status !== 0) return { lacks: 'no podman here' };
  const isRoot = process.geteuid?.() === 0;
  if (ordinary && !isRoot) return { lacks: 'only root can be somebody else' };
  if (ordinary && spawnSync('sh', ['-c', 'command -v newuidmap']).status !== 0)
    return { lacks: 'no newuidmap here (uidmap)' };
  const folder = realpathSync(mkdtempSync('/var/tmp/nd7-podman-'));
  const image = join(folder, 'image');
  mkdirSync(join(image, 'bin'), { recursive: true });
  for (const name of ['sh', 'cat', 'curl', 'sleep']) {
    const program = spawnSync('sh', ['-c', `readlink -f "$(command -v ${name})"`], { encoding: 'utf8' }).stdout.trim();
    copyFileSync(program, join(image, 'bin', name));
    for (const [library] of spawnSync('ldd', [program], { encoding: 'utf8' }).stdout.matchAll(/\/\S+/g)) {
      mkdirSync(dirname(join(image, library)), { recursive: true });
      copyFileSync(library, join(image, library));
    }
  }
  spawnSync('tar', ['-C', image, '-cf', join(folder, 'image.tar'), '.']);
  const limits = 'cgroups = "disabled"\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]';
  const engine = 'cgroup_manager = "cgroupfs"\nevents_logger = "file"';
  writeFileSync(join(folder, 'containers.conf'), `[containers]\n${limits}\n[engine]\n${engine}\n`);
  const store = `graphroot = "${folder}/store"\nrootless_storage_path = "${folder}/store"\nrunroot = "${folder}/run"`;
  writeFileSync(join(folder, 'storage.conf'), `[storage]\ndriver = "vfs"\n${store}\n`);
  const environment = {
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    ...(ordinary ? { XDG_RUNTIME_DIR: join(folder, 'runtime'), HOME: join(folder, 'runtime') } : {}),
  };
  const setUp = [
    // crun makes nothing where both kinds of control groups are mounted.
    'umount -l /sys/fs/cgroup/unified 2>/dev/null',
    ...(ordinary ? becomeOrdinary(folder) : ['exec "$@"']),
  ];
  const before = isRoot ? ['unshare', '-m', '--propagation', 'private', 'sh', '-c', setUp.join('; '), 'sh'] : [];
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const podman = (...words: string[]) => {
    const [program = '', ...rest] = [...before, 'podman', ...words];
    return spawnSync(program, rest, { env: { ...process.env, ...environment }, encoding: 'utf8' });
  };
  const left = (): string[] => podman('ps', '--all', '--quiet').stdout.split('\n').filter(Boolean);
  podman('import', join(folder, 'image.tar'), 'tiny:1');
  const tried = podman('run', '--rm', '--network=none', '--pull=never', 'tiny:1', 'sh', '-c', 'exit 7');
  if (tried.status === 7)
    return {
      kind: 'podman',
      image: 'tiny:1',
      before,
      path: SHELL,
      environment,
      ...(ordinary && { uid: ORDINARY }),
      left,
      remove,
    };
  remove();
  return { lacks: `podman makes no container here: ${tried.stderr.trim().split('\n').at(-1)}` };
}

/** The files by which there is such a user, and the lines that put them in place and become that one. */
function becomeOrdinary(folder: string): string[] {
  const files = { passwd: `dev:x:${ORDINARY}:${ORDINARY}::/nowhere:/bin/sh\n`, group: `dev:x:${ORDINARY}:\n` };
  const ranges = { subuid: 'dev:300000:65536\n', subgid: 'dev:300000:65536\n' };
  for (const [name, text] of Object.entries({ ...files, ...ranges }))
    writeFileSync(join(folder, name), text + (name in files ? readFileSync(join('/etc', name), 'latin1') : ''));
  for (const name of ['store', 'run', 'runtime']) {
    mkdirSync(join(folder, name), { mode: 0o700 });
    chownSync(join(folder, name), ORDINARY, ORDINARY);
  }
  chmodSync(folder, 0o755);
  const names = Object.keys({ ...files, ...ranges });
  return [
    ...names.map((name) => `mount --bind ${join(folder, name)} /etc/${name} || exit 3`),
    `exec setpriv --reuid=${ORDINARY} --regid=${ORDINARY} --clear-groups "$@"`,
  ];
}

/** docker's own client, which asks an engine of the test's for a container: what it asked is kept, and refused. Or why it is not there. */
export async function askedOfDocker(
  kind: 'docker' | 'gvisor' = 'docker',
): Promise<(TestEngine & { asked: Record<string, unknown>[] }) | { lacks: string }> {
  if (spawnSync('docker', ['--version']).status !== 0) return { lacks: 'no client of docker’s here' };
  const folder = realpathSync(mkdtempSync('/var/tmp/nd7-dockerd-'));
  const asked: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const isCreate = request.url?.includes('/containers/create') === true;
      if (isCreate) asked.push(JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>);
      response.writeHead(isCreate ? 500 : 200, { 'Api-Version': '1.41', 'Content-Type': 'application/json' });
      response.end(isCreate ? '{"message":"kept, and refused"}' : 'OK');
    });
  });
  await new Promise<void>((done) => server.listen(join(folder, 'socket'), done));
  const remove = (): void => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  };
  const environment = { DOCKER_HOST: `unix://${join(folder, 'socket')}` };
  return { kind, image: 'tiny:1', before: [], path: '/usr/local/bin', environment, left: () => [], remove, asked };
}
