import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkReceiptItself } from '@nd7/receipt';
import { verifySignatures, generateKeyPair } from '@nd7/signing';
import { parseVkey, type VerifierKey } from '@nd7/tlog';
import { TestSession, type Answer, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;
let key: VerifierKey;
let reader: { authorization: string };
let n = 0;

beforeAll(async () => {
  world = await TestWorld.make();
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
