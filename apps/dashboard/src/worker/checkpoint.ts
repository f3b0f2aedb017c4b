import { fromHex, toHex } from '@nd7/entry';
import {
  type Checkpoint,
  consistencyProof,
  type HashReader,
  nodeHash,
  parseCheckpoint,
  parseNote,
  parseVkey,
  type SignatureVerifier,
  TILE_WIDTH,
  tilePath,
  tileWidth,
  verifyConsistency,
  verifyNote,
} from '@nd7/tlog';
import type { CheckpointResult, SeenTree } from './protocol.js';

/** Fetches a tile by its path under the log's prefix; undefined where it cannot be had. */
export type TileSource = (path: string) => Promise<Uint8Array | undefined>;

/**
 * Judges a checkpoint by a pinned key, and against the tree this browser saw before. Tiles are not trusted: the proof made from them
 * either leads from the old root to the new one or it does not.
 */
export async function checkCheckpoint(
  input: { note: string; vkey: string; before?: SeenTree | undefined },
  verify: SignatureVerifier,
  tiles: TileSource,
): Promise<CheckpointResult> {
  const fail = (
    reason: CheckpointResult['reason'] & string,
    more: Partial<CheckpointResult> = {},
  ): CheckpointResult => ({
    kind: 'checkpoint',
    ok: false,
    against: 'first',
    reason,
    ...(input.before && { before: input.before }),
    ...more,
  });
  const key = parseVkey(input.vkey);
  if (key === undefined) return fail('bad-key');
  const note = parseNote(input.note);
  const tree = note === undefined ? undefined : parseCheckpoint(note.text);
  if (note === undefined || tree === undefined || tree.exactSize !== undefined) return fail('bad-checkpoint');
  const seen = { origin: tree.origin, size: tree.size, root: toHex(tree.root) };
  if (tree.origin !== key.name) return fail('wrong-origin', seen);
  const { good, bad } = await verifyNote(note, [key], verify);
  if (good.length === 0 || bad.length > 0) return fail('bad-signature', seen);

  const { before } = input;
  if (before === undefined) return { kind: 'checkpoint', ok: true, against: 'first', ...seen };
  if (seen.size < before.size) return fail('shrank', seen);
  if (seen.size === before.size) {
    return seen.root === before.root
      ? { kind: 'checkpoint', ok: true, against: 'same', before, ...seen }
      : fail('split', seen);
  }
  const against = await extension(before, tree, tiles);
  return against === 'refuted'
    ? fail('not-consistent', seen)
    : { kind: 'checkpoint', ok: true, against, before, ...seen };
}

async function extension(
  before: SeenTree,
  tree: Checkpoint,
  tiles: TileSource,
): Promise<'extends' | 'unproved' | 'refuted'> {
  const oldRoot = fromHex(before.root);
  if (oldRoot === undefined) return 'unproved';
  try {
    const proof = await consistencyProof(before.size, tree.size, tileReader(tree.size, tiles));
    return verifyConsistency(before.size, oldRoot, tree.size, tree.root, proof) ? 'extends' : 'refuted';
  } catch (error) {
    if (error instanceof MissingTile) return 'unproved';
    throw error;
  }
}

class MissingTile extends Error {
  override name = 'MissingTile';
}

/** Complete subtree hashes out of tiles: a tile of level L holds those of heights 8·L, and what lies between is hashed from it. */
function tileReader(size: number, tiles: TileSource): HashReader {
  const held = new Map<string, Promise<Uint8Array | undefined>>();
  return async (level, index) => {
    const tileLevel = Math.floor(level / 8);
    const height = level - 8 * tileLevel;
    const first = index * 2 ** height;
    const n = Math.floor(first / TILE_WIDTH);
    const width = tileWidth(tileLevel, n, size);
    const path = tilePath(tileLevel, n, width);
    let pending = held.get(path);
    if (pending === undefined) held.set(path, (pending = tiles(path)));
    const tile = await pending;
    const start = (first - n * TILE_WIDTH) * 32;
    const end = start + 32 * 2 ** height;
    if (tile === undefined || tile.length < end) throw new MissingTile(path);
    let hashes: Uint8Array[] = [];
    for (let at = start; at < end; at += 32) hashes.push(tile.slice(at, at + 32));
    while (hashes.length > 1)
      hashes = hashes.flatMap((left, i) => (i % 2 === 0 ? [nodeHash(left, hashes[i + 1] ?? left)] : []));
    return hashes[0] ?? new Uint8Array(32);
  };
}
