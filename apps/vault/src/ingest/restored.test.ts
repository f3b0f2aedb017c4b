import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectOptions } from '@nd7/postgres';
import postgres from 'postgres';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;
let session: TestSession;
let before: string;
let reader: string;

/** A backup is taken, the vault goes on, the backup is put back: what a person does after a bad night. */
beforeAll(async () => {
  world = await TestWorld.make();
  await world.team('acme');
  await world.replica();
  machine = await world.machine('acme');
  reader = (await world.reader('acme')).token;
  session = new TestSession(machine.key, 'long').start().seal();
  before = (await machine.ship(session.id, session.cut(0))).text;
  await world.stopReplicas();
  const backup = await world.backup();
  machine.url = (await world.replica()).url;
  session.more(1);
  expect((await machine.ship(session.id, session.cut(2))).status).toBe(201);
  await world.stopReplicas();
  machine.url = (await world.replica({ ND7_DATABASE_URL: backup })).url;
}, 120_000);

afterAll(() => world.close());

describe('a vault on a restored backup', () => {
  it('takes nothing, and names both checkpoints', async () => {
    // Not the same segment again: the database does not know of it. Whatever is shipped, no second history is begun.
    const answer = await machine.ship(session.id, session.cut(2));
    expect([answer.status, answer.json['code'], answer.headers.get('retry-after')]).toEqual([
      503,
      'log-read-only',
      '60',
    ]);
    expect(String(answer.json['detail'])).toMatch(/signed .*3.*database .*2/s);
    expect((await machine.close(session.id, 2, session.heads[2] as string)).json['code']).toBe('log-read-only');
  });

  it('is read as before: old receipts are the same bytes', async () => {
    const receipt = await machine.signed(
      'GET',
      `/v1/machines/${machine.key.publicKey}/sessions/long/segments/0/receipt`,
    );
    expect([receipt.status, receipt.text]).toEqual([200, before]);
    const page = await machine.fetch('GET', '/v1/sessions', { headers: { authorization: `Bearer ${reader}` } });
    expect((page.json['sessions'] as unknown[]).length).toBe(1);
    expect((await machine.fetch('GET', '/readyz')).status).toBe(200);
  });

  it('left nothing of what it refused', async () => {
    const sql = postgres({ ...connectOptions(world.backups[0] as string), max: 1 });
    const [row] = await sql<
      { segments: number; queue: number }[]
    >`select (select count(*)::int from nd7.segment) as segments, (select count(*)::int from nd7.log_queue) as queue`;
    await sql.end();
    expect(row).toEqual({ segments: 1, queue: 2 });
  });
});
