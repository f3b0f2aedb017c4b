// The dashboard's files. Its pages are one document: any path that is no file and no route of the API answers with it.
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DOCS_POLICY, PAGE_POLICY, WORKER_POLICY } from './headers.js';
import { Problem } from './problem.js';
import { sendProblem } from './problem.filter.js';
import { sendFile } from './static-files.js';

const API = /^\/(v1|t|healthz|readyz|metrics|openapi\.json)(\/|$)/;
/** The dashboard's own pages: whoever asks for one gets it, whatever it says that it accepts (curl, a link checker, a probe). */
const PAGE = /^\/(|index\.html|(sessions|machines|incidents|verify|sign-in)(\/.*)?)$/;
const WORKER = /^\/assets\/verify-worker[^/]*\.js$/;
/** The build puts a hash into these names: what a name stands for never changes. */
const HASHED = /^\/assets\//;

/** Serves the files of `folder`, and Swagger UI under /docs. Every route of the API is more specific than these. */
export function serveDashboard(fastify: FastifyInstance, folder: string): void {
  const swagger = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  fastify.get('/docs', (_request, reply) => {
    void reply
      .header('content-security-policy', DOCS_POLICY)
      .header('content-type', 'text/html; charset=utf-8')
      .send(DOCS_PAGE);
  });
  fastify.get('/docs/start.js', (_request, reply) => {
    void reply.header('content-type', 'text/javascript; charset=utf-8').send(DOCS_SCRIPT);
  });
  fastify.get('/docs/:file', (request, reply) => {
    const { file } = request.params as { file: string };
    if (!/^swagger-ui(-bundle)?\.(css|js)$/.test(file) || !sendFile(request, reply, swagger, `/${file}`))
      nothingHere(reply);
  });
  fastify.get('/*', (request, reply) => {
    dashboardFile(request, reply, folder);
  });
}

function dashboardFile(request: FastifyRequest, reply: FastifyReply, folder: string): void {
  const path = request.url.split('?', 1)[0] as string;
  if (API.test(path)) return nothingHere(reply);
  if (path !== '/index.html') {
    void reply.header('cache-control', HASHED.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache');
    if (WORKER.test(path)) void reply.header('content-security-policy', WORKER_POLICY);
    if (sendFile(request, reply, folder, path)) return;
  }
  // A file that is not there must not be answered with a page, least of all as a script.
  const wanted = PAGE.test(path) || (request.headers.accept ?? '').includes('text/html');
  if (!wanted || HASHED.test(path)) return nothingHere(reply);
  void reply.header('content-security-policy', PAGE_POLICY).header('cache-control', 'no-cache');
  if (sendFile(request, reply, folder, '/index.html')) return;
  void reply
    .type('text/plain; charset=utf-8')
    .send('This vault runs without its dashboard: build apps/dashboard, or set ND7_DASHBOARD_DIR.\n');
}

function nothingHere(reply: FastifyReply): void {
  sendProblem(reply, new Problem('not-found', 'there is nothing at this path'));
}

const DOCS_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>nd7 vault: API</title><link rel="stylesheet" href="/docs/swagger-ui.css"></head>
<body><div id="docs"></div><script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body></html>
`;
const DOCS_SCRIPT = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#docs', deepLinking: true, supportedSubmitMethods: ['get'] });\n`;
