import { emptyRoot, nodeHash } from './merkle.js';

/** The hash of the complete subtree at (level, index): leaves [index·2^level, (index+1)·2^level). */
export type HashReader = (level: number, index: number) => Uint8Array | Promise<Uint8Array>;

/** A node of the tree that is complete, and therefore never changes again. */
export interface TreeNode {
  level: number;
  index: number;
  hash: Uint8Array;
}

/** Leaves [start, end), `start` a multiple of the largest power of two that fits. */
type Range = readonly [start: number, end: number];

/** The audit path of leaf `index` in the tree of `size` leaves, leaf to root (RFC 6962 section 2.1.1). */
export function inclusionProof(index: number, size: number, read: HashReader): Promise<Uint8Array[]> {
  check(
    Number.isSafeInteger(index) && index >= 0 && Number.isSafeInteger(size) && index < size,
    `no leaf ${String(index)} in a tree of ${String(size)}`,
  );
  const path: Range[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    const middle = start + split(end - start);
    if (index < middle) {
      path.push([middle, end]);
      end = middle;
    } else {
      path.push([start, middle]);
      start = middle;
    }
  }
  return rangeHashes(path.reverse(), read);
}

/** The proof that the tree of `size2` leaves extends that of `size1` (RFC 6962 section 2.1.2); empty from 0 and between equals. */
export function consistencyProof(size1: number, size2: number, read: HashReader): Promise<Uint8Array[]> {
  check(
    Number.isSafeInteger(size1) && size1 >= 0 && Number.isSafeInteger(size2) && size1 <= size2,
    `no tree of ${String(size1)} in one of ${String(size2)}`,
  );
  if (size1 === 0 || size1 === size2) return Promise.resolve([]);
  const path: Range[] = [];
  let [start, end] = [0, size2];
  // Whether the subtree in hand is the whole old tree, whose root the verifier has.
  let whole = true;
  while (end !== size1) {
    const middle = start + split(end - start);
    if (size1 <= middle) {
      path.push([middle, end]);
      end = middle;
    } else {
      path.push([start, middle]);
      start = middle;
      whole = false;
    }
  }
  if (!whole) path.push([start, end]);
  return rangeHashes(path.reverse(), read);
}

/** The root of the tree of the first `size` leaves. */
export async function treeRoot(size: number, read: HashReader): Promise<Uint8Array> {
  check(Number.isSafeInteger(size) && size >= 0, `not a tree size: ${String(size)}`);
  if (size === 0) return emptyRoot;
  const [root] = await rangeHashes([[0, size]], read);
  return root ?? emptyRoot;
}

/**
 * The complete nodes that appending `leafHashes` to a tree of `size` leaves adds, the leaves included, lower levels first. `read` is asked for
 * complete nodes of the old tree only.
 */
export async function newNodes(size: number, leafHashes: readonly Uint8Array[], read: HashReader): Promise<TreeNode[]> {
  check(
    Number.isSafeInteger(size) && size >= 0 && Number.isSafeInteger(size + leafHashes.length),
    `not a tree size: ${String(size)}`,
  );
  const nodes: TreeNode[] = [];
  let [level, first, hashes] = [0, size, [...leafHashes]];
  while (hashes.length > 0) {
    const start = first;
    hashes.forEach((hash, i) => nodes.push({ level, index: start + i, hash }));
    // An odd start completes a pair whose left half the old tree already has.
    const row = first % 2 === 1 ? [await read(level, first - 1), ...hashes] : hashes;
    hashes = [];
    for (let i = 0; i + 1 < row.length; i += 2) {
      const [left, right] = [row[i], row[i + 1]];
      if (left !== undefined && right !== undefined) hashes.push(nodeHash(left, right));
    }
    [level, first] = [level + 1, Math.floor(first / 2)];
  }
  return nodes;
}

/** The hash of each range. All nodes are asked for before the first is awaited, so that a reader can fetch them together. */
async function rangeHashes(ranges: readonly Range[], read: HashReader): Promise<Uint8Array[]> {
  const pending = ranges.map((range) =>
    Promise.all(completeNodes(range).map(({ level, index }) => read(level, index))),
  );
  return (await Promise.all(pending)).map((hashes) => hashes.reduceRight((right, left) => nodeHash(left, right)));
}

/** A range as complete subtrees from left to right: each smaller than the one before, so the hash folds from the right. */
function completeNodes([start, end]: Range): { level: number; index: number }[] {
  const nodes: { level: number; index: number }[] = [];
  for (let at = start; at < end;) {
    const width = largestPower(end - at);
    nodes.push({ level: Math.round(Math.log2(width)), index: at / width });
    at += width;
  }
  return nodes;
}

/** The largest power of two below `size` (RFC 6962's k), size > 1. */
function split(size: number): number {
  const power = largestPower(size);
  return power === size ? power / 2 : power;
}

function largestPower(size: number): number {
  let power = 1;
  while (power * 2 <= size) power *= 2;
  return power;
}

function check(ok: boolean, message: string): void {
  if (!ok) throw new RangeError(message);
}
