import { createHash } from 'node:crypto';
import { stopTestPostgres } from '@nd7/testing';
import { decodeEntryBundle, parseNote, parseCheckpoint, parseTilePath, tilePath } from '@nd7/tlog';
import { freshLog, LogDatabase, Replica, statementOf, TEAM } from '../sequence/log.fixture.js';
import type { EmbeddedSigner } from '../signer/embedded.js';
import { TileReader } from './tile-reader.js';

afterAll(stopTestPostgres);

const sha256 = (...parts: Uint8Array[]): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
/** RFC 6962 section 2.1 as it is written, by recursion over the leaves: nothing of the program's own. */
function mth(leaves: readonly Uint8Array[]): Buffer {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return sha256(Uint8Array.of(0), leaves[0]!);
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return sha256(Uint8Array.of(1), mth(leaves.slice(0, split)), mth(leaves.slice(split)));
}

describe('tiles of a log of 700 leaves', () => {
  const SIZE = 700; // two full tiles and one of 188 at level 0, one of 2 at level 1
  let db: LogDatabase;
  let signer: EmbeddedSigner;
  let tiles: TileReader;
  let statements: Buffer[];

  beforeAll(async () => {
    const made = await freshLog();
    signer = made.signer;
    const replica = new Replica(made.url, signer);
    await replica.sequencer.start();
    const texts = Array.from({ length: SIZE }, () => statementOf());
    const ids = await replica.db.tenant(TEAM, async (tx) => {
      const queued: bigint[] = [];
      for (const text of texts) queued.push(await replica.log.enqueue(tx, TEAM, text));
      return queued;
    });
    for (const id of ids) await replica.log.published(TEAM, id, 60_000);
    // Queued together, sequenced in the order of their ids.
    statements = texts.map((text) => Buffer.from(text));
    await replica.close();
    db = new LogDatabase(made.url);
    tiles = new TileReader(db);
  }, 90_000);

  afterAll(async () => {
    await db.close();
    await signer.close();
  });

  const read = (path: string): Promise<Uint8Array | undefined> => tiles.tile(TEAM, parseTilePath(path)!);

  it('the checkpoint has the root that the leaves give', async () => {
    const note = parseNote((await tiles.checkpoint(TEAM))!)!;
    expect(parseCheckpoint(note.text)).toMatchObject({ size: SIZE, root: new Uint8Array(mth(statements)) });
  });

  it('level 0 holds the hashes of the leaves, level 1 those of 256 leaves each', async () => {
    const leaves = statements.map((leaf) => mth([leaf]));
    for (const [n, width] of [
      [0, 256],
      [1, 256],
      [2, 188],
      [2, 1],
      [0, 7],
    ] as const)
      expect(Buffer.from((await read(tilePath(0, n, width)))!)).toEqual(
        Buffer.concat(leaves.slice(n * 256, n * 256 + width)),
      );
    expect(Buffer.from((await read('tile/1/000.p/2'))!)).toEqual(
      Buffer.concat([mth(statements.slice(0, 256)), mth(statements.slice(256, 512))]),
    );
  });

  it('bundles hold the leaves themselves', async () => {
    for (const [path, from, to] of [
      ['tile/entries/000', 0, 256],
      ['tile/entries/002.p/188', 512, 700],
    ] as const)
      expect(decodeEntryBundle((await read(path))!)!.map((leaf) => Buffer.from(leaf))).toEqual(
        statements.slice(from, to),
      );
  });

  it.each([
    'tile/0/002',
    'tile/0/002.p/189',
    'tile/0/003.p/1',
    'tile/1/000',
    'tile/1/000.p/3',
    'tile/2/000.p/1',
    'tile/63/000.p/1',
    'tile/entries/002',
    'tile/entries/x001/000',
    'tile/0/x999/x999/x999/x999/999.p/255',
  ])('there is no %s', async (path) => {
    expect(await read(path)).toBeUndefined();
  });

  it('another team has none of it', async () => {
    expect(await tiles.checkpoint('other')).toBeUndefined();
    expect(await tiles.tile('other', { level: 0, n: 0, width: 256 })).toBeUndefined();
  });
});
