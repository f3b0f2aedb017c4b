// A database that has lost what was signed: a backup brought back, or a standby that lagged when it took over.
import { parseReceipt } from '@nd7/receipt';
import { stopTestPostgres } from '@nd7/testing';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { adopt } from '../signer/adopt.js';
import { emptyRoot } from '@nd7/tlog';
import { EmbeddedSigner } from '../signer/embedded.js';
import type { CheckpointSigner } from '../signer/signer.js';
import { checkLog } from './check-log.js';
import { copyDatabase, freshLog, LogDatabase, ORIGIN, Replica, TEAM, until, VAULT } from './log.fixture.js';
import { TestSession } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';
import type { Round } from './team-sequencer.js';

afterAll(stopTestPostgres);

const BY = `u_${'0'.repeat(31)}1`;
const received = '2026-11-29T20:00:00.000Z';

/** A log of three published leaves, a backup of its database, and then as many leaves more. */
async function restored(
  more: number,
): Promise<{ folder: string; signer: EmbeddedSigner; before: string; backup: string; late: string[] }> {
  const { url, folder, signer } = await freshLog();
  const grow = async (count: number): Promise<string[]> => {
    const replica = new Replica(url, signer);
    await replica.sequencer.start();
    const receipts: string[] = [];
    for (let i = 0; i < count; i += 1)
      receipts.push((await replica.log.published(TEAM, await replica.queue(), 30_000))!);
    await replica.close();
    return receipts;
  };
  await grow(3);
  const backup = await copyDatabase(url);
  return { folder, signer, before: url, backup, late: await grow(more) };
}

describe('a restored backup', () => {
  it('is served read-only, both checkpoints named, and nothing is written', async () => {
    const { signer, backup, late } = await restored(2);
    const rounds: Round[] = [];
    const replica = new Replica(backup, signer, { events: { round: (_team, round) => rounds.push(round) } });
    await replica.sequencer.start();
    const readOnly = await until(() => rounds.find(({ what }) => what === 'read-only'));
    const state = await signer.state(ORIGIN);
    if (!state.ok) throw new Error(state.message);
    const [signed, stored] = [`size 5, root ${Buffer.from(state.last.root).toString('base64')}`, 'size 3, root '];
    expect(readOnly).toMatchObject({ what: 'read-only', signed: state.last, stored: { size: 3 } });
    for (const said of [(readOnly as { message: string }).message, (await replica.log.status(TEAM)).readOnly]) {
      expect(said).toContain(signed);
      expect(said).toContain(stored);
    }
    await expect(replica.queue()).rejects.toMatchObject({
      code: 'log-read-only',
      message: expect.stringContaining(signed) as string,
    });
    // Receipts that it still has, it still gives.
    const [first] = await replica.db.tenant(
      TEAM,
      (tx) =>
        tx<{ id: string }[]>`select leaf_id::text as id from nd7.log_leaf where team = ${TEAM} and leaf_index = 0`,
    );
    expect(await replica.log.receipt(TEAM, BigInt(first!.id))).toBeDefined();
    expect((await checkLog(replica.db, TEAM, { signer })).fault).toMatchObject({ at: 'checkpoint 5' });
    expect((await checkLog(replica.db, TEAM)).fault).toBeUndefined();
    expect(late).toHaveLength(2);
    await replica.close();
    await signer.close();
  }, 60_000);

  it('refuses many at once without needing a second connection for any of them', async () => {
    const { signer, backup } = await restored(1);
    const replica = new Replica(backup, signer, { pool: 2 });
    const refused = Array.from({ length: 8 }, () =>
      replica.queue().catch((error: unknown) => (error as { code: string }).code),
    );
    expect(new Set(await Promise.all(refused))).toEqual(new Set(['log-read-only']));
    await replica.close();
    await signer.close();
  }, 60_000);

  it('does not get a second checkpoint of a size that was signed, even when it grows that far by other hands', async () => {
    const { signer, backup } = await restored(2);
    const db = new LogDatabase(backup);
    // As if an old vault without this check had queued and sequenced: leaves are there, the signer is asked for their root.
    const forgetful: CheckpointSigner = {
      ...forwarding(signer),
      state: (origin) => Promise.resolve({ ok: true, last: { size: 0, root: emptyRoot }, vkeys: [origin] }),
    };
    const other = new Replica(backup, forgetful);
    for (let i = 0; i < 2; i += 1) await other.queue();
    const refusals: Round[] = [];
    const replica = new Replica(backup, forgetful, { events: { round: (_team, round) => refusals.push(round) } });
    await replica.sequencer.start();
    await until(() => refusals.find(({ what }) => what === 'read-only'));
    expect((await checkLog(db, TEAM)).published).toBe(3);
    expect(await signer.state(ORIGIN)).toMatchObject({ ok: true, last: { size: 5 } });
    await replica.close();
    await other.close();
    await db.close();
    await signer.close();
  }, 60_000);

  it('goes on when the right database comes back', async () => {
    const { signer, before, backup } = await restored(1);
    const wrong = new Replica(backup, signer);
    await expect(wrong.queue()).rejects.toMatchObject({ code: 'log-read-only' });
    await wrong.close();
    const right = new Replica(before, signer);
    await right.sequencer.start();
    expect(await right.log.published(TEAM, await right.queue(), 30_000)).toBeDefined();
    expect((await checkLog(right.db, TEAM, { signer })).fault).toBeUndefined();
    await right.close();
    await signer.close();
  }, 60_000);

  it('goes on when a person decides, and the decision stands in the log', async () => {
    const { folder, signer, backup } = await restored(2);
    await signer.close();
    const offline = EmbeddedSigner.open(folder);
    const db = new LogDatabase(backup);
    const decision = { db, signer: offline, vaultName: VAULT, team: TEAM, by: BY, received };
    const shown = await adopt({ ...decision, decide: false });
    expect(shown).toMatchObject({ isNeeded: true, decided: false, old: { size: 5 }, new: { size: 3 } });
    expect(await offline.state(ORIGIN)).toMatchObject({ ok: true, last: { size: 5 } });
    expect(await adopt({ ...decision, decide: true })).toMatchObject({ decided: true });
    expect(await adopt({ ...decision, decide: true })).toMatchObject({ isNeeded: false, decided: false });

    const replica = new Replica(backup, offline);
    await replica.sequencer.start();
    const receipt = await replica.log.published(TEAM, await replica.queue(), 30_000);
    expect(receipt).toBeDefined();
    const [leaf] = await db.tenant(
      TEAM,
      (tx) =>
        tx<{ id: string }[]>`select leaf_id::text as id from nd7.log_leaf where team = ${TEAM} and leaf_index = 3`,
    );
    const decided = parseReceipt((await replica.log.receipt(TEAM, BigInt(leaf!.id)))!, { anyType: true });
    expect(decided?.statement).toMatchObject({ type: 'signer', by: BY, received, old: { size: 5 }, new: { size: 3 } });
    expect((await checkLog(db, TEAM, { signer: offline })).fault).toBeUndefined();
    await replica.close();
    await db.close();
    await offline.close();
  }, 60_000);
});

it('a signer that has lost its state makes the log read-only until a person decides', async () => {
  const { url, folder, signer } = await freshLog();
  const first = new Replica(url, signer);
  await first.sequencer.start();
  await first.log.published(TEAM, await first.queue(), 30_000);
  await first.close();
  await signer.close();
  rmSync(join(folder, 'vault.test_acme', 'state'));

  const without = EmbeddedSigner.open(folder);
  const replica = new Replica(url, without);
  await expect(replica.queue()).rejects.toMatchObject({ code: 'log-read-only' });
  expect((await replica.log.status(TEAM)).readOnly).toContain('signer adopt');
  expect(
    await adopt({ db: replica.db, signer: without, vaultName: VAULT, team: TEAM, by: BY, received, decide: true }),
  ).toMatchObject({ old: undefined, new: { size: 1 }, decided: true });
  await replica.sequencer.start();
  await until(async () => ((await checkLog(replica.db, TEAM)).published === 2 ? true : undefined));
  expect(await replica.log.published(TEAM, await replica.queue(), 30_000)).toBeDefined();
  expect((await checkLog(replica.db, TEAM, { signer: without })).fault).toBeUndefined();
  await replica.close();
  await without.close();
}, 60_000);

it('machines are answered 503 by a vault on a restored backup, and lose nothing', async () => {
  const world = await TestWorld.make();
  await world.team('acme');
  const first = await world.replica();
  const machine = await world.machine('acme');
  const session = new TestSession(machine.key, 'session-1').start().more(3);
  await first.close();
  await Promise.all([world.owner.end(), world.io.close()]);
  const backup = await copyDatabase(world.databaseUrl);

  const second = await world.replica();
  machine.url = second.url;
  expect(await machine.ship(session.id, session.cut(0))).toMatchObject({ status: 201 });
  await second.close();

  const third = await world.replica({ ND7_DATABASE_URL: backup });
  machine.url = third.url;
  const answer = await machine.ship(session.id, session.cut(0));
  expect(answer).toMatchObject({
    status: 503,
    json: {
      code: expect.stringMatching(/read-only$/) as string,
      detail: expect.stringMatching(
        /the signer has signed size \d+, root .*the database holds size \d+, root /,
      ) as string,
    },
  });
  expect(answer.headers.get('retry-after')).toBeDefined();
  expect(await machine.signed('GET', `/v1/sessions/${session.id}`)).toMatchObject({ status: 404 });
  await third.close();
  world.replicas.length = 0;
  await world.close();
}, 60_000);

function forwarding(signer: EmbeddedSigner): CheckpointSigner {
  return {
    provision: (origin) => signer.provision(origin),
    state: (origin) => signer.state(origin),
    sign: (request) => signer.sign(request),
    close: () => Promise.resolve(),
  };
}
