import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;

/** What /readyz says after a look at everything. */
async function ready(): Promise<[number, Record<string, unknown>]> {
  const vault = world.replicas[0];
  await vault?.lookAtGuards();
  await vault?.look();
  const answer = await fetch(`${vault?.url ?? ''}/readyz`);
  return [answer.status, (await answer.json()) as Record<string, unknown>];
}

beforeAll(async () => {
  world = await TestWorld.make({ env: { ND7_VAULT_WATCH_EVERY: '3600' } });
  await world.team('acme');
  await world.replica();
  machine = await world.machine('acme');
}, 60_000);

afterAll(() => world.close());

describe('/readyz', () => {
  it('is not ready while a guard is missing that was there at the start, and ready when it is back', async () => {
    expect(await ready()).toEqual([200, { status: 'ok' }]);
    await world.owner`alter table nd7.segment disable trigger refuse_change`;
    for (let i = 0; i < 2; i += 1) {
      const [status, said] = await ready();
      expect([status, said['status']]).toEqual([503, 'not ready']);
      expect(said['why']).toMatch(/guards .* missing/);
      expect(said['why']).not.toContain('segment');
    }
    const told = world.logged.filter((line) => line.includes('guards of the database are missing'));
    expect([told.length, told[0]]).toEqual([1, expect.stringContaining('table segment')]);
    await world.owner`alter table nd7.segment enable always trigger refuse_change`;
    expect(await ready()).toEqual([200, { status: 'ok' }]);
  });

  it('stays ready when a newer vault has migrated the database', async () => {
    await world.owner`insert into nd7.migration (name, hash) values ('9999_later.sql', '')`;
    expect(await ready()).toEqual([200, { status: 'ok' }]);
    await world.owner`delete from nd7.migration where name = '9999_later.sql'`;
  });

  it('is ready to be read, and says that a log takes nothing', async () => {
    const session = new TestSession(machine.key, 'long').start().seal().more(1);
    expect((await machine.ship(session.id, session.cut(0, 2))).status).toBe(201);
    await world.stopReplicas();
    const backup = await world.backup();
    machine.url = (await world.replica()).url;
    expect((await machine.ship(session.id, session.cut(2))).status).toBe(201);
    await world.stopReplicas();
    await world.replica({ ND7_DATABASE_URL: backup });
    expect(await ready()).toEqual([200, { status: 'ok', read_only_logs: 1 }]);
  });
});
