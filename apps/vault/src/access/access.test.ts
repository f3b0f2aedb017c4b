import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKeyPair } from '@nd7/signing';
import { PROBLEMS, ROUTES, type Route } from '@nd7/vault-api';
import { revokeMachine } from '../cli/people.js';
import { TestMachine, TestSession, call, type Answer } from '../testing/session.fixture.js';
import { TestWorld, VAULT } from '../testing/vault.fixture.js';

let world: TestWorld;
let url: string;
let machine: TestMachine;
let reader: string;
let other: string;

beforeAll(async () => {
  world = await TestWorld.make();
  await world.team('acme');
  await world.team('other');
  url = (await world.replica()).url;
  machine = await world.machine('acme');
  reader = (await world.reader('acme')).token;
  other = (await world.reader('other')).token;
}, 60_000);

afterAll(() => world.close());

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
const get = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  call(url, 'GET', path, { headers });
const answered = (answer: Answer): unknown[] => [answer.status, answer.json['code']];

describe('enrolment', () => {
  it('tells the key to whoever knows the hash of a secret, before the secret is shown', async () => {
    const token = await world.enrolmentToken('acme');
    const [, secret, vkeyHash] = /^nd7e1_(.{43})_([0-9a-f]{64})$/.exec(token) ?? [];
    const { createHash } = await import('node:crypto');
    const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
    const known = await get(`/v1/enrolment/${hash(String(secret))}`);
    expect(known.json).toMatchObject({ vault: VAULT, team: 'acme', origin: `${VAULT}/acme` });
    expect(hash(String(known.json['vkey']))).toBe(vkeyHash);
    expect(answered(await get(`/v1/enrolment/${'0'.repeat(64)}`))).toEqual([404, 'not-found']);
    expect(answered(await get('/v1/enrolment/x'))).toEqual([404, 'not-found']);
  });

  it('is one-time, but a machine whose answer was lost asks again and gets a token', async () => {
    const token = await world.enrolmentToken('acme');
    const one = new TestMachine(url, `${VAULT}/acme`);
    expect((await one.enrol(token)).status).toBe(201);
    const first = one.token;
    expect((await one.enrol(token)).status).toBe(201);
    expect(one.token).not.toBe(first);
    expect(answered(await new TestMachine(url, `${VAULT}/acme`).enrol(token))).toEqual([403, 'bad-enrolment']);
    const receipt = await one.signed('GET', `/v1/machines/${one.key.publicKey}/receipt`);
    expect([200, 404]).toContain(receipt.status);
    const leaves =
      await world.owner`select 1 from nd7.log_queue where statement like ${`nd7/enrol/v1%machine ${one.key.publicKey}%`}`;
    expect(leaves).toHaveLength(1);
  });

  it('is refused for unknown, expired or forged tokens', async () => {
    expect(
      answered(await new TestMachine(url, `${VAULT}/acme`).enrol(`nd7e1_${'A'.repeat(43)}_${'0'.repeat(64)}`)),
    ).toEqual([403, 'bad-enrolment']);
    const token = await world.enrolmentToken('acme');
    const hash = (await import('node:crypto'))
      .createHash('sha256')
      .update(String(token.slice(6, 49)))
      .digest('hex');
    await world.owner`alter table nd7.enrolment disable trigger refuse_change`;
    await world.owner`update nd7.enrolment set expires = now() - interval '1 second' where secret_hash = ${hash}`;
    await world.owner`alter table nd7.enrolment enable always trigger refuse_change`;
    expect(answered(await new TestMachine(url, `${VAULT}/acme`).enrol(token))).toEqual([403, 'bad-enrolment']);
  });

  it('is refused for a signature that is not the machine’s, or over another origin', async () => {
    const token = await world.enrolmentToken('acme');
    expect(answered(await new TestMachine(url, `${VAULT}/other`).enrol(token))).toEqual([422, 'bad-claim']);
    const small = Object.assign(generateKeyPair(), { publicKey: `01${'00'.repeat(31)}` });
    expect(answered(await new TestMachine(url, `${VAULT}/acme`, small).enrol(token))).toEqual([422, 'bad-claim']);
  });

  it('is refused for a key that is known in another role: a session’s or a vault’s', async () => {
    const session = new TestSession(machine.key, 'roles').start().seal();
    expect((await machine.ship(session.id, session.cut(0))).status).toBe(201);
    // The session key itself enrols, in another team, with its own signature.
    const sessionKey = (session as unknown as { keys: ReturnType<typeof generateKeyPair>[] }).keys[0]!;
    const asMachine = new TestMachine(url, `${VAULT}/other`, sessionKey);
    expect(answered(await asMachine.enrol(await world.enrolmentToken('other')))).toEqual([403, 'key-role']);
    const next = (session as unknown as { keys: ReturnType<typeof generateKeyPair>[] }).keys.at(-1)!;
    expect(
      answered(await new TestMachine(url, `${VAULT}/acme`, next).enrol(await world.enrolmentToken('acme'))),
    ).toEqual([403, 'key-role']);
  });

  it('checks the form of what it is sent', async () => {
    const answer = await call(url, 'POST', '/v1/enrol', { body: Buffer.from('{"secret":1}') });
    expect(answered(answer)).toEqual([400, 'bad-request']);
    expect(answer.json['detail']).toContain('machine');
    expect(answered(await call(url, 'POST', '/v1/enrol', { body: Buffer.from('{') }))).toEqual([400, 'bad-request']);
    expect(answered(await call(url, 'POST', '/v1/enrol'))).toEqual([400, 'bad-request']);
    expect(answered(await call(url, 'POST', '/v1/enrol', { body: Buffer.alloc(20_000, ' ') }))).toEqual([
      413,
      'too-large',
    ]);
  });
});

describe('a machine’s request', () => {
  const path = '/v1/sessions/none';

  it.each([
    ['no token', 401, 'unauthorized', async () => get(path)],
    ['a reader’s token', 401, 'unauthorized', async () => get(path, bearer(reader))],
    [
      'a token nobody made',
      401,
      'unauthorized',
      async () => get(path, await machine.headers('GET', path, Buffer.alloc(0), { token: `nd7m1_${'A'.repeat(43)}` })),
    ],
    ['no signature', 401, 'bad-request-signature', async () => get(path, bearer(machine.token))],
    [
      'another machine’s signature',
      401,
      'bad-request-signature',
      async () => get(path, await machine.headers('GET', path, Buffer.alloc(0), { key: generateKeyPair() })),
    ],
    [
      'a signature over another path',
      401,
      'bad-request-signature',
      async () => get(path, await machine.headers('GET', '/v1/sessions/other', Buffer.alloc(0))),
    ],
    [
      'a signature over another query',
      401,
      'bad-request-signature',
      async () => get(`${path}?a=1`, await machine.headers('GET', path, Buffer.alloc(0))),
    ],
    [
      'a signature over another method',
      401,
      'bad-request-signature',
      async () => get(path, await machine.headers('POST', path, Buffer.alloc(0))),
    ],
    [
      'a time six minutes ago',
      401,
      'stale-request',
      async () => get(path, await machine.headers('GET', path, Buffer.alloc(0), { now: Date.now() - 360_000 })),
    ],
    [
      'a time six minutes ahead',
      401,
      'stale-request',
      async () => get(path, await machine.headers('GET', path, Buffer.alloc(0), { now: Date.now() + 360_000 })),
    ],
    ['all that it needs', 404, 'not-found', async () => machine.signed('GET', path)],
  ])('with %s is answered %i %s', async (_what, status, code, make) => {
    expect(answered(await make())).toEqual([status, code]);
  });

  it('covers its body', async () => {
    const headers = await machine.headers('POST', '/v1/heartbeat', Buffer.from('{}'));
    expect(answered(await call(url, 'POST', '/v1/heartbeat', { body: Buffer.from('{ }'), headers }))).toEqual([
      401,
      'bad-request-signature',
    ]);
  });

  it('is taken once', async () => {
    const headers = await machine.headers('GET', path, Buffer.alloc(0));
    expect(answered(await get(path, headers))).toEqual([404, 'not-found']);
    expect(answered(await get(path, headers))).toEqual([401, 'replayed']);
  });

  it('does not use its nonce up when its signature is bad', async () => {
    const nonce = crypto.getRandomValues(new Uint8Array(16));
    expect(
      answered(await get(path, await machine.headers('GET', path, Buffer.alloc(0), { nonce, key: generateKeyPair() }))),
    ).toEqual([401, 'bad-request-signature']);
    expect(answered(await get(path, await machine.headers('GET', path, Buffer.alloc(0), { nonce })))).toEqual([
      404,
      'not-found',
    ]);
  });

  it('is refused before its body is read when nobody knows the token', async () => {
    const answer = await call(url, 'PUT', '/v1/sessions/x/segments/0', {
      body: Buffer.alloc(9 * 1024 * 1024),
      headers: bearer(`nd7m1_${'A'.repeat(43)}`),
    });
    expect(answered(answer)).toEqual([401, 'unauthorized']);
  });

  it('is refused once the machine is revoked; its key does not enrol again', async () => {
    const gone = await world.machine('acme', 'gone');
    await revokeMachine(world.io, 'acme', gone.key.publicKey);
    expect(answered(await gone.signed('GET', path))).toEqual([403, 'revoked']);
    expect(answered(await gone.enrol(await world.enrolmentToken('acme')))).toEqual([403, 'revoked']);
  });

  it('knows a token for its own machine only', async () => {
    const second = await world.machine('acme', 'second');
    // Token of one machine, key of another.
    expect(
      answered(await get(path, await second.headers('GET', path, Buffer.alloc(0), { token: machine.token }))),
    ).toEqual([401, 'bad-request-signature']);
  });
});

describe('readers', () => {
  it('are told who they are and which key to pin', async () => {
    expect((await get('/v1/me', bearer(reader))).json).toMatchObject({ team: 'acme', origin: `${VAULT}/acme` });
  });

  it('may sign in with a token and go on with a cookie that is not it, until they sign out', async () => {
    const signedIn = await call(url, 'POST', '/v1/sign-in', { body: Buffer.from(JSON.stringify({ token: reader })) });
    const set = String(signedIn.headers.get('set-cookie'));
    expect(signedIn.status).toBe(200);
    expect(set).toMatch(/^nd7_session=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
    expect(set).not.toContain(reader.slice(6));
    const cookie = { cookie: `theme=dark; ${set.split(';')[0] ?? ''}` };
    expect((await get('/v1/me', cookie)).json['team']).toBe('acme');
    const out = await call(url, 'POST', '/v1/sign-out', { headers: cookie });
    expect([out.status, out.headers.get('set-cookie')]).toEqual([204, expect.stringContaining('Max-Age=0')]);
    expect(answered(await get('/v1/me', cookie))).toEqual([401, 'unauthorized']);
    expect((await get('/v1/me', bearer(reader))).status).toBe(200);
  });

  it('are not signed in by a page of another site', async () => {
    const body = Buffer.from(JSON.stringify({ token: reader }));
    expect(
      answered(await call(url, 'POST', '/v1/sign-in', { body, headers: { origin: 'https://evil.example' } })),
    ).toEqual([403, 'wrong-origin']);
    expect((await call(url, 'POST', '/v1/sign-in', { body, headers: { origin: url } })).status).toBe(200);
    expect(answered(await call(url, 'POST', '/v1/sign-in', { body: Buffer.from('{"token":"nd7r1_x"}') }))).toEqual([
      401,
      'unauthorized',
    ]);
  });

  it('are refused when revoked, expired, or with an authorization that is none', async () => {
    const { reader: id, token } = await world.reader('acme');
    await world.io
      .database()
      .tenant('acme', (tx) => tx`insert into nd7.reader_revocation (team, reader) values ('acme', ${id})`);
    expect(answered(await get('/v1/me', bearer(token)))).toEqual([401, 'unauthorized']);
    expect(answered(await get('/v1/me', { authorization: 'Basic eDp5' }))).toEqual([401, 'unauthorized']);
    expect(answered(await get('/v1/me', { cookie: 'nd7_session=short' }))).toEqual([401, 'unauthorized']);
  });

  it('of another team find nothing, as if it did not exist', async () => {
    const session = new TestSession(machine.key, 'secret').start().seal();
    await machine.ship(session.id, { ...session.cut(0) });
    await machine.ship(session.id, { ...session.cut(0), head: 'f'.repeat(64) });
    const at = `/v1/machines/${machine.key.publicKey}/sessions/secret`;
    const [incident] = (await get('/v1/incidents', bearer(reader))).json['incidents'] as { id: string }[];
    for (const path of [
      at,
      `${at}/segments/0/body`,
      `${at}/segments/0/receipt`,
      `/v1/machines/${machine.key.publicKey}/receipt`,
      `/v1/incidents/${String(incident?.id)}`,
    ]) {
      expect([path, (await get(path, bearer(reader))).status]).toEqual([path, 200]);
      expect([path, ...answered(await get(path, bearer(other)))]).toEqual([path, 404, 'not-found']);
    }
    for (const path of ['/t/acme/checkpoint', '/t/acme/tile/0/000', '/t/nobody/checkpoint']) {
      expect([path, ...answered(await get(path, bearer(other)))]).toEqual([path, 404, 'not-found']);
      expect([path, ...answered(await get(path))]).toEqual([path, 401, 'unauthorized']);
    }
    expect((await get('/v1/sessions', bearer(other))).json).toEqual({ sessions: [] });
    expect((await get('/v1/machines', bearer(other))).json).toEqual({ machines: [] });
    expect((await get('/v1/incidents', bearer(other))).json).toEqual({ incidents: [], open: 0 });
    const stranger = await world.machine('other');
    expect(answered(await stranger.signed('GET', `${at}/segments/0/receipt`))).toEqual([404, 'not-found']);
    expect(answered(await stranger.signed('GET', '/v1/sessions/secret'))).toEqual([404, 'not-found']);
  });

  it('are not needed for a log that its team made public', async () => {
    await world.io
      .database()
      .tenant('other', (tx) => tx`insert into nd7.team_setting (team, name, value) values ('other', 'log', 'public')`);
    expect((await get('/t/other/checkpoint')).status).not.toBe(401);
    await world.io
      .database()
      .tenant('other', (tx) => tx`insert into nd7.team_setting (team, name, value) values ('other', 'log', 'team')`);
    expect(answered(await get('/t/other/checkpoint'))).toEqual([401, 'unauthorized']);
  });
});

describe('every route of the contract', () => {
  it.each(Object.entries<Route>(ROUTES))('%s is there, and nobody gets in who should not', async (_name, route) => {
    const path = route.path.replaceAll(/\{([a-z_]+)\}/g, 'x');
    const answer = await call(url, route.method, path);
    if (route.who === 'anyone') expect([200, 204, 400, 404]).toContain(answer.status);
    else expect(answered(answer)).toEqual([401, 'unauthorized']);
    if (answer.status >= 400) expect(Object.keys(PROBLEMS)).toContain(answer.json['code']);
  });
});
