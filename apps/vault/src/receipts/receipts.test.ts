import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatStatement, parseReceipt, checkReceiptItself, rotateMessage } from '@nd7/receipt';
import { claimMessage, type Claim } from '@nd7/segment';
import { generateKeyPair, verifySignatures } from '@nd7/signing';
import { python, REFERENCE, stopTestPostgres } from '@nd7/testing';
import { nobleVerifier, parseVkey, type VerifierKey } from '@nd7/tlog';
import {
  freshLog,
  Replica,
  ORIGIN,
  statementOf,
  TEAM,
  temporaryFolder,
  until,
  VAULT,
} from '../sequence/log.fixture.js';
import { checkLog } from '../sequence/check-log.js';
import { EmbeddedSigner } from '../signer/embedded.js';
import { retireKeys, rotateKey } from '../signer/rotate.js';

afterAll(stopTestPostgres);

const machine = generateKeyPair();
const hash = (n: number): string => n.toString(16).padStart(64, '0');

/** A segment's statement as ingest makes it. */
function headStatement(n: number): string {
  const claim: Claim = {
    origin: ORIGIN,
    machine: machine.publicKey,
    session: 'session-1',
    from: n,
    to: n + 1,
    prev: hash(n),
    head: hash(n + 1),
  };
  const signature = Buffer.from(machine.sign(claimMessage(claim))).toString('base64');
  return formatStatement({ type: 'head', ...claim, signature, received: '2026-11-29T19:41:00.123Z' });
}

describe('receipts of a thousand leaves', () => {
  let replica: Replica;
  let signer: EmbeddedSigner;
  let ids: bigint[];
  let receipts: string[];
  let key: VerifierKey;

  beforeAll(async () => {
    const made = await freshLog();
    signer = made.signer;
    replica = new Replica(made.url, signer);
    await replica.sequencer.start();
    ids = await replica.db.tenant(TEAM, async (tx) => {
      const queued: bigint[] = [];
      for (let i = 0; i < 1000; i += 1) queued.push(await replica.log.enqueue(tx, TEAM, headStatement(i)));
      return queued;
    });
    receipts = (await Promise.all(ids.map((id) => replica.log.published(TEAM, id, 60_000)))) as string[];
    key = parseVkey(await replica.log.vkey(TEAM))!;
  }, 90_000);

  afterAll(async () => {
    await replica.close();
    await signer.close();
  });

  it('all hold, each for its own leaf', async () => {
    const indexes = new Set<number>();
    for (const [i, text] of receipts.entries()) {
      const verdict = await checkReceiptItself(text, { keys: [key] }, verifySignatures);
      expect(verdict.ok && verdict.receipt.statement).toMatchObject({ type: 'head', from: i, head: hash(i + 1) });
      if (verdict.ok) indexes.add(verdict.receipt.index);
    }
    expect(indexes.size).toBe(1000);
  }, 60_000);

  it('hold by another implementation of Ed25519, and none under another key', async () => {
    expect(await checkReceiptItself(receipts[777]!, { keys: [key] }, nobleVerifier)).toMatchObject({ ok: true });
    const other = { ...key, key: Buffer.from(machine.publicKey, 'hex') };
    expect(await checkReceiptItself(receipts[777]!, { keys: [other] }, verifySignatures)).toMatchObject({
      ok: false,
      reason: 'bad-signature',
    });
  });

  (python() !== '' ? it : it.skip)(
    'hold by the reference implementation (needs python3)',
    () => {
      const folder = temporaryFolder();
      for (const [i, text] of receipts.entries())
        if (i % 97 === 0) writeFileSync(join(folder, `${String(i)}.tlog-proof`), text);
      const program = [
        'import json, pathlib, runpy, sys',
        'ref = runpy.run_path(sys.argv[1])',
        'read = lambda path: ref["check_receipt"](path.read_text(), [sys.argv[3]])["to"]',
        'print(json.dumps({path.stem: read(path) for path in pathlib.Path(sys.argv[2]).iterdir()}))',
      ].join('\n');
      const out = execFileSync(python(), ['-c', program, REFERENCE, folder, key.text], { encoding: 'utf8' });
      expect(JSON.parse(out)).toEqual(
        Object.fromEntries(receipts.flatMap((_, i) => (i % 97 === 0 ? [[String(i), String(i + 1)]] : []))),
      );
    },
    60_000,
  );

  it('are the same bytes after the log has grown, from another replica, and in whatever company they are asked for', async () => {
    for (let i = 0; i < 5; i += 1) await replica.log.published(TEAM, await replica.queue(), 30_000);
    const other = new Replica(replica.db.url, signer);
    for (const i of [0, 1, 255, 256, 511, 998, 999]) {
      expect(await other.log.receipt(TEAM, ids[i]!)).toBe(receipts[i]);
      expect(await replica.log.published(TEAM, ids[i]!, 0)).toBe(receipts[i]);
    }
    await other.close();
  }, 60_000);

  it('are given against the newest checkpoint too, where that is asked for', async () => {
    const newest = (await replica.log.latestReceipt(TEAM, ids[0]!))!;
    const [first, latest] = [parseReceipt(receipts[0]!)!, parseReceipt(newest)!];
    expect(latest.checkpoint.size).toBeGreaterThan(first.checkpoint.size);
    expect(latest.index).toBe(first.index);
    expect(await checkReceiptItself(newest, { keys: [key] }, verifySignatures)).toMatchObject({ ok: true });
  });

  it('are not given for what is not there, nor to another team', async () => {
    expect(await replica.log.receipt(TEAM, 999_999_999n)).toBeUndefined();
    expect(await replica.log.receipt('other', ids[0]!)).toBeUndefined();
    expect(await replica.log.published('other', ids[0]!, 0)).toBeUndefined();
  });
});

it('only statements of this log are queued', async () => {
  const { url, signer } = await freshLog();
  const replica = new Replica(url, signer);
  for (const bad of [
    '',
    'nd7/head/v1\n',
    'nd7/unknown/v1\norigin vault.test/acme\n',
    statementOf('vault.test/other'),
    `${statementOf()}\n`,
    headStatement(1).replace(' 1 2', ' 2 1'),
  ])
    await expect(replica.queue(bad)).rejects.toMatchObject({ code: 'bad-statement' });
  expect((await checkLog(replica.db, TEAM)).waiting).toBe(0);
  await replica.close();
  await signer.close();
}, 30_000);

it('a waiter gets undefined when the time is over, and the receipt the next time', async () => {
  const { url, signer } = await freshLog();
  const replica = new Replica(url, signer);
  const id = await replica.queue();
  expect(await replica.log.published(TEAM, id, 30)).toBeUndefined();
  await replica.sequencer.start();
  expect(await until(() => replica.log.published(TEAM, id, 1000))).toContain('c2sp.org/tlog-proof@v1');
  await replica.close();
  await signer.close();
}, 30_000);

it('over a rotation receipts carry both keys, then the new one; a rotate leaf signed by both says so', async () => {
  const { url, folder, signer } = await freshLog();
  const publish = async (by: EmbeddedSigner): Promise<string> => {
    const replica = new Replica(url, by);
    await replica.sequencer.start();
    const receipt = await replica.log.published(TEAM, await replica.queue(), 30_000);
    await replica.close();
    return receipt!;
  };
  const before = await publish(signer);
  const { db, log } = new Replica(url, signer);
  const keys = { db, signer, vaultName: VAULT, team: TEAM };
  const rotated = await rotateKey({ ...keys, received: '2026-11-29T20:00:00.000Z' });
  expect(await rotateKey({ ...keys, received: '2026-11-29T20:00:01.000Z' })).toEqual(rotated);
  expect(await log.vkeys(TEAM)).toEqual([rotated.old, rotated.new]);
  const during = await publish(signer);
  expect(await retireKeys(keys)).toEqual([rotated.old]);
  await signer.close();
  const later = EmbeddedSigner.open(folder);
  const after = await publish(later);

  const [old, fresh] = [parseVkey(rotated.old)!, parseVkey(rotated.new)!];
  const holds = async (text: string, ...trusted: VerifierKey[]): Promise<string> => {
    const verdict = await checkReceiptItself(text, { keys: trusted }, verifySignatures, { anyType: true });
    return verdict.ok ? 'holds' : verdict.reason;
  };
  expect(await Promise.all([before, during, after].map((text) => holds(text, old)))).toEqual([
    'holds',
    'holds',
    'bad-signature',
  ]);
  expect(await Promise.all([before, during, after].map((text) => holds(text, fresh)))).toEqual([
    'bad-signature',
    'holds',
    'holds',
  ]);
  expect(await Promise.all([before, during, after].map((text) => holds(text, old, fresh)))).toEqual([
    'holds',
    'holds',
    'holds',
  ]);

  const rows = await db.tenant(
    TEAM,
    (tx) =>
      tx<
        { statement: string; id: string }[]
      >`select statement, leaf_id::text as id from nd7.log_queue where team = ${TEAM} and statement like 'nd7/rotate/%'`,
  );
  expect(rows).toHaveLength(1);
  expect(await holds((await log.receipt(TEAM, BigInt(rows[0]!.id)))!, old)).toBe('holds');
  const { statement } = parseReceipt((await log.receipt(TEAM, BigInt(rows[0]!.id)))!, { anyType: true })!;
  if (statement.type !== 'rotate') throw new Error('no rotation');
  const message = rotateMessage(ORIGIN, rotated.old, rotated.new);
  expect(
    await verifySignatures(
      statement.signatures.map((signature, i) => ({
        key: [old, fresh][i]!.key,
        message,
        signature: Buffer.from(signature, 'base64'),
      })),
    ),
  ).toEqual([true, true]);
  expect((await checkLog(db, TEAM, { signer: later })).fault).toBeUndefined();
  await db.close();
  await later.close();
}, 60_000);
