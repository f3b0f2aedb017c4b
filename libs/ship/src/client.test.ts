import { generateKeyPair, systemClock, systemRandom } from '@nd7/signing';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isShipError, isVaultError, VaultClient, VaultError } from './index.js';
import { backOff, pause, retrying } from './retry.js';

const machine = generateKeyPair();
const access = { machine: machine.publicKey, token: `nd7m1_${'a'.repeat(43)}`, signer: machine };
let server: Server;
let answer: (response: ServerResponse) => void;
let seen: Record<string, unknown>[];

beforeEach(async () => {
  seen = [];
  server = createServer((request, response) => {
    seen.push({ ...request.headers, method: request.method, url: request.url });
    request.resume().on('end', () => answer(response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const url = (): string => `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
const client = (more: object = {}): VaultClient =>
  new VaultClient({ url: url(), access, clock: systemClock, random: systemRandom, ...more });

async function failure(work: Promise<unknown>): Promise<VaultError> {
  const outcome = await work.catch((error: unknown) => error);
  if (outcome instanceof VaultError) return outcome;
  throw new Error(`expected a VaultError, got ${JSON.stringify(outcome)} ${String(outcome)}`);
}

test('a problem document becomes a VaultError with all it says', async () => {
  const problem = {
    type: 'urn:nd7:problem:gap',
    title: 'Entries are missing',
    status: 409,
    code: 'gap',
    detail: 'from 9',
    next: 5,
    bad_entry: 7,
    reason: 'wrong-prev',
  };
  answer = (response) =>
    response
      .writeHead(409, { 'content-type': 'application/problem+json', 'retry-after': '2' })
      .end(JSON.stringify(problem));
  const error = await failure(client().sessionStatus('s-1'));
  expect(error).toMatchObject({
    code: 'gap',
    status: 409,
    next: 5,
    bad_entry: 7,
    reason: 'wrong-prev',
    retryAfter: 2000,
    isTransient: false,
    message: 'Entries are missing: from 9',
  });
});

test('every request is signed anew', async () => {
  answer = (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"time":"2026-11-29T19:41:00.123Z"}');
  await client().heartbeat({ sessions: [], time: '2026-11-29T19:41:00.123Z' });
  await client().heartbeat({ sessions: [], time: '2026-11-29T19:41:00.123Z' });
  expect(seen.map((headers) => headers['authorization'])).toEqual([`Bearer ${access.token}`, `Bearer ${access.token}`]);
  expect(seen[0]?.['nd7-nonce']).not.toBe(seen[1]?.['nd7-nonce']);
});

test.each([
  ['a page of somebody else', 200, 'text/html', '<html>'],
  ['JSON of another form', 200, 'application/json', '{"hello":1}'],
  ['not UTF-8', 200, 'application/json', Buffer.from([0xff, 0xfe])],
  ['a 404 without a problem', 404, 'text/html', 'not here'],
  [
    'a problem with a code of nobody',
    409,
    'application/problem+json',
    '{"type":"x","title":"x","status":409,"code":"boo","detail":"x"}',
  ],
])('%s is none of a vault', async (_, status, type, body) => {
  answer = (response) => response.writeHead(status, { 'content-type': type }).end(body);
  expect(await failure(client().sessionStatus('s-1'))).toMatchObject({ code: 'bad-answer', isTransient: false });
});

test('a gateway that fails is transient', async () => {
  answer = (response) =>
    response.writeHead(502, { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }).end('<html>bad gateway');
  expect(await failure(client().sessionStatus('s-1'))).toMatchObject({
    code: 'bad-answer',
    status: 502,
    isTransient: true,
    retryAfter: 0,
  });
});

test('a redirect is not followed: it would show the token to somebody else', async () => {
  answer = (response) => response.writeHead(302, { location: `${url()}/v1/elsewhere` }).end();
  expect(await failure(client().sessionStatus('s-1'))).toMatchObject({ code: 'bad-answer', status: 302 });
  expect(seen.length).toBe(1);
});

test('an answer without end is cut off', async () => {
  let sent = 0;
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = (): void => {
      if (response.destroyed || sent > 64 << 20) return void response.end();
      sent += 65_536;
      response.write(Buffer.alloc(65_536, 32), () => setImmediate(more));
    };
    more();
  };
  expect(await failure(client().sessionStatus('s-1'))).toMatchObject({ code: 'bad-answer' });
  expect(sent).toBeLessThan(16 << 20);
});

test('no answer in time, a dead connection, nobody there: unreachable', async () => {
  answer = () => undefined;
  expect(await failure(client({ timeoutMs: 50 }).sessionStatus('s-1'))).toMatchObject({
    code: 'unreachable',
    status: 0,
    isTransient: true,
  });
  answer = (response) => response.destroy();
  expect((await failure(client().sessionStatus('s-1'))).code).toBe('unreachable');
  answer = (response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('{"half');
    setTimeout(() => response.destroy(), 20);
  };
  expect((await failure(client().sessionStatus('s-1'))).code).toBe('unreachable');
  const stop = AbortSignal.abort();
  expect((await failure(client({ signal: stop }).sessionStatus('s-1'))).code).toBe('unreachable');
  expect(
    (
      await failure(
        new VaultClient({ url: 'http://127.0.0.1:1', access, clock: systemClock, random: systemRandom }).sessionStatus(
          's-1',
        ),
      )
    ).message,
  ).toMatch(/ECONNREFUSED|bad port/);
});

test('an error of another copy of this module is known by its name, whatever is done with it', async () => {
  // A second copy of a class is another class: `instanceof` alone took a 404 of its own vault for an unknown error once.
  const copy = (await import(`./error.js?copy=${String(Date.now())}`)) as typeof import('./error.js');
  const unknown = new copy.VaultError('not-found', 404, 'no entry of this session');
  expect(unknown instanceof VaultError).toBe(false);
  expect(isVaultError(unknown)).toBe(true);
  expect(isShipError(new copy.ShipError('fork', 'x'))).toBe(true);
  expect([isVaultError(new Error('x')), isVaultError(undefined), isShipError(null)]).toEqual([false, false, false]);
  let tries = 0;
  const busy = (): Promise<never> => Promise.reject(new copy.VaultError('busy', 503, String((tries += 1))));
  const plan = { attempts: 3, baseMs: 1, capMs: 1 };
  await expect(retrying(busy, plan, systemRandom, () => Promise.resolve())).rejects.toThrow('3');
});

test('without a machine only enrolment can be asked', async () => {
  await expect(
    new VaultClient({ url: url(), clock: systemClock, random: systemRandom }).sessionStatus('s-1'),
  ).rejects.toThrow(TypeError);
});

test('202 without a Location, and a Location elsewhere, are none of a vault', async () => {
  const statement = { entries: 1, head: '0'.repeat(64), key: '0'.repeat(64), signature: `${'A'.repeat(86)}==` };
  answer = (response) => response.writeHead(202).end();
  expect((await failure(client().open('s-1', statement))).code).toBe('bad-answer');
  answer = (response) => response.writeHead(202, { location: 'https://elsewhere.example/x' }).end();
  expect((await failure(client().open('s-1', statement))).code).toBe('bad-answer');
  answer = (response) => response.writeHead(202, { location: `${url()}/v1/x?y` }).end();
  expect(await client().open('s-1', statement)).toEqual({ location: '/v1/x?y' });
});

describe('waiting', () => {
  test('full jitter: anywhere below a bound that doubles up to a cap', () => {
    const plan = { attempts: 9, baseMs: 100, capMs: 1000 };
    const [least, most] = [(): Uint8Array => new Uint8Array(4), (): Uint8Array => new Uint8Array(4).fill(255)];
    expect([0, 1, 2, 3, 4, 50].map((attempt) => backOff(attempt, plan, least))).toEqual([0, 0, 0, 0, 0, 0]);
    expect([0, 1, 2, 3, 4, 50].map((attempt) => backOff(attempt, plan, most))).toEqual([99, 199, 399, 799, 999, 999]);
  });

  test('a pause ends at once when it is stopped', async () => {
    const stop = new AbortController();
    const waiting = pause(1_000_000, stop.signal);
    stop.abort();
    await waiting;
    await pause(1_000_000, stop.signal);
  });

  test('only what may do better later is tried again', async () => {
    const plan = { attempts: 4, baseMs: 1, capMs: 10 };
    let tries = 0;
    const failing = (error: Error) => (): Promise<never> => {
      tries++;
      return Promise.reject(error);
    };
    const sleep = (): Promise<void> => Promise.resolve();
    for (const [error, expected] of [
      [new VaultError('busy', 503, ''), 4],
      [new VaultError('replayed', 401, ''), 4],
      [new VaultError('unreachable', 0, ''), 4],
      [new VaultError('fork', 409, ''), 1],
      [new VaultError('busy', 503, '', { retryAfter: 60_000 }), 1],
      [new TypeError('mine'), 1],
    ] as const) {
      tries = 0;
      await expect(retrying(failing(error), plan, systemRandom, sleep)).rejects.toBe(error);
      expect(tries).toBe(expected);
    }
  });
});
