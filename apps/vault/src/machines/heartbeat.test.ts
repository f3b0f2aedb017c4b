import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { formatTime } from '@nd7/entry';
import type { Incident } from '@nd7/vault-api';
import { TestSession, type Answer, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let reader: { authorization: string };
let n = 0;
/** The vault’s clock is so far ahead of the machines’, in milliseconds. */
let ahead = 0;

beforeAll(async () => {
  world = await TestWorld.make({
    clock: { now: () => Date.now() + ahead },
    env: { ND7_VAULT_WATCH_EVERY: '3600' },
  });
  await world.team('acme');
  await world.replica();
  reader = { authorization: `Bearer ${(await world.reader('acme')).token}` };
}, 60_000);

afterAll(() => world.close());

const newMachine = (): Promise<TestMachine> => world.machine('acme', `box-${String((n += 1))}`);

async function stored(machine: TestMachine): Promise<TestSession> {
  const session = new TestSession(machine.key, `h-${String((n += 1))}`).start().seal().more(1);
  for (const from of [0, 2]) await machine.ship(session.id, session.cut(from, from + 2));
  return session;
}

async function incidents(machine: TestMachine): Promise<Incident[]> {
  const { json } = await machine.fetch('GET', '/v1/incidents', { headers: reader });
  return (json['incidents'] as Incident[]).filter((one) => one.machine === machine.key.publicKey);
}

describe('a heartbeat', () => {
  it('is a row, and is answered with the vault’s time', async () => {
    const machine = await newMachine();
    const session = await stored(machine);
    const answer = await machine.beat({ sessions: [session.named(4)] });
    expect(answer.status).toBe(200);
    expect(Math.abs(Date.parse(String(answer.json['time'])) - Date.now())).toBeLessThan(60_000);
    const { machines } = (await machine.fetch('GET', '/v1/machines', { headers: reader })).json as {
      machines: { machine: string; last_seen: string | null }[];
    };
    expect(machines.find((one) => one.machine === machine.key.publicKey)?.last_seen).not.toBeNull();
    expect(await incidents(machine)).toEqual([]);
    const rows = await world.owner`select interval_s, away from nd7.heartbeat where machine = ${machine.key.publicKey}`;
    expect([...rows]).toEqual([{ interval_s: 60, away: null }]);
  });

  it.each([
    ['a time that is none', { time: 'now' }],
    ['a sleep that is none', { slept: { from: 'then', to: '2026-11-29T19:41:00.000Z' } }],
    ['a path for a session', { sessions: [{ session: '../x', entries: 0, head: '0'.repeat(64) }] }],
    ['a session twice', { sessions: [1, 2].map((entries) => ({ session: 'a', entries, head: '0'.repeat(64) })) }],
    ['an interval of nothing', { interval: 0 }],
    [
      'a list that is too long',
      {
        sessions: Array.from({ length: 1001 }, (_, i) => ({
          session: `s${String(i)}`,
          entries: 0,
          head: '0'.repeat(64),
        })),
      },
    ],
  ])('with %s is 400 bad-request, and no row', async (_what, said) => {
    const machine = await newMachine();
    const answer = await machine.beat(said);
    expect([answer.status, answer.json['code']]).toEqual([400, 'bad-request']);
    expect(await world.owner`select from nd7.heartbeat where machine = ${machine.key.publicKey}`).toHaveLength(0);
  });
});

describe('a tail', () => {
  it('that is shorter than what the vault holds is one incident, and none for what was shipped meanwhile', async () => {
    const machine = await newMachine();
    const session = await stored(machine);
    const said = { sessions: [session.named(3)] };
    await machine.beat(said);
    expect(await incidents(machine)).toEqual([]);
    ahead = 90_000;
    for (let i = 0; i < 3; i += 1) await machine.beat(said);
    ahead = 0;
    expect(await incidents(machine)).toMatchObject([
      { kind: 'tail-shrank', session: session.id, count: 3, state: 'open', seen: { entries: 3, was: 4, held: 4 } },
    ]);
  });

  it('that was never shipped and is shorter than an earlier heartbeat said is one incident a shrinking', async () => {
    const machine = await newMachine();
    const session = await stored(machine);
    session.more(7); // not shipped
    const say = (entries: number): Promise<Answer> => machine.beat({ sessions: [session.named(entries)] });
    for (const entries of [8, 12, 9, 10, 11]) expect((await say(entries)).status).toBe(200);
    expect(await incidents(machine)).toMatchObject([
      { kind: 'tail-shrank', count: 9, state: 'open', seen: { entries: 9, was: 12 } },
    ]);
    await say(12);
    await world.replicas[0]?.look();
    expect(await incidents(machine)).toMatchObject([{ count: 9, state: 'over', over: { why: 'regrown' } }]);
    await say(7);
    const all = await incidents(machine);
    expect(all.map((one) => [one.count, one.state]).sort()).toEqual([
      [7, 'open'],
      [9, 'over'],
    ]);
  });

  it('is held against later words only: a heartbeat that was overtaken shrinks nothing', async () => {
    const machine = await newMachine();
    const session = await stored(machine);
    session.more(7);
    const earlier = formatTime(Date.now() - 5_000);
    await machine.beat({ sessions: [session.named(12)] });
    await machine.beat({ time: earlier, sessions: [session.named(9)] });
    expect(await incidents(machine)).toEqual([]);
  });

  it('under another head for the same count disagrees', async () => {
    const machine = await newMachine();
    const session = await stored(machine);
    await machine.beat({ sessions: [{ ...session.named(4), head: 'a'.repeat(64) }] });
    expect(await incidents(machine)).toMatchObject([{ kind: 'disagrees', session: session.id, count: 4 }]);
  });
});

describe('a machine that names a thousand sessions', () => {
  const flooding = (): Promise<TestMachine> => world.machine('flood', `box-${String((n += 1))}`);
  beforeAll(() => world.team('flood'));
  const list = (entries: number, head = 'f'.repeat(64)): { session: string; entries: number; head: string }[] =>
    Array.from({ length: 999 }, (_, i) => ({ session: `n-${String(i)}`, entries, head }));
  const raised = async (machine: TestMachine): Promise<Record<string, number>> =>
    Object.fromEntries(
      (
        await world.owner<
          { kind: string; n: number }[]
        >`select kind, count(*)::integer as n from nd7.incident where machine = ${machine.key.publicKey} group by kind`
      ).map(({ kind, n }) => [kind, n]),
    );

  it('raises a hundred incidents of a kind at most, and those of sessions that the vault holds besides', async () => {
    const machine = await flooding();
    const session = await stored(machine);
    ahead = 90_000;
    await machine.beat({ sessions: list(9) });
    for (let entries = 8; entries > 4; entries -= 1)
      await machine.beat({ sessions: [...list(entries), session.named(3)] });
    for (const head of ['a', 'b', 'c'])
      await machine.beat({
        sessions: [...list(5, head.repeat(64)), { ...session.named(4), head: head.repeat(64) }],
      });
    ahead = 0;
    expect(await raised(machine)).toEqual({ 'tail-shrank': 101, disagrees: 101 });
    const kinds = await world.owner<{ kind: string }[]>`
      select kind from nd7.incident where machine = ${machine.key.publicKey} and session = ${session.id} order by kind`;
    expect(kinds.map((one) => one.kind)).toEqual(['disagrees', 'tail-shrank']);
  });

  it('is heard in about the same time, however many heartbeats it sent before', async () => {
    const machine = await flooding();
    const beat = async (): Promise<number> => {
      const start = performance.now();
      expect((await machine.beat({ sessions: list(9) })).status).toBe(200);
      return performance.now() - start;
    };
    await beat();
    const first = Math.min(await beat(), await beat());
    for (let i = 0; i < 18; i += 1) await beat();
    expect(Math.min(await beat(), await beat(), await beat()) / first).toBeLessThan(8);
  });
});

describe('a clock', () => {
  const minutes = (n: number): void => {
    ahead += n * 60_000;
  };
  const states = async (machine: TestMachine): Promise<string[]> =>
    (await incidents(machine)).map((one) => one.state).sort();

  it('that disagrees is one incident; it is over when it agreed for a while, and the next one is another', async () => {
    const machine = await newMachine();
    const beat = async (off: number): Promise<void> => {
      machine.ahead = ahead + off;
      expect((await machine.beat()).status).toBe(200);
      await world.replicas[0]?.look();
    };
    for (let i = 0; i < 3; i += 1) await beat(-200_000);
    expect(await incidents(machine)).toMatchObject([{ kind: 'clock-disagrees', state: 'open' }]);
    expect((await incidents(machine))[0]?.seen?.off_by_ms).toBeLessThan(-190_000);
    await beat(0);
    minutes(14);
    await beat(0);
    await beat(200_000); // flaps
    minutes(14);
    await beat(0);
    expect(await states(machine)).toEqual(['open']);
    minutes(2);
    await beat(0);
    expect(await incidents(machine)).toMatchObject([{ state: 'over', over: { why: 'agrees' } }]);
    await beat(200_000);
    expect(await states(machine)).toEqual(['open', 'over']);
    ahead = 0;
  });

  it('that is too far off for any request is an incident all the same, if the request is the machine’s own', async () => {
    const machine = await newMachine();
    machine.ahead = 3_600_000;
    const refused = await machine.beat();
    expect([refused.status, refused.json['code']]).toEqual([401, 'stale-request']);
    await machine.signed('GET', '/v1/sessions/nobody');
    expect(await incidents(machine)).toMatchObject([{ kind: 'clock-disagrees', state: 'open' }]);

    const other = await newMachine();
    const headers = await other.headers('POST', '/v1/heartbeat', new Uint8Array(0), {
      now: Date.now() - 3_600_000,
      key: machine.key,
    });
    expect((await other.fetch('POST', '/v1/heartbeat', { headers })).status).toBe(401);
    expect(await incidents(other)).toEqual([]);
  });
});
