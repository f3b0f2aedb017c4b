import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkReceiptItself, parseReceipt } from '@nd7/receipt';
import { verifySignatures } from '@nd7/signing';
import { parseVkey, type VerifierKey } from '@nd7/tlog';
import { comparedCounts } from './compare.js';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;
let key: VerifierKey;
let n = 0;
const fresh = (): TestSession => new TestSession(machine.key, `s-${String((n += 1))}`);

beforeAll(async () => {
  world = await TestWorld.make();
  key = parseVkey((await world.team('acme')).vkey) as VerifierKey;
  await world.replica();
  machine = await world.machine('acme');
}, 60_000);

afterAll(() => world.close());

describe('a segment that goes on where the vault is', () => {
  it('is answered 201 with a receipt that holds, and 200 with the same bytes again', async () => {
    const session = fresh().start().seal();
    const first = await machine.ship(session.id, session.cut(0));
    expect(first.status).toBe(201);
    const verdict = await checkReceiptItself(first.text, { keys: [key] }, verifySignatures);
    expect(verdict.ok).toBe(true);
    expect(parseReceipt(first.text)?.statement).toMatchObject({
      type: 'head',
      session: session.id,
      from: 0,
      to: 2,
      head: session.heads[2],
    });
    const again = await machine.ship(session.id, session.cut(0));
    expect([again.status, again.text]).toEqual([200, first.text]);
  });

  it('moves the head from segment to segment', async () => {
    const session = fresh().start().seal();
    await machine.ship(session.id, session.cut(0));
    session.more(3);
    expect((await machine.ship(session.id, session.cut(2))).status).toBe(201);
    session.more(300); // more than one kernel call is not needed for it to be many
    expect((await machine.ship(session.id, session.cut(6))).status).toBe(201);
    const status = await machine.signed('GET', `/v1/sessions/${session.id}`);
    expect(status.json).toMatchObject({
      entries: 307,
      next: 307,
      head: session.heads[307],
      sealed_to: 306,
      closed: false,
      forked: false,
    });
  });

  it('may come without compression', async () => {
    const session = fresh().start().seal();
    expect((await machine.ship(session.id, session.cut(0), { plain: true })).status).toBe(201);
    const reader = await world.reader('acme');
    const body = await machine.fetch(
      'GET',
      `/v1/machines/${machine.key.publicKey}/sessions/${session.id}/segments/0/body`,
      { headers: { authorization: `Bearer ${reader.token}`, 'accept-encoding': 'identity' } },
    );
    expect(body.text).toBe(Buffer.from(session.cut(0).bytes).toString('utf8'));
  });

  it('gets its receipt later when the answer was lost, at the Location it was told', async () => {
    const session = fresh().start().seal();
    const first = await machine.ship(session.id, session.cut(0));
    const location = first.headers.get('location') as string;
    expect(location).toBe(`/v1/machines/${machine.key.publicKey}/sessions/${session.id}/segments/0/receipt`);
    expect((await machine.signed('GET', location)).text).toBe(first.text);
    const latest = await machine.signed('GET', `${location}?checkpoint=latest`);
    expect(await checkReceiptItself(latest.text, { keys: [key] }, verifySignatures)).toMatchObject({ ok: true });
  });

  it('keeps a session id of two machines apart', async () => {
    const other = await world.machine('acme', 'other box');
    const [mine, theirs] = [fresh(), new TestSession(other.key, `s-${String(n)}`)];
    mine.start().seal();
    theirs.start({ agent: 'codex' }).add().seal();
    expect((await machine.ship(mine.id, mine.cut(0))).status).toBe(201);
    expect((await other.ship(theirs.id, theirs.cut(0))).status).toBe(201);
    expect((await machine.signed('GET', `/v1/sessions/${mine.id}`)).json['entries']).toBe(2);
    expect((await other.signed('GET', `/v1/sessions/${mine.id}`)).json['entries']).toBe(3);
  });
});

describe('a segment that was cut again', () => {
  let session: TestSession;
  beforeAll(async () => {
    session = fresh().start().seal().more(2).more(2);
    for (const [from, to] of [
      [0, 2],
      [2, 5],
      [5, 8],
    ] as const)
      await machine.ship(session.id, session.cut(from, to));
  });

  it.each([
    [0, 5, 'from the beginning, over two stored ones'],
    [2, 8, 'over two stored ones to the head'],
    [3, 5, 'from the middle of a stored one'],
    [2, 4, 'to the middle of a stored one'],
    [3, 7, 'from middle to middle'],
  ])('%i to %i (%s) agrees: overlap with next, nothing stored', async (from, to) => {
    const answer = await machine.ship(session.id, session.cut(from, to));
    expect([answer.status, answer.json['code'], answer.json['next']]).toEqual([409, 'overlap', 8]);
  });

  it('reaches beyond the head: overlap too, and nothing of it is kept', async () => {
    session.more(2);
    const answer = await machine.ship(session.id, session.cut(5));
    expect([answer.status, answer.json['code'], answer.json['next']]).toEqual([409, 'overlap', 8]);
    expect((await machine.signed('GET', `/v1/sessions/${session.id}`)).json['entries']).toBe(8);
    expect((await machine.ship(session.id, session.cut(8))).status).toBe(201);
  });

  it('claims more than any session can hold: what is looked at is bounded by the body', async () => {
    const bytes = session.cut(1, 5).bytes;
    const answer = await machine.ship(session.id, {
      ...session.cut(1, 5),
      to: Number.MAX_SAFE_INTEGER,
      head: 'a'.repeat(64),
      bytes,
    });
    expect([answer.status, answer.json['code']]).toEqual([409, 'overlap']);
    expect(comparedCounts({ from: 1, to: Number.MAX_SAFE_INTEGER }, 4, 10_000)).toEqual([1, 2, 3, 4, 5]);
    expect(comparedCounts({ from: 1, to: 10_000 }, 4, 10_000)).toEqual([1, 2, 3, 4, 5, 10_000]);
    expect(comparedCounts({ from: 9_998, to: 10_005 }, 7, 10_000)).toEqual([9_998, 9_999, 10_000]);
  });

  it('begins after the head: gap with next', async () => {
    session.more(2).more(2);
    const answer = await machine.ship(session.id, session.cut(14));
    expect([answer.status, answer.json['code'], answer.json['next']]).toEqual([409, 'gap', 11]);
    const unknown = fresh().start().seal().more(1);
    const first = await machine.ship(unknown.id, unknown.cut(2));
    expect([first.status, first.json['code'], first.json['next']]).toEqual([409, 'gap', 0]);
  });
});

describe('what was said', () => {
  it('stands in no table in clear', async () => {
    const marker = 'MARKER-of-a-prompt-5f2c';
    const session = fresh()
      .start({ note: marker })
      .add({ kind: 'prompt', data: JSON.stringify({ prompt: marker, tool_name: marker.toLowerCase() + ' ' }) })
      .seal();
    expect((await machine.ship(session.id, session.cut(0))).status).toBe(201);
    const tables = await world.owner<
      { name: string }[]
    >`select quote_ident(relname) as name from pg_class where relnamespace = 'nd7'::regnamespace and relkind = 'r'`;
    expect(tables.length).toBeGreaterThan(20);
    for (const { name } of tables) {
      const rows = await world.owner<
        { found: number }[]
      >`select count(*)::int as found from ${world.owner.unsafe(`nd7.${name}`)} t where t::text ilike ${`%${marker}%`}`;
      expect([name, rows[0]?.found]).toEqual([name, 0]);
      const hex = await world.owner<
        { found: number }[]
      >`select count(*)::int as found from ${world.owner.unsafe(`nd7.${name}`)} t where t::text ilike ${`%${Buffer.from(marker).toString('hex')}%`}`;
      expect([name, hex[0]?.found]).toEqual([name, 0]);
    }
    expect(world.logged.join('')).not.toContain(marker);
  });

  it('is indexed by time, class, kind, agent, tool and verdict only', async () => {
    const session = fresh().start();
    session
      .add({ kind: 'tool.before', data: '{"tool_name":"mcp__git__push","tool_input":{}}' })
      .add({ source: 'decision:nd7', kind: 'rule.deny', data: '{"path":"/etc"}' })
      .seal();
    await machine.ship(session.id, session.cut(0));
    const rows =
      await world.owner`select seq, class, kind, agent, tool, verdict from nd7.entry where session = ${session.id} order by seq`;
    expect(rows.map((row) => Object.values(row))).toEqual([
      ['0', 'recorder', 'session.start', 'claude-code', '', ''],
      ['1', 'intent', 'tool.before', 'claude-code', 'mcp__git__push', ''],
      ['2', 'decision', 'rule.deny', '', '', 'deny'],
      ['3', 'recorder', 'seal', '', '', ''],
    ]);
  });
});
