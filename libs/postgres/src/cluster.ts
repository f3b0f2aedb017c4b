// One PostgreSQL cluster of our own: made with initdb, reached over a Unix socket, ended with us.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Binaries } from './binaries.js';
import { PostgresError } from './error.js';

export interface ClusterOptions {
  binaries: Binaries;
  /** Folder that keeps the cluster; made when missing. */
  dataDir: string;
  /** false: no fsync, for tests whose data dies with them. */
  durable: boolean;
  /** true: the binaries lie in node_modules and are copied where the server's user can reach them. */
  copyBinaries: boolean;
}

export interface Cluster {
  url: string;
  dataDir: string;
  stop(): Promise<void>;
}

/** Who the server runs as. PostgreSQL refuses root, so root gives it to `postgres`, else to `nobody` (65534); no user is added. */
function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const passwd = readFileSync('/etc/passwd', 'utf8');
  const line = /^postgres:[^:]*:(\d+):(\d+):/m.exec(passwd);
  return line === null ? { uid: 65534, gid: 65534 } : { uid: Number(line[1]), gid: Number(line[2]) };
}

/** True when a user who owns nothing on the way can reach `path`: every folder above it lets others pass. */
function othersCanReach(path: string): boolean {
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    if (existsSync(folder) && (statSync(folder).mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** `/root` is 0700: a server that runs as another user cannot enter a checkout below it, so its data goes beside. */
function reachable(path: string, user: { uid: number } | undefined): string {
  if (user === undefined || othersCanReach(dirname(resolve(path)))) return resolve(path);
  const name = createHash('sha256').update(resolve(path)).digest('hex').slice(0, 16);
  return join('/var/tmp', `nd7-postgres-${name}`);
}

/** Where the cluster of `dataDir` really lies; what `--fresh` has to remove. */
export function clusterFolder(dataDir: string): string {
  return reachable(dataDir, serverUser());
}

/** A folder with a guessable name under /var/tmp may be somebody else's trap. */
function refuseForeign(dataDir: string, user: { uid: number } | undefined): void {
  const owner = existsSync(dataDir) ? statSync(dataDir).uid : undefined;
  const wanted = user?.uid ?? process.getuid?.();
  if (owner !== undefined && wanted !== undefined && owner !== wanted) {
    throw new PostgresError(
      'start',
      `${dataDir} belongs to uid ${owner}, not to uid ${wanted} that runs the server: remove it and start again`,
    );
  }
}

function own(path: string, user: { uid: number; gid: number } | undefined): void {
  chmodSync(path, 0o700);
  if (user !== undefined) chownSync(path, user.uid, user.gid);
}

function runInitdb(
  bin: string,
  dataDir: string,
  durable: boolean,
  user: { uid: number; gid: number } | undefined,
): Promise<void> {
  const args = [
    '-D',
    dataDir,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C',
    ...(durable ? [] : ['--no-sync']),
  ];
  return new Promise((done, fail) => {
    execFile(join(bin, 'initdb'), args, { cwd: '/', ...user, env: serverEnv(bin) }, (error, _out, stderr) => {
      if (error === null) done();
      else
        fail(
          new PostgresError(
            'initdb',
            `initdb could not make a cluster in ${dataDir}: ${stderr.trim() || error.message}`,
          ),
        );
    });
  });
}

function serverEnv(bin: string): NodeJS.ProcessEnv {
  return { PATH: `${bin}:/usr/bin:/bin`, LC_ALL: 'C', TZ: 'UTC', HOME: '/' };
}

/** Starts the cluster (making it on first use) and waits until it takes connections. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const user = serverUser();
  const dataDir = reachable(options.dataDir, user);
  const scratch = mkdtempSync(join(tmpdir(), 'nd7-pg-'));
  let { bin } = options.binaries;
  try {
    if (options.copyBinaries && user !== undefined && !othersCanReach(bin)) {
      chmodSync(scratch, 0o755);
      cpSync(join(bin, '..'), join(scratch, 'native'), { recursive: true, verbatimSymlinks: true });
      bin = join(scratch, 'native', 'bin');
    } else if (user !== undefined) {
      chmodSync(scratch, 0o755);
    }
    const socketDir = join(scratch, 's');
    mkdirSync(socketDir);
    own(socketDir, user);
    refuseForeign(dataDir, user);
    if (!existsSync(join(dataDir, 'PG_VERSION'))) {
      rmSync(dataDir, { recursive: true, force: true }); // an initdb that was killed leaves a folder that no server takes
      mkdirSync(dataDir, { recursive: true });
      own(dataDir, user);
      await runInitdb(bin, dataDir, options.durable, user);
    }
    return await runServer({ bin, dataDir, socketDir, scratch, durable: options.durable, user });
  } catch (error) {
    rmSync(scratch, { recursive: true, force: true });
    throw error;
  }
}

interface ServerPlace {
  bin: string;
  dataDir: string;
  socketDir: string;
  scratch: string;
  durable: boolean;
  user: { uid: number; gid: number } | undefined;
}

async function runServer(place: ServerPlace): Promise<Cluster> {
  const settings = {
    listen_addresses: '',
    unix_socket_directories: place.socketDir,
    unix_socket_permissions: '0700',
    max_connections: '100',
    ...(place.durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  const args = ['-D', place.dataDir, ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])];
  const server = join(place.bin, 'postgres');
  // setpriv (util-linux) makes the kernel end the server when we are killed; without it a kill -9 would leave it running.
  const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path));
  const child =
    setpriv === undefined
      ? spawn(server, args, {
          cwd: '/',
          ...place.user,
          env: serverEnv(place.bin),
          stdio: ['ignore', 'pipe', 'pipe'],
          detached: true,
        })
      : spawn(setpriv, ['--pdeathsig', 'INT', server, ...args], {
          cwd: '/',
          ...place.user,
          env: serverEnv(place.bin),
          stdio: ['ignore', 'pipe', 'pipe'],
          detached: true, // a Ctrl-C at the terminal is for us: we end the server after the vault
        });
  let said = '';
  const keep = (chunk: Buffer): void => {
    said = (said + chunk.toString('utf8')).slice(-4000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const ended = new Promise<void>((done) => {
    child.once('exit', () => done());
    child.once('error', (error) => {
      keep(Buffer.from(error.message));
      done();
    });
  });
  const onExit = (): void => void child.kill('SIGINT');
  process.once('exit', onExit);
  await answering(join(place.socketDir, '.s.PGSQL.5432'), child, () => said);
  return {
    url: `postgres://postgres@${encodeURIComponent(place.socketDir)}:5432/postgres`,
    dataDir: place.dataDir,
    async stop() {
      process.removeListener('exit', onExit);
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT'); // fast shutdown
      await ended;
      rmSync(place.scratch, { recursive: true, force: true });
    },
  };
}

/** Waits until the server takes connections: the socket appears before it is ready, so a start-up packet is sent and its answer read. */
async function answering(socket: string, child: ChildProcess, said: () => string): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (performance.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new PostgresError('start', `PostgreSQL ended while it was starting: ${said().trim()}`);
    }
    if (await isReady(socket)) return;
    await new Promise((next) => setTimeout(next, 25));
  }
  child.kill('SIGQUIT');
  throw new PostgresError('start', `PostgreSQL did not take connections within 60 s: ${said().trim()}`);
}

function isReady(socket: string): Promise<boolean> {
  return new Promise((done) => {
    const body = Buffer.from('user\0postgres\0database\0postgres\0\0', 'latin1');
    const packet = Buffer.alloc(8 + body.length);
    packet.writeInt32BE(packet.length, 0);
    packet.writeInt32BE(196608, 4); // protocol 3.0
    body.copy(packet, 8);
    const stream = connect(socket, () => stream.write(packet));
    stream.once('data', (answer) => {
      stream.destroy();
      done(answer[0] === 0x52); // 'R': authentication; 'E' while it starts up
    });
    stream.once('error', () => done(false));
    stream.once('close', () => done(false));
  });
}
