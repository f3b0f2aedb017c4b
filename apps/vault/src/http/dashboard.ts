// The dashboard's files. Its pages are one document: any path that is no file and no route of the API answers with it.
import fastifyStatic from '@fastify/static';
import { createRequire } from 'node:module';
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DOCS_POLICY, PAGE_POLICY, WORKER_POLICY } from './headers.js';
import { Problem } from './problem.js';
import { sendProblem } from './problem.filter.js';

const API = /^\/(v1|t|healthz|readyz|metrics|openapi\.json)(\/|$)/;
const WORKER = /^\/assets\/verify-worker[^/]*\.js$/;
/** Vite puts a hash into these names: what a name stands for never changes. */
const HASHED = /^\/assets\//;
const FILE = /^\/[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/;

/** Serves the files of `folder`, and Swagger UI under /docs. Registered last: every route of the API comes first. */
export async function serveDashboard(fastify: FastifyInstance, folder: string): Promise<void> {
  await fastify.register(fastifyStatic, { root: folder, serve: false });
  const swagger = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  fastify.get('/docs', (_request, reply) => {
    void reply.header('content-security-policy', DOCS_POLICY).header('content-type', 'text/html; charset=utf-8').send(DOCS_PAGE);
  });
  fastify.get('/docs/start.js', (_request, reply) => {
    void reply.header('content-type', 'text/javascript; charset=utf-8').send(DOCS_SCRIPT);
  });
  fastify.get('/docs/:file', (request, reply) => {
    const { file } = request.params as { file: string };
    if (/^swagger-ui(-bundle)?\.(css|js)$/.test(file)) return reply.sendFile(file, swagger);
    return sendProblem(reply, new Problem('not-found', 'there is nothing at this path'));
  });
  fastify.get('/*', (request, reply) => dashboardFile(request, reply, folder));
}

function dashboardFile(request: FastifyRequest, reply: FastifyReply, folder: string): unknown {
  const path = request.url.split('?', 1)[0] as string;
  if (API.test(path)) return sendProblem(reply, new Problem('not-found', 'there is nothing at this path'));
  if (path !== '/' && FILE.test(path) && !path.includes('/.') && path !== '/index.html' && isFile(join(folder, path))) {
    if (WORKER.test(path)) void reply.header('content-security-policy', WORKER_POLICY);
    return reply.sendFile(path.slice(1), folder, HASHED.test(path) ? { maxAge: '365d', immutable: true } : { cacheControl: false });
  }
  if (!(request.headers.accept ?? '').includes('text/html')) return sendProblem(reply, new Problem('not-found', 'there is nothing at this path'));
  void reply.header('content-security-policy', PAGE_POLICY).header('cache-control', 'no-cache');
  if (isFile(join(folder, 'index.html'))) return reply.sendFile('index.html', folder, { cacheControl: false });
  return reply.type('text/plain; charset=utf-8').send('This vault runs without its dashboard: build apps/dashboard, or set ND7_DASHBOARD_DIR.\n');
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

const DOCS_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>nd7 vault: API</title><link rel="stylesheet" href="/docs/swagger-ui.css"></head>
<body><div id="docs"></div><script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body></html>
`;
const DOCS_SCRIPT = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#docs', deepLinking: true, supportedSubmitMethods: ['get'] });\n`;
