import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkReceiptItself } from '@nd7/receipt';
import { verifySignatures, generateKeyPair } from '@nd7/signing';
import { formatTime } from '@nd7/entry';
import { parseVkey, type VerifierKey } from '@nd7/tlog';
import { TestSession, type Answer, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;
let key: VerifierKey;
let reader: { authorization: string };
let n = 0;
/** The vault’s clock is so far ahead of the machine’s, in milliseconds. */
let ahead = 0;

beforeAll(async () => {
  world = await TestWorld.make({ clock: { now: () => Date.now() + ahead } });
  key = parseVkey((await world.team('acme')).vkey) as VerifierKey;
  await world.replica();
  machine = await world.machine('acme');
  reader = { authorization: `Bearer ${(await world.reader('acme')).token}` };
}, 60_000);

afterAll(() => world.close());

async function stored(): Promise<TestSession> {
  const session = new TestSession(machine.key, `o-${String((n += 1))}`).start().seal().more(1);
  for (const from of [0, 2]) await machine.ship(session.id, session.cut(from, from + 2));
  return session;
}

const refusal = (answer: Answer): unknown[] => [answer.status, answer.json['code'], answer.json['next']];
const head = (session: TestSession, count: number): string => session.heads[count] as string;
const page = (session: TestSession): Promise<Answer> =>
  machine.fetch('GET', `/v1/machines/${machine.key.publicKey}/sessions/${session.id}`, { headers: reader });
const incidents = async (session: TestSession): Promise<unknown[]> =>
  (
    (await machine.fetch('GET', '/v1/incidents', { headers: reader })).json['incidents'] as { session?: string }[]
  ).filter((one) => one.session === session.id);

describe('open', () => {
  it('states a session at a head that the vault holds, with the key that is pinned, once', async () => {
    const session = await stored();
    const first = await machine.open(session.id, 2, head(session, 2), session.firstKey);
    expect(first.status).toBe(201);
    const verdict = await checkReceiptItself(first.text, { keys: [key] }, verifySignatures, { anyType: true });
    expect(verdict.ok && verdict.receipt.statement).toMatchObject({ type: 'open', entries: 2, key: session.firstKey });
    const again = await machine.open(session.id, 2, head(session, 2), session.firstKey);
    expect([again.status, again.text]).toEqual([200, first.text]);
    const location = String(first.headers.get('location'));
    expect((await machine.signed('GET', location)).text).toBe(first.text);
    expect((await machine.fetch('GET', location, { headers: reader })).text).toBe(first.text);
  });

  it('with another key is 409 disagrees and an incident', async () => {
    const session = await stored();
    expect(refusal(await machine.open(session.id, 2, head(session, 2), generateKeyPair().publicKey))).toEqual([
      409,
      'disagrees',
      4,
    ]);
    expect(await incidents(session)).toMatchObject([{ kind: 'disagrees', count: 2 }]);
  });

  it.each([
    [
      'with another head: disagrees',
      409,
      'disagrees',
      (s: TestSession) => machine.open(s.id, 4, '0'.repeat(64), s.firstKey),
    ],
    [
      'beyond what the vault holds: gap',
      409,
      'gap',
      (s: TestSession) => machine.open(s.id, 5, '0'.repeat(64), s.firstKey),
    ],
    ['within a segment: gap', 409, 'gap', (s: TestSession) => machine.open(s.id, 3, head(s, 3), s.firstKey)],
  ])('%s', async (_what, status, code, make) => {
    expect(refusal(await make(await stored()))).toEqual([status, code, 4]);
  });

  it('of a session the vault does not know is a gap from 0', async () => {
    expect(refusal(await machine.open('nobody', 2, '0'.repeat(64), generateKeyPair().publicKey))).toEqual([
      409,
      'gap',
      0,
    ]);
  });

  it('under another signature is bad-claim', async () => {
    const session = await stored();
    const body = { entries: 2, head: head(session, 2), key: session.firstKey, signature: `${'A'.repeat(86)}==` };
    expect(
      refusal(await machine.signed('POST', `/v1/sessions/${session.id}/open`, Buffer.from(JSON.stringify(body)))),
    ).toEqual([422, 'bad-claim', undefined]);
  });
});

describe('close', () => {
  it('ends a session until it goes on', async () => {
    const session = await stored();
    expect((await page(session)).json).toMatchObject({ state: 'open' });
    const closed = await machine.close(session.id, 4, head(session, 4));
    expect(closed.status).toBe(201);
    expect((await page(session)).json).toMatchObject({ state: 'closed', close_reason: 'ended' });
    expect((await machine.signed('GET', `/v1/sessions/${session.id}`)).json['closed']).toBe(true);
    session.more(1); // --resume
    expect((await machine.ship(session.id, session.cut(4))).status).toBe(201);
    const resumed = (await page(session)).json;
    expect([resumed['state'], resumed['close_reason']]).toEqual(['open', undefined]);
  });

  it('may say that the session continues in another; the vault’s own reasons are not for machines', async () => {
    const session = await stored();
    expect((await machine.close(session.id, 4, head(session, 4), 'continued')).status).toBe(201);
    expect((await page(session)).json).toMatchObject({ state: 'closed', close_reason: 'continued' });
    expect(refusal(await machine.close(session.id, 4, head(session, 4), 'lost' as 'ended'))).toEqual([
      400,
      'bad-request',
      undefined,
    ]);
  });
});

describe('heartbeats', () => {
  const beat = (said: unknown): Promise<Answer> =>
    machine.signed('POST', '/v1/heartbeat', Buffer.from(JSON.stringify(said)));

  it('are rows, and tell the vault’s time', async () => {
    const session = await stored();
    const answer = await beat({
      time: formatTime(Date.now()),
      sessions: [{ session: session.id, entries: 6, head: head(session, 4) }],
    });
    expect(answer.status).toBe(200);
    expect(Math.abs(Date.parse(String(answer.json['time'])) - Date.now())).toBeLessThan(60_000);
    const { machines } = (await machine.fetch('GET', '/v1/machines', { headers: reader })).json as {
      machines: { machine: string; last_seen: string | null }[];
    };
    expect(machines[0]?.last_seen).not.toBeNull();
    expect(await incidents(session)).toEqual([]);
  });

  it('raise an incident once when a tail shrank, and none for what was shipped while they were on their way', async () => {
    const session = await stored();
    const said = {
      time: formatTime(Date.now()),
      sessions: [{ session: session.id, entries: 3, head: head(session, 3) }],
    };
    await beat(said);
    expect(await incidents(session)).toEqual([]);
    ahead = 120_000;
    for (let i = 0; i < 2; i += 1) await beat(said);
    ahead = 0;
    expect(await incidents(session)).toMatchObject([{ kind: 'tail-shrank', count: 3 }]);
  });

  it('raise an incident when the clock disagrees', async () => {
    await beat({ time: '2020-01-01T00:00:00.000Z', sessions: [] });
    const { incidents: all } = (await machine.fetch('GET', '/v1/incidents', { headers: reader })).json as {
      incidents: { kind: string }[];
    };
    expect(all.filter((one) => one.kind === 'clock-disagrees')).toHaveLength(1);
  });

  it('are checked in their form', async () => {
    expect(refusal(await beat({ time: 'now', sessions: [] }))).toEqual([400, 'bad-request', undefined]);
    expect(refusal(await beat({ time: formatTime(0), sessions: [{ session: '../x', entries: 0, head: '' }] }))).toEqual(
      [400, 'bad-request', undefined],
    );
  });
});
