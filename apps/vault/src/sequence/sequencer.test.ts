import { join } from 'node:path';
import { consistencyProof, verifyConsistency } from '@nd7/tlog';
import { stopTestPostgres } from '@nd7/testing';
import { connect } from '../db/database.js';
import { EmbeddedSigner } from '../signer/embedded.js';
import type { CheckpointSigner } from '../signer/signer.js';
import { createLog } from '../signer/team-key.js';
import { checkLog } from './check-log.js';
import { Leadership } from './leadership.js';
import {
  freshDatabase,
  freshLog,
  LogDatabase,
  ORIGIN,
  Replica,
  statementOf,
  TEAM,
  temporaryFolder,
  until,
  VAULT,
} from './log.fixture.js';
import { nodeReader } from './nodes.js';
import { TeamSequencer, type Round, type Step } from './team-sequencer.js';

afterAll(stopTestPostgres);

/** A term of its own on a log, without a loop around it: a test makes each round happen. */
async function byHand(
  db: LogDatabase,
  signer: CheckpointSigner,
  onStep?: (step: Step) => void | Promise<void>,
): Promise<{ epoch: number; sequencer: TeamSequencer; round(): Promise<Round> }> {
  const epoch = await new Leadership(db.sql, db, 'test').beginTerm(TEAM);
  const sequencer = new TeamSequencer({
    db,
    signer,
    team: TEAM,
    origin: ORIGIN,
    ...(onStep === undefined ? {} : { onStep }),
  });
  return { epoch, sequencer, round: () => sequencer.round(epoch) };
}

const soundLog = async (db: LogDatabase, signer: CheckpointSigner): Promise<Awaited<ReturnType<typeof checkLog>>> => {
  const check = await checkLog(db, TEAM, { signer, receipts: 1000 });
  expect(check.fault).toBeUndefined();
  return check;
};

/** Checkpoints as (size, root), all the signer ever could have signed. */
const heads = (db: LogDatabase): Promise<{ size: number; root: Uint8Array }[]> =>
  db.tenant(
    TEAM,
    (tx) =>
      tx<
        { size: number; root: Uint8Array }[]
      >`select size, root from nd7.log_checkpoint where team = ${TEAM} order by size`,
  );

describe('a sequencer', () => {
  it('publishes a leaf at once, and the rest of a burst in few checkpoints', async () => {
    const { url, signer } = await freshLog();
    const replica = new Replica(url, signer);
    await replica.sequencer.start();
    const ids = await Promise.all(Array.from({ length: 600 }, () => replica.queue()));
    const receipts = await Promise.all(ids.map((id) => replica.log.published(TEAM, id, 30_000)));
    expect(receipts.every((receipt) => receipt?.startsWith('c2sp.org/tlog-proof@v1\n'))).toBe(true);
    const check = await soundLog(replica.db, signer);
    expect(check).toMatchObject({ size: 600, published: 600, waiting: 0, receipts: 600 });
    expect(check.checkpoints).toBeLessThan(60);
    await replica.close();
    await signer.close();
  }, 60_000);

  it('has every checkpoint extend the one before it', async () => {
    const { url, signer } = await freshLog();
    const replica = new Replica(url, signer);
    const { db, log } = replica;
    const { round } = await byHand(db, signer);
    for (const count of [1, 1, 2, 3, 5, 8, 13, 256, 300, 1]) {
      await db.tenant(TEAM, async (tx) => {
        for (let i = 0; i < count; i += 1) await log.enqueue(tx, TEAM, statementOf());
      });
      while ((await round()).what === 'published');
    }
    const all = await heads(db);
    expect(all.map(({ size }) => size)).toEqual([1, 2, 4, 7, 12, 20, 33, 289, 545, 589, 590]);
    await db.tenant(TEAM, async (tx) => {
      for (const [i, older] of all.entries())
        for (const newer of all.slice(i)) {
          const proof = await consistencyProof(older.size, newer.size, nodeReader(tx, TEAM));
          expect(verifyConsistency(older.size, older.root, newer.size, newer.root, proof)).toBe(true);
        }
    });
    await soundLog(db, signer);
    await replica.close();
    await signer.close();
  }, 60_000);

  it('finds statements whose ids became visible out of order, and moves its floor past them only then', async () => {
    const { url, signer } = await freshLog();
    const replica = new Replica(url, signer);
    const { db, log } = replica;
    const { round } = await byHand(db, signer);
    const floor = async (): Promise<number> =>
      (
        await db.tenant(
          TEAM,
          (tx) =>
            tx<{ floor: number }[]>`select max(queue_floor) as floor from nd7.log_checkpoint where team = ${TEAM}`,
        )
      )[0]!.floor;
    let finish: () => void = () => undefined;
    const held = new Promise<void>((done) => (finish = done));
    let early = 0n;
    let taken: () => void = () => undefined;
    const has = new Promise<void>((done) => (taken = done));
    // Takes its id first and commits last.
    const slow = db.tenant(TEAM, async (tx) => {
      early = await log.enqueue(tx, TEAM, statementOf());
      taken();
      await held;
    });
    await has;
    for (let i = 0; i < 4; i += 1) {
      await db.tenant(TEAM, (tx) => log.enqueue(tx, TEAM, statementOf()));
      expect(await round()).toMatchObject({ what: 'published', leaves: 1 });
      expect(BigInt(await floor())).toBeLessThan(early);
    }
    finish();
    await slow;
    expect(await round()).toMatchObject({ what: 'published', leaves: 1, size: 5 });
    for (let i = 0; i < 3; i += 1) {
      await db.tenant(TEAM, (tx) => log.enqueue(tx, TEAM, statementOf()));
      await round();
    }
    expect(BigInt(await floor())).toBeGreaterThan(early);
    expect(await soundLog(db, signer)).toMatchObject({ size: 8, waiting: 0 });
    await replica.close();
    await signer.close();
  }, 60_000);

  describe('that dies', () => {
    it.each<[Step, { stored: number; signed: number; published: number }]>([
      ['inserted', { stored: 3, signed: 3, published: 3 }],
      ['committed', { stored: 5, signed: 3, published: 3 }],
      ['read-back', { stored: 5, signed: 3, published: 3 }],
      ['signed', { stored: 5, signed: 5, published: 3 }],
      ['publishing', { stored: 5, signed: 5, published: 3 }],
      ['published', { stored: 5, signed: 5, published: 5 }],
    ])(
      'at %s leaves what the next one goes on from, with the same root',
      async (step, left) => {
        const { url, signer } = await freshLog();
        const replica = new Replica(url, signer);
        const { db } = replica;
        const first = await byHand(db, signer);
        for (let i = 0; i < 3; i += 1) await replica.queue();
        await first.round();
        const dying = await byHand(db, signer, (at) => {
          if (at === step) throw new Error('died');
        });
        const ids = [await replica.queue(), await replica.queue()];
        await expect(dying.round()).rejects.toThrow('died');

        const state = await signer.state(ORIGIN);
        const [row] = await db.tenant(
          TEAM,
          (tx) =>
            tx<
              { stored: number; published: number }[]
            >`select (select max(size) from nd7.log_checkpoint where team = ${TEAM}) as stored, (select max(size) from nd7.log_publication where team = ${TEAM}) as published`,
        );
        expect({ ...row, signed: state.ok && state.last.size }).toEqual(left);
        const before = await heads(db);

        await replica.queue();
        await replica.sequencer.start();
        for (const id of ids) expect(await replica.log.published(TEAM, id, 30_000)).toBeDefined();
        await until(async () => ((await heads(db)).at(-1)?.size === 6 ? true : undefined));
        // What was committed is in the line as it was: nothing that may have been signed was made again otherwise.
        expect((await heads(db)).slice(0, before.length)).toEqual(before);
        await until(async () => ((await checkLog(db, TEAM)).published === 6 ? true : undefined));
        await soundLog(db, signer);
        await replica.close();
        await signer.close();
      },
      60_000,
    );
  });

  it('that was paused is deposed when it comes back, wherever it was paused', async () => {
    for (const step of ['inserted', 'committed', 'read-back', 'signed'] as const) {
      const { url, signer } = await freshLog();
      const replica = new Replica(url, signer);
      const { db } = replica;
      const owner = connect(url, { max: 1 });
      let wake: () => void = () => undefined;
      const sleep = new Promise<void>((done) => (wake = done));
      let asleep: () => void = () => undefined;
      const sleeping = new Promise<void>((done) => (asleep = done));
      const paused = await byHand(db, signer, async (at) => {
        if (at !== step) return;
        asleep();
        await sleep;
      });
      await replica.queue();
      const late = paused.round();
      await sleeping;
      // An open transaction holds the rows it inserted: the next leader's insert of the same index waits for it and then goes on.
      const next = await byHand(db, signer);
      const other = next.round();
      if (step !== 'inserted') await other;
      else
        await until(async () =>
          (await owner`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
            .length > 0
            ? true
            : undefined,
        );
      await replica.queue();
      if (step !== 'inserted') expect(await next.round()).toMatchObject({ what: 'published' });
      wake();
      expect(await late).toMatchObject(step === 'inserted' ? { what: 'published' } : { what: 'deposed' });
      if (step === 'inserted') expect(await other).toMatchObject({ what: 'deposed' });
      expect(await paused.round()).toMatchObject({ what: 'deposed' });
      for (let i = 0; i < 2; i += 1) await next.round();
      expect(await soundLog(db, signer)).toMatchObject({ size: 2, published: 2, waiting: 0 });
      await owner.end();
      await replica.close();
      await signer.close();
    }
  }, 120_000);

  it('is replaced while it holds the lock but does nothing', async () => {
    const { url, signer } = await freshLog();
    const [asleep, lock] = [new LogDatabase(url), connect(url, { max: 1, role: 'nd7_app' })];
    const leadership = new Leadership(lock, asleep, 'asleep');
    await leadership.seek([TEAM]);
    expect(leadership.holds(TEAM)).toBe(true);
    await leadership.beginTerm(TEAM);
    const replica = new Replica(url, signer, { pace: { tick: 50, stall: 300 } });
    await replica.sequencer.start();
    const id = await replica.queue();
    expect(replica.sequencer.leading()).toEqual([]);
    await until(() => replica.log.published(TEAM, id, 200));
    expect(replica.sequencer.leading()).toEqual([TEAM]);
    await soundLog(replica.db, signer);
    await leadership.close();
    await lock.end();
    await asleep.close();
    await replica.close();
    await signer.close();
  }, 60_000);

  it('gives each leaf to one of two that race, and makes one line of checkpoints', async () => {
    const { url, signer } = await freshLog();
    // Both lead by turns: each begins a term whenever it is deposed, with no lock between them.
    const replicas = [new Replica(url, signer), new Replica(url, signer)];
    let queued = 0;
    let isOver = false;
    const outcomes = new Map<string, number>();
    const racing = replicas.map(async ({ db }) => {
      while (!isOver) {
        const hand = await byHand(db, signer).catch(() => undefined);
        for (let i = 0; i < 4 && hand !== undefined; i += 1) {
          const { what } = await hand.round();
          outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
          if (what === 'deposed') break;
        }
      }
    });
    const ids: bigint[] = [];
    await Promise.all(
      replicas.map(async (replica) => {
        for (let i = 0; i < 100; i += 1) {
          ids.push(await replica.queue());
          queued += 1;
        }
      }),
    );
    await until(async () => ((await checkLog(replicas[0]!.db, TEAM)).published === queued ? true : undefined));
    isOver = true;
    await Promise.all(racing);
    expect(await soundLog(replicas[0]!.db, signer)).toMatchObject({ size: 200, published: 200, waiting: 0 });
    const placed = await replicas[0]!.db.tenant(
      TEAM,
      (tx) => tx<{ id: string }[]>`select leaf_id::text as id from nd7.log_leaf where team = ${TEAM}`,
    );
    expect(placed.map(({ id }) => id).sort()).toEqual(ids.map(String).sort());
    expect(outcomes.get('published')).toBeGreaterThan(0);
    expect(outcomes.get('read-only')).toBeUndefined();
    for (const replica of replicas) await replica.close();
    await signer.close();
  }, 90_000);

  it('leads one log at a time with others, and another takes over when it stops', async () => {
    const { url, signer } = await freshLog();
    const replicas = [1, 2, 3].map(
      (n) => new Replica(url, signer, { pace: { tick: 50 }, name: `replica ${String(n)}` }),
    );
    for (const { sequencer } of replicas) await sequencer.start();
    for (const rest of [replicas, replicas.slice(1), replicas.slice(2)]) {
      // A follower's waiter is woken by the leader's publication.
      const receipts = await Promise.all(
        rest.map(async (replica) => replica.log.published(TEAM, await replica.queue(), 30_000)),
      );
      expect(receipts.every((receipt) => receipt !== undefined)).toBe(true);
      await until(() =>
        rest.filter(({ sequencer }) => sequencer.leading().length === 1).length === 1 ? true : undefined,
      );
      await rest[0]!.close();
    }
    const db = new LogDatabase(url);
    expect(await soundLog(db, signer)).toMatchObject({ size: 6 });
    await db.close();
    await signer.close();
  }, 60_000);

  it('looks by itself where no message arrives', async () => {
    const { url, signer } = await freshLog();
    const replica = new Replica(url, signer, { pace: { tick: 50 } });
    replica.wakes.listen = () => Promise.resolve();
    replica.wakes.send = () => undefined;
    replica.wakes.tell = () => undefined;
    replica.sequencer.wake = () => undefined;
    await replica.sequencer.start();
    expect(await replica.log.published(TEAM, await replica.queue(), 30_000)).toBeDefined();
    await replica.close();
    await signer.close();
  }, 60_000);

  it('waits for a signer that is away and goes on with the same head', async () => {
    const { url, signer } = await freshLog();
    let isAway = true;
    const flaky: CheckpointSigner = {
      provision: (origin) => signer.provision(origin),
      state: (origin) => signer.state(origin),
      sign: (request) => (isAway ? Promise.reject(new Error('away')) : signer.sign(request)),
      close: () => Promise.resolve(),
    };
    const failures: unknown[] = [];
    const replica = new Replica(url, flaky, { events: { failed: (_team, error) => failures.push(error) } });
    await replica.sequencer.start();
    const id = await replica.queue();
    await until(() => (failures.length > 1 ? true : undefined));
    const before = await heads(replica.db);
    expect(before).toHaveLength(1);
    isAway = false;
    expect(await replica.log.published(TEAM, id, 30_000)).toBeDefined();
    expect(await heads(replica.db)).toEqual(before);
    await replica.close();
    await signer.close();
  }, 60_000);

  it('leads a log that is made while it runs, and leaves alone one of another vault name', async () => {
    const url = await freshDatabase();
    const signer = EmbeddedSigner.open(join(temporaryFolder(), 'signer'));
    const failures: string[] = [];
    const replica = new Replica(url, signer, {
      pace: { tick: 50 },
      events: { failed: (_team, error) => failures.push((error as Error).message) },
    });
    await replica.sequencer.start();
    await expect(replica.queue()).rejects.toMatchObject({ code: 'unknown-log' });
    const vkey = await createLog(signer, replica.db, VAULT, TEAM);
    expect(await createLog(signer, replica.db, VAULT, TEAM)).toBe(vkey);
    expect(await replica.log.published(TEAM, await replica.queue(), 30_000)).toBeDefined();
    await expect(createLog(signer, replica.db, 'renamed.test', TEAM)).rejects.toMatchObject({ code: 'unknown-log' });
    await replica.close();
    await signer.close();
    expect(failures).toEqual([]);
  }, 60_000);
});
