// A failover, with PostgreSQL's own replication: a standby that was up to date goes on, one that lagged must not make the vault contradict itself.
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import postgres from 'postgres';
import { connectOptions } from '@nd7/postgres';
import { migrate } from '../db/migrate.js';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { Replication } from '../testing/standby.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

(Replication.isPossible ? describe : describe.skip)('a failover (needs PostgreSQL’s programs on this machine)', () => {
  const replication = new Replication();
  let world: TestWorld;
  let machine: TestMachine;
  let session: TestSession;
  let first: string;
  let lagging: string;
  let current: string;

  beforeAll(async () => {
    const primary = await replication.start('primary');
    const sql = postgres({ ...connectOptions(primary), database: 'postgres', max: 1, onnotice: () => undefined });
    await sql`create database vault`;
    await sql.end();
    await migrate(primary);
    world = await TestWorld.make({ url: primary, env: { ND7_VAULT_WATCH_EVERY: '3600' } });
    await world.team('acme');
    await world.replica();
    machine = await world.machine('acme');
    for (const name of ['lagging', 'current']) await replication.copy('primary', name);
    await replication.start('lagging');
    current = await replication.start('current');

    session = new TestSession(machine.key, 'long').start().seal().more(1);
    first = (await machine.ship(session.id, session.cut(0, 2))).text;
    await replication.caughtUp('primary', 'lagging');
    await replication.stop('lagging'); // and follows no more
    expect((await machine.ship(session.id, session.cut(2))).status).toBe(201);
    await replication.caughtUp('primary', 'current');
  }, 120_000);

  afterAll(async () => {
    await world.close();
    await replication.close();
  });

  const receipt = async (): Promise<string> =>
    (await machine.signed('GET', `/v1/machines/${machine.key.publicKey}/sessions/long/segments/0/receipt`)).text;

  it('a vault does not start on a standby that still follows', async () => {
    await expect(
      world.replica({ ND7_DATABASE_URL: current, ND7_VAULT_SIGNER_STATE: `${world.folder}/other` }),
    ).rejects.toThrow('the database is a standby that follows another');
  });

  it('to one that lagged leaves the log read-only: both checkpoints are named, nothing is signed, old receipts stand', async () => {
    await world.stopReplicas();
    await replication.stop('primary');
    lagging = await replication.start('lagging'); // its socket is another one now
    await replication.promote('lagging');
    machine.url = (await world.replica({ ND7_DATABASE_URL: lagging })).url;
    const answer = await machine.ship(session.id, session.cut(2));
    expect([answer.status, answer.json['code']]).toEqual([503, 'log-read-only']);
    expect(String(answer.json['detail'])).toMatch(/signed .*3.*database .*2/s);
    expect(await receipt()).toBe(first);
    await world.replicas[0]?.look();
    expect((await machine.fetch('GET', '/readyz')).json).toEqual({ status: 'ok', read_only_logs: 1 });
  });

  it('to one that was up to date goes on where the primary was', async () => {
    await world.stopReplicas();
    await replication.stop('lagging');
    await replication.promote('current');
    machine.url = (await world.replica({ ND7_DATABASE_URL: current })).url;
    const again = await machine.ship(session.id, session.cut(2));
    expect(again.status).toBe(200);
    expect(await receipt()).toBe(first);
    session.more(1);
    expect((await machine.ship(session.id, session.cut(4))).status).toBe(201);
  });
});
