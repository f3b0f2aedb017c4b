// The service as one function: modules, hooks, files, port. `main.ts` and the tests start it with it.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { Access } from './access/access.js';
import { checkGuards } from './db/boot-check.js';
import { Metrics } from './health/metrics.js';
import { Readiness } from './health/readiness.js';
import { Admission } from './http/admission.js';
import { routeOf } from './http/route.js';
import { acceptBodies } from './http/body.js';
import { serveDashboard } from './http/dashboard.js';
import { commonHeaders } from './http/headers.js';
import { ProblemFilter } from './http/problem.filter.js';
import { Watch } from './watch/watch.js';
import { checkStart } from './health/start-check.js';
import { VaultModule, type VaultParts } from './vault.module.js';
import './http/request.js';

export interface RunningVault {
  /** Where it listens, `http://host:port`. */
  url: string;
  /** Looks for silence now, not only at the next turn. */
  look(): Promise<void>;
  /** Looks at the database's guards now. */
  lookAtGuards(): Promise<void>;
  close(): Promise<void>;
}

/** Checks the database's guards and what it is to promise, starts the service and waits until it takes requests. Throws what keeps it from starting. */
export async function startVault(parts: VaultParts): Promise<RunningVault> {
  const { config, log } = parts;
  for (const warning of await checkGuards(config)) log.warn(warning);
  await checkStart(config);
  const adapter = new FastifyAdapter({
    routerOptions: { maxParamLength: 256 },
    // Bodies are checked by the contract's own schemas: Fastify need not load its validator and serialiser, which takes a third of the start.
    schemaController: {
      compilersFactory: {
        buildValidator: (() => () => () => true) as never,
        buildSerializer: (() => () => JSON.stringify) as never,
      },
    },
    forceCloseConnections: 'idle',
    requestTimeout: 60_000,
    keepAliveTimeout: 72_000,
  });
  const app = await NestFactory.create<NestFastifyApplication>(VaultModule.of(parts), adapter, {
    bodyParser: false,
    logger: log,
    abortOnError: false,
  });
  const fastify = adapter.getInstance() as unknown as FastifyInstance;
  try {
    acceptBodies(fastify);
    addHooks(fastify, app, parts);
    app.useGlobalFilters(new ProblemFilter(log));
    serveDashboard(fastify, config.dashboardDir);
    await app.listen(config.port, config.host);
  } catch (error) {
    await app.close().catch(() => undefined); // what was opened by then would keep the process alive
    throw error;
  }
  const address = fastify.server.address();
  const port = typeof address === 'object' && address !== null ? address.port : config.port;
  const url = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${String(port)}`;
  log.info('vault ready', { url, vault: config.name });
  return {
    url,
    look: () => app.get(Watch).look(),
    lookAtGuards: () => app.get(Readiness).lookAtGuards(),
    close: () => app.close(),
  };
}

function addHooks(fastify: FastifyInstance, app: NestFastifyApplication, { config, log }: VaultParts): void {
  const [access, admission, metrics] = [app.get(Access), app.get(Admission), app.get(Metrics)];
  const headers = commonHeaders(config.publicUrl);
  fastify.addHook('onRequest', async (request, reply) => {
    void reply.headers(headers);
    const route = routeOf(request);
    if (route === undefined) return;
    if (route.path.startsWith('/v1')) void reply.header('cache-control', 'no-store');
    await access.identify(request, route);
    if (route.name === 'segment') admission.admit(request, reply);
  });
  closeConnections(fastify);
  fastify.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none';
    metrics.requests.inc({ route, status: String(reply.statusCode) });
    if (route !== '/healthz' && route !== '/readyz' && route !== '/metrics') {
      const who = request.machine === undefined ? {} : { machine: request.machine.machine.slice(0, 16) };
      const team = request.machine?.team ?? request.reader?.team;
      log.info('request', {
        method: request.method,
        route,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
        ...(team === undefined ? {} : { team }),
        ...who,
      });
    }
    done();
  });
}

/** How long a shutdown waits for requests in work, in milliseconds. */
const DRAIN = 20_000;

/** At shutdown requests in work are finished; connections that only wait for a next one are closed as soon as they do. */
function closeConnections(fastify: FastifyInstance): void {
  fastify.addHook('preClose', (done) => {
    const idle = setInterval(() => fastify.server.closeIdleConnections(), 50);
    const all = setTimeout(() => fastify.server.closeAllConnections(), DRAIN);
    fastify.server.once('close', () => {
      clearInterval(idle);
      clearTimeout(all);
    });
    done();
  });
}
