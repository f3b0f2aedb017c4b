import { stopTestPostgres } from '@nd7/testing';
import type { Sql } from 'postgres';
import { connect } from '../db/database.js';
import type { EmbeddedSigner } from '../signer/embedded.js';
import { checkLog } from './check-log.js';
import { Leadership } from './leadership.js';
import { copyDatabase, freshLog, LogDatabase, ORIGIN, Replica, statementOf, TEAM } from './log.fixture.js';
import { TeamSequencer } from './team-sequencer.js';

afterAll(stopTestPostgres);

const TABLES = [
  'log',
  'log_key',
  'log_epoch',
  'log_queue',
  'log_leaf',
  'log_node',
  'log_checkpoint',
  'log_signature',
  'log_publication',
];

/** Past every guard, as an administrator of the database could. */
async function past<T>(url: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = connect(url, { max: 1 });
  for (const table of TABLES) await sql`alter table ${sql(`nd7.${table}`)} disable trigger all`;
  const result = await work(sql);
  for (const table of TABLES) await sql`alter table ${sql(`nd7.${table}`)} enable trigger all`;
  await sql.end();
  return result;
}

describe('the check of a log', () => {
  let clean: string;
  let signer: EmbeddedSigner;

  beforeAll(async () => {
    const made = await freshLog();
    [clean, signer] = [made.url, made.signer];
    const replica = new Replica(clean, signer);
    const { db, log } = replica;
    const epoch = await new Leadership(db.sql, db, 'test').beginTerm(TEAM);
    const sequencer = new TeamSequencer({ db, signer, team: TEAM, origin: ORIGIN });
    for (const count of [1, 4, 6, 2]) {
      await db.tenant(TEAM, async (tx) => {
        for (let i = 0; i < count; i += 1) await log.enqueue(tx, TEAM, statementOf());
      });
      await sequencer.round(epoch);
    }
    await replica.close();
  }, 60_000);

  afterAll(() => signer.close());

  it('finds nothing in a sound log', async () => {
    const db = new LogDatabase(clean);
    expect(await checkLog(db, TEAM, { signer })).toEqual({
      team: TEAM,
      origin: ORIGIN,
      size: 13,
      checkpoints: 4,
      published: 13,
      waiting: 0,
      receipts: 13,
    });
    await db.close();
  }, 30_000);

  const one = (sql: Sql, ...statements: string[]): Promise<void> =>
    // eslint-disable-next-line no-restricted-syntax -- what an administrator does is text, and in no migration
    statements.reduce((before, text) => before.then(() => sql.unsafe(text).then(() => undefined)), Promise.resolve());
  it.each<[string, string | string[], { at: string; what: RegExp }]>([
    [
      'a statement changed',
      "update nd7.log_queue set statement = replace(statement, '.123Z', '.124Z') where leaf_id = (select leaf_id from nd7.log_leaf where leaf_index = 6)",
      { at: 'leaf 6', what: /not that of its statement/ },
    ],
    [
      'a statement changed, its hash with it',
      "update nd7.log_queue set statement = replace(statement, '.123Z', '.124Z') where leaf_id = (select leaf_id from nd7.log_leaf where leaf_index = 6); update nd7.log_leaf l set hash = sha256('\\x00'::bytea || convert_to(q.statement, 'UTF8')) from nd7.log_queue q where q.leaf_id = l.leaf_id and l.leaf_index = 6",
      { at: 'node 1/3', what: /not the hash/ },
    ],
    [
      'two leaves exchanged',
      'update nd7.log_leaf set leaf_index = 99 where leaf_index = 2; update nd7.log_leaf set leaf_index = 2 where leaf_index = 3; update nd7.log_leaf set leaf_index = 3 where leaf_index = 99',
      { at: 'node 1/1', what: /not the hash/ },
    ],
    ['a leaf removed', 'delete from nd7.log_leaf where leaf_index = 4', { at: 'leaf 4', what: /missing/ }],
    ['the last leaf removed', 'delete from nd7.log_leaf where leaf_index = 12', { at: 'leaf 12', what: /missing/ }],
    [
      'a leaf too many',
      'insert into nd7.log_queue (team, statement) select team, statement from nd7.log_queue limit 1; insert into nd7.log_leaf select team, 13, (select max(leaf_id) from nd7.log_queue), hash from nd7.log_leaf where leaf_index = 0',
      { at: 'leaf 13', what: /14 leaves are stored/ },
    ],
    [
      'a node changed',
      'update nd7.log_node set hash = set_byte(hash, 0, get_byte(hash, 0) # 1) where level = 2 and node_index = 1',
      { at: 'node 2/1', what: /not the hash/ },
    ],
    ['a node removed', 'delete from nd7.log_node where level = 3', { at: 'node 3/0', what: /missing/ }],
    [
      'a node too many',
      'insert into nd7.log_node select team, 9, 7, hash from nd7.log_node limit 1',
      { at: 'nodes', what: /11 are stored, a tree of 13 leaves has 10/ },
    ],
    [
      'a root changed',
      "update nd7.log_checkpoint set root = sha256('x') where size = 5",
      { at: 'checkpoint 5', what: /its leaves give/ },
    ],
    [
      'a checkpoint removed',
      'delete from nd7.log_publication where size = 5; delete from nd7.log_signature where size = 5; delete from nd7.log_checkpoint where size = 5',
      { at: 'checkpoint 11', what: /follows 5/ },
    ],
    [
      'the last checkpoints removed',
      'delete from nd7.log_publication where size > 5; delete from nd7.log_signature where size > 5; delete from nd7.log_checkpoint where size > 5',
      { at: 'leaf 5', what: /13 leaves are stored/ },
    ],
    [
      'a signature line changed',
      'update nd7.log_signature set line = (select line from nd7.log_signature where size = 1) where size = 11',
      { at: 'checkpoint 11', what: /good signature/ },
    ],
    [
      'a signature line of nobody',
      "update nd7.log_signature set line = '— vault.test/acme AAAAAAAA' where size = 11",
      { at: 'checkpoint 11', what: /good signature/ },
    ],
    [
      'a signature line added afterwards',
      'insert into nd7.log_signature select team, size, 1, line from nd7.log_signature where size = 5',
      { at: 'checkpoint 5', what: /1 signature lines, 2 are stored/ },
    ],
    [
      'a publication removed from the middle',
      'delete from nd7.log_publication where size = 5',
      { at: 'checkpoint 5', what: /not published/ },
    ],
    [
      'a publication moved',
      'update nd7.log_publication set first_index = 2 where size = 5',
      { at: 'checkpoint 5', what: /the leaves from 2/ },
    ],
    ['the key replaced', "update nd7.log_key set public_key = sha256('x')", { at: 'key 0', what: /no verifier key/ }],
    [
      'the floor raised over what waits',
      'insert into nd7.log_queue (team, statement) select team, statement from nd7.log_queue limit 1; update nd7.log_checkpoint set queue_floor = 1000000 where size = 13',
      { at: 'queue', what: /passed over/ },
    ],
    [
      'everything thrown away',
      'delete from nd7.log_publication; delete from nd7.log_signature; delete from nd7.log_checkpoint; delete from nd7.log_node; delete from nd7.log_leaf',
      { at: 'checkpoint 13', what: /signer has signed/ },
    ],
  ])(
    'names %s',
    async (_, text, { at, what }) => {
      const url = await copyDatabase(clean);
      await past(url, (sql) => one(sql, ...[text].flat()));
      const db = new LogDatabase(url);
      const { fault } = await checkLog(db, TEAM, { signer });
      expect(fault).toEqual({ at, what: expect.stringMatching(what) as string });
      await db.close();
    },
    30_000,
  );

  it('is not needed to keep a flipped bit from being signed', async () => {
    for (const [spoil, step] of [
      [
        'update nd7.log_node set hash = set_byte(hash, 3, get_byte(hash, 3) # 4) where level = 1 and node_index = 6',
        'committed',
      ],
      [
        "update nd7.log_queue set statement = replace(statement, '.123Z', '.125Z') where leaf_id = (select max(leaf_id) from nd7.log_queue)",
        'committed',
      ],
      ["update nd7.log_checkpoint set root = sha256('x') where size = 14", 'committed'],
    ] as const) {
      const url = await copyDatabase(clean);
      const replica = new Replica(url, signer);
      const { db } = replica;
      const epoch = await new Leadership(db.sql, db, 'test').beginTerm(TEAM);
      const sequencer = new TeamSequencer({
        db,
        signer,
        team: TEAM,
        origin: ORIGIN,
        onStep: async (at) => {
          if (at === step) await past(url, (sql) => one(sql, spoil));
        },
      });
      await replica.queue();
      expect(await sequencer.round(epoch)).toMatchObject({ what: 'read-only' });
      expect(await signer.state(ORIGIN)).toMatchObject({ ok: true, last: { size: 13 } });
      await replica.close();
    }
  }, 60_000);

  it('the application cannot change what is stored, nor an owner without lifting the guards', async () => {
    const url = await copyDatabase(clean);
    const db = new LogDatabase(url);
    const owner = connect(url, { max: 1 });
    for (const table of TABLES) {
      const name = owner(`nd7.${table}`);
      await expect(db.tenant(TEAM, (tx) => tx`update ${tx(`nd7.${table}`)} set team = team`)).rejects.toMatchObject({
        code: '42501',
      });
      await expect(db.tenant(TEAM, (tx) => tx`delete from ${tx(`nd7.${table}`)}`)).rejects.toMatchObject({
        code: '42501',
      });
      await expect(db.tenant(TEAM, (tx) => tx`truncate ${tx(`nd7.${table}`)}`)).rejects.toMatchObject({
        code: '42501',
      });
      await expect(owner`update ${name} set team = team`).rejects.toMatchObject({ code: '42501' });
      await expect(owner`delete from ${name}`).rejects.toMatchObject({ code: '42501' });
      await expect(owner`truncate ${name} cascade`).rejects.toMatchObject({ code: '42501' });
      await expect(
        owner.begin((tx) => [tx`set local session_replication_role = replica`, tx`delete from ${name}`]),
      ).rejects.toMatchObject({ code: '42501' });
      expect(await db.tenant('other', (tx) => tx`select from ${tx(`nd7.${table}`)}`)).toHaveLength(0);
    }
    await owner.end();
    await db.close();
  }, 60_000);

  it('the schema refuses a second root, a second branch, a stale term, a late signature', async () => {
    const url = await copyDatabase(clean);
    const db = new LogDatabase(url);
    const insert = (size: number, prior: number, epoch: number): Promise<unknown> =>
      db.tenant(
        TEAM,
        (tx) =>
          tx`insert into nd7.log_checkpoint (team, size, prior_size, root, epoch, queue_floor) values (${TEAM}, ${size}, ${prior}, sha256('x'), ${epoch}, 0)`,
      );
    await expect(insert(13, 11, 1)).rejects.toMatchObject({ code: 'ND701' });
    await expect(insert(14, 11, 1)).rejects.toMatchObject({ code: 'ND701' });
    await expect(insert(14, 14, 1)).rejects.toMatchObject({ code: 'ND701' });
    await expect(insert(14, 13, 2)).rejects.toMatchObject({ code: 'ND701' });
    await db.tenant(TEAM, (tx) => tx`insert into nd7.log_epoch (team, epoch, leader) values (${TEAM}, 2, 'next')`);
    await expect(insert(14, 13, 1)).rejects.toMatchObject({ code: 'ND701' });
    const line = `— ${ORIGIN} ${Buffer.alloc(68).toString('base64')}`;
    await expect(
      db.tenant(
        TEAM,
        (tx) => tx`insert into nd7.log_signature (team, size, position, line) values (${TEAM}, 13, 1, ${line})`,
      ),
    ).rejects.toMatchObject({ code: 'ND702' });
    await insert(14, 13, 2);
    for (const [first, lines] of [
      [12, 0],
      [13, 1],
    ] as const)
      await expect(
        db.tenant(
          TEAM,
          (tx) =>
            tx`insert into nd7.log_publication (team, size, first_index, lines) values (${TEAM}, 14, ${first}, ${lines})`,
        ),
      ).rejects.toMatchObject({ code: 'ND702' });
    await db.close();
  }, 60_000);
});
