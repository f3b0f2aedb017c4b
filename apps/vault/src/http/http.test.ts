import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { encodeClaimHeaders } from '@nd7/segment';
import { join } from 'node:path';
import { PAGE_POLICY, WORKER_POLICY } from './headers.js';
import { TestSession, call, type Answer, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let url: string;
let machine: TestMachine;
const get = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  call(url, 'GET', path, { headers });
const HTML = { accept: 'text/html,application/xhtml+xml' };

beforeAll(async () => {
  world = await TestWorld.make({ env: { ND7_VAULT_METRICS_TOKEN: 'scrape-me-scrape-me' } });
  const folder = join(world.folder, 'dashboard');
  mkdirSync(join(folder, 'assets'), { recursive: true });
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>nd7</title>');
  writeFileSync(join(folder, 'assets/index-a1.js'), 'console.log(1)');
  writeFileSync(join(folder, 'assets/verify-worker-b2.js'), 'onmessage = null');
  writeFileSync(join(folder, '.secret'), 'x');
  await world.team('acme');
  url = (await world.replica()).url;
  machine = await world.machine('acme');
}, 60_000);

afterAll(() => world.close());

describe('the dashboard’s files', () => {
  it.each([
    '/',
    '/sessions',
    `/machines/${'0'.repeat(64)}/sessions/x.y`,
    '/verify',
    '/sign-in?next=%2F',
    '/index.html',
  ])('page %s is the one document, under the page’s policy', async (path) => {
    const answer = await get(path, HTML);
    expect([answer.status, answer.text]).toEqual([200, '<!doctype html><title>nd7</title>']);
    expect(answer.headers.get('content-security-policy')).toBe(PAGE_POLICY);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
  });

  it.each(['/', '/sign-in', '/sessions', '/machines/x/sessions/y.js', '/index.html'])(
    'page %s answers a client that asks for no HTML, as curl does',
    async (path) => {
      const answer = await get(path, { accept: '*/*' });
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    },
  );

  it('lets only the worker’s own response compile WebAssembly', async () => {
    const [script, worker] = [await get('/assets/index-a1.js'), await get('/assets/verify-worker-b2.js')];
    expect(script.headers.get('content-security-policy')).not.toContain('wasm');
    expect(worker.headers.get('content-security-policy')).toBe(WORKER_POLICY);
    expect(PAGE_POLICY).not.toContain('wasm');
    for (const file of [script, worker]) {
      expect(file.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
      expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    }
    const again = await get('/assets/index-a1.js', { 'if-none-match': String(script.headers.get('etag')) });
    expect([again.status, again.text]).toEqual([304, '']);
  });

  it.each([
    '/assets/gone.js',
    '/.secret',
    '/../keys/x',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/assets/..%2f..%2f.secret',
    '/assets',
  ])('answers %s with no file', async (path) => {
    const answer = await get(path, { accept: '*/*' });
    expect([answer.status, answer.json['code']]).toEqual([404, 'not-found']);
  });

  it.each(['/v1/nothing', '/t/acme/nothing', '/healthz/x'])(
    'does not answer %s, a path of the API, with a page',
    async (path) => {
      const answer = await get(path, HTML);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'application/problem+json']);
    },
  );

  it('answers other methods with a problem', async () => {
    expect((await call(url, 'DELETE', '/v1/sessions')).json['code']).toBe('not-found');
    expect((await call(url, 'POST', '/')).json['code']).toBe('not-found');
  });
});

describe('every answer', () => {
  it.each(['/healthz', '/v1/me', '/', '/assets/index-a1.js', '/nothing'])(
    '%s carries the protective headers',
    async (path) => {
      const { headers } = await get(path);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(headers.get('x-powered-by')).toBeNull();
    },
  );
});

describe('the API page', () => {
  it('is served from here, under a policy of its own', async () => {
    const page = await get('/docs', HTML);
    expect(page.text).toContain('/docs/swagger-ui-bundle.js');
    expect(page.text).not.toContain('http');
    expect((await get('/docs/swagger-ui-bundle.js')).status).toBe(200);
    expect((await get('/docs/swagger-ui.css')).headers.get('content-type')).toBe('text/css; charset=utf-8');
    expect((await get('/docs/package.json')).status).toBe(404);
    expect((await get('/docs/start.js')).text).toContain('/openapi.json');
  });

  it('describes every route', async () => {
    const { paths } = (await get('/openapi.json')).json as { paths: Record<string, Record<string, unknown>> };
    expect(Object.keys(paths)).toContain('/v1/sessions/{session}/segments/{from}');
    expect(paths['/v1/sessions/{session}/segments/{from}']?.['put']).toMatchObject({ operationId: 'segment' });
  });
});

describe('health, readiness, metrics, logs', () => {
  it('answer', async () => {
    expect((await get('/healthz')).json).toEqual({ status: 'ok' });
    expect((await get('/readyz')).json).toEqual({ status: 'ok' });
  });

  it('count entries, segments and requests in the words of the glossary, without ids', async () => {
    const session = new TestSession(machine.key, 'metrics-session').start().more(3);
    await machine.ship(session.id, session.cut(0));
    expect((await get('/metrics')).status).toBe(401);
    const { text } = await get('/metrics', { authorization: 'Bearer scrape-me-scrape-me' });
    expect(text).toContain('nd7_entries_total{class="intent"} 3');
    expect(text).toContain('nd7_segments_total{answer="new"} 1');
    expect(text).toContain('route="/v1/sessions/:session/segments/:from",status="201"');
    expect(text).toContain('nd7_log_leaves_total');
    expect(text).not.toContain('metrics-session');
    expect(text).not.toContain(machine.key.publicKey);
  });

  it('log one JSON object a line, without path parameters, tokens or content', () => {
    const lines = world.logged.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(
      lines.some((line) => line['route'] === '/v1/sessions/:session/segments/:from' && line['status'] === 201),
    ).toBe(true);
    expect(world.logged.join('')).not.toContain('metrics-session');
    expect(world.logged.join('')).not.toMatch(/nd7[mre]1_/);
  });
});

/** Whether one segment is in work at a replica. */
async function inWork(at: string): Promise<boolean> {
  const { text } = await call(at, 'GET', '/metrics', { headers: { authorization: 'Bearer scrape-me-scrape-me' } });
  return text.includes('nd7_ingests_in_work 1');
}

describe('overload', () => {
  it('is told to come again, before the body is read', async () => {
    const small = await world.replica({
      ND7_VAULT_MAX_INGESTS: '1',
      ND7_VAULT_SIGNER_STATE: join(world.folder, 'signer-2'),
    });
    const { hostname, port } = new URL(small.url);
    // A request whose body never comes holds the one place.
    const slow = connect(Number(port), hostname);
    await new Promise<void>((done) => slow.once('connect', () => done()));
    slow.write(
      `PUT /v1/sessions/x/segments/0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${machine.token}\r\ncontent-length: 100\r\n\r\n`,
    );
    // Before it holds it, another could have it, and the slow one would be sent away.
    while (!(await inWork(small.url)));
    const session = new TestSession(machine.key, 'busy').start().seal();
    const other = Object.assign(Object.create(machine) as TestMachine, { url: small.url });
    let answer = await other.ship(session.id, session.cut(0));
    expect([answer.status, answer.json['code'], answer.headers.get('retry-after')]).toEqual([503, 'busy', '1']);
    slow.destroy();
    while (answer.status === 503) answer = await other.ship(session.id, session.cut(0));
    expect([200, 201, 202]).toContain(answer.status);
  });
});

describe('shutting down', () => {
  it('finishes what is in work', async () => {
    const vault = await world.replica({ ND7_VAULT_SIGNER_STATE: join(world.folder, 'signer-3') });
    const session = new TestSession(machine.key, 'last').start().more(400);
    // Half of the body is there when the vault is told to stop.
    const [path, body] = ['/v1/sessions/last/segments/0', session.cut(0).bytes];
    const headers = {
      ...(await machine.headers('PUT', path, body)),
      ...encodeClaimHeaders(machine.claim('last', session.cut(0))),
      'content-length': String(body.length),
    };
    const shipping = request(`${vault.url}${path}`, { method: 'PUT', headers });
    const shipped = new Promise<number | undefined>((done, fail) => {
      shipping.once('response', (answer) => done(answer.statusCode));
      shipping.once('error', fail);
    });
    shipping.write(body.subarray(0, body.length / 2));
    while (!(await inWork(vault.url)));
    const closed = vault.close();
    shipping.end(body.subarray(body.length / 2));
    expect([201, 202]).toContain(await shipped);
    await closed;
    world.replicas.splice(world.replicas.indexOf(vault), 1);
    await expect(fetch(`${vault.url}/healthz`)).rejects.toThrow();
  });
});
