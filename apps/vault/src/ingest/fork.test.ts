import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkReceiptItself, parseStatement, type ForkStatement } from '@nd7/receipt';
import { isFork } from '@nd7/segment';
import { verifySignatures } from '@nd7/signing';
import { parseVkey, type VerifierKey } from '@nd7/tlog';
import { TestSession, type Answer, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;
let reader: { authorization: string };
let key: VerifierKey;
let n = 0;
const fresh = (): TestSession => new TestSession(machine.key, `f-${String((n += 1))}`);

beforeAll(async () => {
  world = await TestWorld.make();
  key = parseVkey((await world.team('acme')).vkey) as VerifierKey;
  await world.replica();
  machine = await world.machine('acme');
  reader = { authorization: `Bearer ${(await world.reader('acme')).token}` };
}, 60_000);

afterAll(() => world.close());

async function leaves(session: string): Promise<string[]> {
  const rows = await world.owner<
    { statement: string }[]
  >`select statement from nd7.log_queue where statement like ${`%session ${session}\n%`} order by leaf_id`;
  return rows.map((row) => row.statement);
}

async function incidents(session: string): Promise<Record<string, unknown>[]> {
  const { json } = await machine.fetch('GET', '/v1/incidents', { headers: reader });
  return (json['incidents'] as Record<string, unknown>[]).filter((one) => one['session'] === session);
}

/** A session of three stored segments: 0–2, 2–4, 4–6. */
async function stored(): Promise<TestSession> {
  const session = fresh().start().seal().more(1).more(1);
  for (const from of [0, 2, 4]) expect((await machine.ship(session.id, session.cut(from, from + 2))).status).toBe(201);
  return session;
}

const refusal = (answer: Answer): unknown[] => [answer.status, answer.json['code'], answer.json['next']];

describe('a fork: two signed hashes for one count', () => {
  it('is found when the whole session was rewritten, kept with both claims, stated once, and closes the session', async () => {
    const session = await stored();
    const rewritten = session
      .branch(1)
      .add({ data: '{"tool_name":"Bash","tool_input":{"command":"true"}}' })
      .seal()
      .more(2)
      .seal();
    const second = rewritten.cut(0, 6);
    expect(refusal(await machine.ship(session.id, second))).toEqual([409, 'fork', 6]);
    // The same again: the same answer, and nothing new.
    expect(refusal(await machine.ship(session.id, second))).toEqual([409, 'fork', 6]);

    const statements = (await leaves(session.id)).map((text) => parseStatement(text));
    expect(statements.map((s) => s?.type)).toEqual(['head', 'head', 'head', 'fork', 'close']);
    const fork = statements[3] as ForkStatement;
    const [a, b] = fork.claims.map((claim) => ({
      origin: fork.origin,
      machine: fork.machine,
      session: fork.session,
      ...claim,
    }));
    expect(isFork(a!, b!)).toBe(fork.count);
    expect([fork.count, a?.head, b?.head]).toEqual([6, session.heads[6], rewritten.heads[6]]);
    expect(statements[4]).toMatchObject({ type: 'close', entries: 6, head: session.heads[6], reason: 'forked' });

    // Its leaf gets an index a moment after the answer.
    let incident: Record<string, unknown> | undefined;
    while (incident?.['leaf_index'] === undefined) [incident] = await incidents(session.id);
    expect(incident).toMatchObject({ kind: 'fork', count: 6, state: 'open' });
    expect((incident?.['claims'] as { head: string }[]).map((claim) => claim.head)).toEqual([
      session.heads[6],
      rewritten.heads[6],
    ]);
    expect((await machine.fetch('GET', `/v1/incidents/${String(incident?.['id'])}`, { headers: reader })).json).toEqual(
      incident,
    );
    const row = await machine.fetch('GET', `/v1/machines/${machine.key.publicKey}/sessions/${session.id}`, {
      headers: reader,
    });
    expect(row.json).toMatchObject({ state: 'forked', close_reason: 'forked', incidents: 1 });
  });

  it('is decided before the body is looked at, which is kept unverified', async () => {
    const session = await stored();
    const second = session.branch(2).add().seal().cut(2, 4);
    const answer = await machine.ship(session.id, { ...second, bytes: Buffer.from('no entry at all\n') });
    expect(refusal(answer)).toEqual([409, 'fork', 6]);
    const [kept] = await world.owner<
      { body: string | null }[]
    >`select body from nd7.evidence where session = ${session.id}`;
    expect(await world.owner`select 1 from nd7.body where hash = ${String(kept?.body)}`).toHaveLength(1);
  });

  it.each([
    ['another prev at from, the same head', (s: TestSession) => ({ ...s.cut(2, 4), prev: '1'.repeat(64) }), 2],
    ['another head at to, the same prev', (s: TestSession) => ({ ...s.cut(2, 4), head: '2'.repeat(64) }), 4],
    ['another genesis link', (s: TestSession) => ({ ...s.cut(0, 2), prev: '3'.repeat(64) }), 0],
    [
      'another hash where the vault’s next segment begins',
      (s: TestSession) => ({ ...s.cut(0, 4), head: '4'.repeat(64) }),
      4,
    ],
    [
      'another prev at the head',
      (s: TestSession) => ({ ...s.cut(6, 6), to: 8, head: '5'.repeat(64), prev: '6'.repeat(64) }),
      6,
    ],
    [
      'two counts at once: the lower is named',
      (s: TestSession) => ({ ...s.cut(2, 4), prev: '7'.repeat(64), head: '8'.repeat(64) }),
      2,
    ],
  ])('%s', async (_what, make, count) => {
    const session = await stored();
    expect(refusal(await machine.ship(session.id, { ...make(session), bytes: session.cut(2, 4).bytes }))).toEqual([
      409,
      'fork',
      6,
    ]);
    const forks = (await leaves(session.id))
      .map((text) => parseStatement(text))
      .filter((s): s is ForkStatement => s?.type === 'fork');
    expect(forks.map((fork) => fork.count)).toEqual([count]);
  });

  it('has one leaf per second claim, one close, and a receipt that convicts by itself', async () => {
    const session = await stored();
    for (const head of ['a', 'b', 'a'].map((digit) => digit.repeat(64))) {
      expect(refusal(await machine.ship(session.id, { ...session.cut(4, 6), head }))).toEqual([409, 'fork', 6]);
    }
    const types = (await leaves(session.id)).map((text) => parseStatement(text)?.type);
    expect(types).toEqual(['head', 'head', 'head', 'fork', 'close', 'fork']);
    expect(await incidents(session.id)).toHaveLength(2);
    const location = `/v1/machines/${machine.key.publicKey}/sessions/${session.id}/close/6/receipt`;
    const receipt = await published(() => machine.signed('GET', location));
    const verdict = await checkReceiptItself(receipt.text, { keys: [key] }, verifySignatures, { anyType: true });
    expect(verdict.ok && verdict.receipt.statement).toMatchObject({ type: 'close', reason: 'forked' });
  });

  it('ends the session: new segments get fork, stored ones their receipt', async () => {
    const session = await stored();
    const before = await machine.ship(session.id, session.cut(4, 6));
    await machine.ship(session.id, { ...session.cut(4, 6), head: 'c'.repeat(64) });
    session.more(1);
    expect(refusal(await machine.ship(session.id, session.cut(6)))).toEqual([409, 'fork', 6]);
    const again = await machine.ship(session.id, session.cut(4, 6));
    expect([again.status, again.text]).toEqual([200, before.text]);
    expect((await machine.signed('GET', `/v1/sessions/${session.id}`)).json).toMatchObject({
      forked: true,
      closed: true,
      next: 6,
    });
    expect(refusal(await machine.close(session.id, 6, session.heads[6] as string))).toEqual([409, 'fork', 6]);
  });

  it('is not found between sessions of other machines', async () => {
    const other = await world.machine('acme', 'other');
    const session = await stored();
    const theirs = new TestSession(other.key, session.id).start().seal();
    expect((await other.ship(theirs.id, theirs.cut(0))).status).toBe(201);
    expect(await incidents(session.id)).toHaveLength(0);
  });
});

describe('a segment that disagrees at a count that both claims do not name', () => {
  it('is 409 disagrees, kept with its body, an incident without a leaf', async () => {
    const session = await stored();
    const other = session.branch(2).add({ kind: 'prompt', data: '{}' }).add().more(3).cut(2, 7);
    expect(refusal(await machine.ship(session.id, other))).toEqual([409, 'disagrees', 6]);
    expect(refusal(await machine.ship(session.id, other))).toEqual([409, 'disagrees', 6]);
    expect((await leaves(session.id)).map((text) => parseStatement(text)?.type)).toEqual(['head', 'head', 'head']);
    expect(await incidents(session.id)).toMatchObject([{ kind: 'disagrees', count: 3 }]);
    // The session goes on.
    session.more(1);
    expect((await machine.ship(session.id, session.cut(6))).status).toBe(201);
  });

  it.each([
    [
      'only its prev, at the middle of a stored segment',
      (s: TestSession) => ({ ...s.cut(3, 5), prev: 'd'.repeat(64) }),
      3,
    ],
    [
      'only its head, at the middle of a stored segment',
      (s: TestSession) => ({ ...s.cut(3, 5), head: 'e'.repeat(64) }),
      5,
    ],
  ])('%s', async (_what, make, count) => {
    const session = await stored();
    expect(refusal(await machine.ship(session.id, make(session)))).toEqual([409, 'disagrees', 6]);
    expect(await incidents(session.id)).toMatchObject([{ kind: 'disagrees', count }]);
  });
});

async function published(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 404) return answer;
    await new Promise((next) => setTimeout(next, 50));
  }
}
