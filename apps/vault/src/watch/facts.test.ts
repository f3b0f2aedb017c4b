import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { TransactionSql } from 'postgres';
import { formatTime } from '@nd7/entry';
import { systemRandom } from '@nd7/signing';
import { VaultConfig } from '../config.js';
import type { Database } from '../db/database.js';
import { Metrics } from '../health/metrics.js';
import { IncidentStore } from '../incidents/incident.store.js';
import { HeartbeatStore } from '../machines/heartbeat.js';
import { MachineListStore } from '../readers/machine-list.store.js';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';
import { ENDS } from './ends.js';
import { laggingSessions, quietMachines, unclosedSessions, type Moment } from './facts.js';

let world: TestWorld;
let machine: TestMachine;
/** Of each of two machines: a heartbeat a minute, three weeks. */
const ROWS = 30_000;

/** How many heartbeats are read, by PostgreSQL's own count. */
async function read(work: (tx: TransactionSql) => Promise<unknown>): Promise<number> {
  return (await world.owner.begin(async (tx) => {
    const count = async (): Promise<number> => {
      const [row] = await tx<{ n: number }[]>`
        select (seq_tup_read + idx_tup_fetch)::integer as n from pg_stat_xact_user_tables where schemaname = 'nd7' and relname = 'heartbeat'`;
      return row?.n ?? Infinity;
    };
    await tx`select set_config('role', 'nd7_app', true), set_config('nd7.team', 'acme', true)`;
    const before = await count();
    await work(tx);
    return (await count()) - before;
  })) as number;
}

const moment = (): Moment => ({
  now: new Date(),
  awake: new Date(0),
  patience: {
    every: 30_000,
    quietAfter: 3,
    sessionLag: 300_000,
    sessionGrace: 3_600_000,
    awayLimit: 604_800_000,
    clockTolerance: 120_000,
  },
});

beforeAll(async () => {
  world = await TestWorld.make({ env: { ND7_VAULT_WATCH_EVERY: '3600' } });
  await world.team('acme');
  await world.replica();
  for (const name of ['one', 'two']) {
    machine = await world.machine('acme', name);
    const session = new TestSession(machine.key, 'open').start().seal();
    await machine.ship(session.id, session.cut(0));
    await world.owner`
      insert into nd7.heartbeat (team, machine, received, machine_time, sessions, entries, heads, interval_s)
      select 'acme', ${machine.key.publicKey}, at, at, array['open'], array[2], array[${session.heads[2] as string}], 60
      from generate_series(now() - ${ROWS} * interval '1 minute', now() - interval '1 minute', interval '1 minute') as at`;
    // One of each kind, open, so that their ends are looked for; of the other machine, that they are not begun.
    for (const kind of name === 'one' ? Object.keys(ENDS) : [])
      await world.owner`
        insert into nd7.incident (team, id, kind, machine, session, count, at, episode, seen)
        values ('acme', 'i_' || md5(${name + kind}), ${kind}, ${machine.key.publicKey}, ${/^(session|tail)/.test(kind) ? 'open' : null}, 2,
          now() - interval '1 day', 0, jsonb_build_object('heartbeat', 1, 'entries', 9, 'was', 9, 'heard', now() - interval '1 day'))`;
  }
  await world.owner`analyze nd7.heartbeat`;
}, 60_000);

afterAll(() => world.close());

it.each([
  ['quiet machines', quietMachines],
  ['unclosed sessions', unclosedSessions],
  ['lagging sessions', laggingSessions],
  ...Object.entries(ENDS),
] as [string, typeof quietMachines][])(
  '%s are found without reading every heartbeat there ever was',
  async (_what, find) => {
    expect(await read((tx) => find(tx, moment()))).toBeLessThan(200);
  },
);

it('so is the list of machines', async () => {
  const n = await read((tx) => {
    const db = { tenant: (_team: string, work: (tx: TransactionSql) => unknown) => work(tx) };
    return new MachineListStore(db as unknown as Database).list('acme');
  });
  expect(n).toBeGreaterThan(1);
  expect(n).toBeLessThan(200);
});

it('and taking one more', async () => {
  const n = await read((tx) => {
    const db = { tenant: (_team: string, work: (tx: TransactionSql) => unknown) => work(tx) } as unknown as Database;
    const config = new VaultConfig(world.env);
    const store = new HeartbeatStore(db, config, new IncidentStore(), new Metrics(), systemRandom);
    const sessions = [{ session: 'open', entries: 1, head: 'f'.repeat(64) }];
    const said = { time: formatTime(Date.now()), interval: 60, sessions };
    return store.take({ team: 'acme', machine: machine.key.publicKey }, said, new Date());
  });
  expect(n).toBeLessThan(200);
});
