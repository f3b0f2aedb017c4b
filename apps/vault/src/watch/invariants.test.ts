import { afterAll, beforeAll, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let n = 0;
let ahead = 0;

beforeAll(async () => {
  world = await TestWorld.make({ clock: { now: () => Date.now() + ahead }, env: { ND7_VAULT_WATCH_EVERY: '3600' } });
  await world.team('acme');
  await world.replica();
}, 60_000);

afterAll(() => world.close());

type Step =
  | { do: 'pass'; minutes: number }
  | { do: 'beat'; entries: number; away?: string; off: number }
  | { do: 'ship' | 'close' | 'grow' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), minutes: fc.constantFrom(1, 6, 70) }) },
  {
    weight: 5,
    arbitrary: fc.record(
      {
        do: fc.constant('beat' as const),
        entries: fc.nat({ max: 12 }),
        away: fc.constantFrom('idle', 'stopped', 'sleep'),
        off: fc.constantFrom(0, 0, 0, 200_000),
      },
      { requiredKeys: ['do', 'entries', 'off'] },
    ),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('ship' as const, 'close' as const, 'grow' as const) }) },
);

async function take(machine: TestMachine, session: TestSession, held: { entries: number }, one: Step): Promise<void> {
  machine.ahead = ahead;
  switch (one.do) {
    case 'pass':
      ahead += one.minutes * 60_000;
      break;
    case 'grow':
      session.more(1);
      break;
    case 'ship':
      if (session.count > held.entries) await machine.ship(session.id, session.cut(held.entries));
      held.entries = session.count;
      break;
    case 'close':
      if (held.entries > 0) await machine.close(session.id, held.entries, session.heads[held.entries] as string);
      break;
    case 'beat':
      machine.ahead += one.off;
      await machine.beat({
        // Nothing listed is a session that left the list.
        sessions: one.entries === 0 ? [] : [session.named(Math.min(one.entries, session.count))],
        ...(one.away === undefined ? {} : { interval: undefined, away: { reason: one.away } }),
      });
  }
  await world.replicas[0]?.look();
}

it('whatever a machine does and leaves undone: one episode at a time, each with its number, and a lost count stated once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 20 }), async (steps) => {
      const machine = await world.machine('acme', `box-${String((n += 1))}`);
      const session = new TestSession(machine.key, `s-${String(n)}`).start().seal();
      const held = { entries: 0 };
      for (const one of steps) await take(machine, session, held, one);
      const key = machine.key.publicKey;
      const wrong = await world.owner`
        select i.kind, i.session, count(*) as raised, count(c.state) as over, max(i.episode) as last
        from nd7.incident i left join nd7.incident_change c on c.team = i.team and c.incident = i.id
        where i.machine = ${key} and i.episode is not null group by i.kind, i.session
        having count(*) - count(c.state) > 1 or max(i.episode) <> count(*) - 1 or min(i.episode) <> 0
          or bool_or(c.state is null and i.episode < (select max(o.episode) from nd7.incident o where o.machine = ${key} and o.kind = i.kind and o.session is not distinct from i.session))`;
      expect([...wrong]).toEqual([]);
      const early = await world.owner`
        select from nd7.incident_change c join nd7.incident i on i.team = c.team and i.id = c.incident where i.machine = ${key} and c.at < i.at`;
      expect(early).toHaveLength(0);
      const twice = await world.owner`
        select statement from nd7.log_queue where statement like ${`%machine ${key}\n%reason lost\n%`} group by regexp_replace(statement, 'received .*', '') , statement having count(*) > 1`;
      expect(twice).toHaveLength(0);
      const lost = await world.owner<{ n: number }[]>`
        select count(*)::integer as n from nd7.log_queue where statement like ${`%machine ${key}\n%reason lost\n%`}`;
      const counts =
        await world.owner`select distinct count from nd7.incident where machine = ${key} and kind = 'session-unclosed'`;
      expect(lost[0]?.n).toBe(counts.length);
    }),
    { numRuns: 8 },
  );
}, 300_000);
