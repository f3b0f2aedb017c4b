import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedSigner } from '../signer/embedded.js';
import { SignerServer } from '../signer/socket-server.js';
import { revokeMachine } from '../cli/people.js';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let signer: SignerServer;
let machine: TestMachine;
let urls: string[];
let n = 0;
const fresh = (): TestSession => new TestSession(machine.key, `w-${String((n += 1))}`);

/** Two replicas on one database, one signer for both. */
beforeAll(async () => {
  world = await TestWorld.make();
  await world.team('acme');
  mkdirSync(join(world.folder, 'run'), { mode: 0o700 });
  const socket = join(world.folder, 'run', 'signer');
  signer = await SignerServer.listen(EmbeddedSigner.open(join(world.folder, 'keys', 'signer')), socket);
  urls = [];
  for (let i = 0; i < 2; i += 1) urls.push((await world.replica({ ND7_VAULT_SIGNER_SOCKET: socket })).url);
  machine = await world.machine('acme');
}, 60_000);

afterAll(async () => {
  await world.close();
  await signer.close();
});

const at = (i: number): TestMachine => Object.assign(Object.create(machine) as TestMachine, { url: urls[i % 2] });

describe('two replicas on one database', () => {
  it('race on one segment: one takes it, all answers carry the same receipt', async () => {
    const session = fresh().start().seal();
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => at(i).ship(session.id, session.cut(0))));
    expect(answers.filter((one) => one.status === 201).length).toBeLessThanOrEqual(1);
    expect(answers.every((one) => [200, 201, 202].includes(one.status))).toBe(true);
    expect(await world.owner`select 1 from nd7.segment where session = ${session.id}`).toHaveLength(1);
    const heads = await world.owner<
      { statement: string }[]
    >`select statement from nd7.log_queue where statement like ${`nd7/head/v1%session ${session.id}\n%`}`;
    expect(heads).toHaveLength(1);
    const receipts = new Set(
      (await Promise.all([0, 1].map((i) => at(i).ship(session.id, session.cut(0))))).map((one) => one.text),
    );
    expect(receipts.size).toBe(1);
  });

  it('race on the two sides of a fork: one history is kept, the other convicts', async () => {
    const session = fresh().start().seal();
    await machine.ship(session.id, session.cut(0));
    const sides = [session.branch(2).more(1), session.branch(2).more(1, { data: '{"other":true}' })];
    const answers = await Promise.all(
      [0, 1, 1, 0].map((side, i) => at(i).ship(session.id, (sides[side] as TestSession).cut(2))),
    );
    const stored = await world.owner<
      { head: string }[]
    >`select head from nd7.segment where session = ${session.id} and from_entry = 2`;
    expect(stored).toHaveLength(1);
    const winner = sides.findIndex((side) => side.heads[4] === stored[0]?.head);
    expect([0, 1]).toContain(winner);
    [0, 1, 1, 0].forEach((side, i) =>
      expect(answers[i]?.json['code'] ?? 'taken').toBe(side === winner ? 'taken' : 'fork'),
    );
    const leaves = await world.owner<
      { type: string }[]
    >`select split_part(statement, E'\n', 1) as type from nd7.log_queue where statement like ${`%session ${session.id}\n%`} order by leaf_id`;
    expect(leaves.map((leaf) => leaf.type)).toEqual(['nd7/head/v1', 'nd7/head/v1', 'nd7/fork/v1', 'nd7/close/v1']);
  });

  it('race over a whole session shipped from both ends: every entry is there once', async () => {
    const session = fresh().start().seal();
    for (let i = 0; i < 6; i += 1) session.more(2);
    const cuts = [session.cut(0, 2), ...Array.from({ length: 6 }, (_, i) => session.cut(2 + 3 * i, 5 + 3 * i))];
    const shipAll = async (i: number): Promise<void> => {
      for (const cut of cuts) {
        let status = 0;
        while (![200, 201, 202].includes(status)) status = (await at(i).ship(session.id, cut)).status;
      }
    };
    await Promise.all([shipAll(0), shipAll(1)]);
    const rows = await world.owner<
      { from_entry: string }[]
    >`select from_entry from nd7.segment where session = ${session.id} order by from_entry`;
    expect(rows.map((row) => Number(row.from_entry))).toEqual(cuts.map((cut) => cut.from));
  });

  it('take a nonce once between them', async () => {
    const nonce = crypto.getRandomValues(new Uint8Array(16));
    const headers = await machine.headers('GET', '/v1/sessions/none', new Uint8Array(0), { nonce });
    const answers = await Promise.all([0, 1].map((i) => at(i).fetch('GET', '/v1/sessions/none', { headers })));
    expect(answers.map((one) => one.json['code']).sort()).toEqual(['not-found', 'replayed']);
  });

  it('refuse a machine from the moment its revocation has committed, in the middle of a stream of segments', async () => {
    const victim = await world.machine('acme', 'victim');
    const session = new TestSession(victim.key, 'victim').start().seal();
    const sides = [0, 1].map((i) => Object.assign(Object.create(victim) as TestMachine, { url: urls[i] }));
    expect((await victim.ship(session.id, session.cut(0))).status).toBe(201);
    let revoked = false;
    let after = 0;
    const stream = (async () => {
      for (let i = 0; i < 200; i += 1) {
        const wasRevoked = revoked;
        const from = session.count;
        const answer = await (sides[i % 2] as TestMachine).ship(session.id, session.more(1).cut(from));
        if (answer.status === 403) return answer.json['code'];
        if (wasRevoked) after += 1;
      }
      return 'never';
    })();
    await new Promise((next) => setTimeout(next, 300));
    await revokeMachine(world.io, 'acme', victim.key.publicKey);
    revoked = true;
    expect(await stream).toBe('revoked');
    expect(after).toBe(0);
    const late =
      await world.owner`select 1 from nd7.segment s join nd7.machine_revocation r using (machine) where s.received > r.received`;
    expect(late).toHaveLength(0);
    const leaf = await world.owner<
      { statement: string }[]
    >`select statement from nd7.log_queue where statement like 'nd7/revoke/v1%'`;
    expect(leaf[0]?.statement).toContain(`machine ${victim.key.publicKey}\n`);
  });

  it('sees a revocation that commits while a segment is being stored', async () => {
    const victim = await world.machine('acme', 'slow victim');
    const session = new TestSession(victim.key, 'slow').start().seal();
    // A revocation in the middle of its transaction holds the machine; the segment has passed every check before that.
    let shipped: Promise<number> | undefined;
    await world.owner.begin(async (tx) => {
      await tx`select set_config('nd7.team', 'acme', true)`;
      await tx`select nd7.hold_machine(${victim.key.publicKey})`;
      shipped = victim.ship(session.id, session.cut(0)).then((answer) => answer.status);
      for (;;) {
        const [row] = await world.owner<
          { waiting: number }[]
        >`select count(*)::int as waiting from pg_locks where locktype = 'advisory' and not granted`;
        if (row !== undefined && row.waiting > 0) break;
        await new Promise((next) => setTimeout(next, 20));
      }
      await tx`
        insert into nd7.machine_revocation (team, machine, since, revoked_by, received, leaf_id)
        values ('acme', ${victim.key.publicKey}, clock_timestamp(), ${`u_${'0'.repeat(32)}`}, clock_timestamp(), 0)`;
    });
    expect(await shipped).toBe(403);
    expect(await world.owner`select 1 from nd7.segment where machine = ${victim.key.publicKey}`).toHaveLength(0);
  });
});
