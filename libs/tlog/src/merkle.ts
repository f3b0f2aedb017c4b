import { sha256 } from '@noble/hashes/sha2.js';
import { concat, equal } from './bytes.js';
import type { Count } from './checkpoint.js';

/** The root of the tree without leaves: SHA-256 of nothing (RFC 6962 section 2.1). */
export const emptyRoot: Uint8Array = sha256(new Uint8Array(0));

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** SHA-256(0x00 ‖ leaf). */
export function leafHash(leaf: Uint8Array): Uint8Array {
  return sha256(concat(LEAF, leaf));
}

/** SHA-256(0x01 ‖ left ‖ right). */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256(concat(NODE, left, right));
}

/**
 * Whether the leaf with this hash stands at `index` of the tree of `size` leaves with this root (RFC 9162 section 2.1.3.2). The proof runs
 * from the leaf's sibling to the root's child. Anything may be handed in: what cannot be a proof is none.
 */
export function verifyInclusion(
  leaf: Uint8Array,
  index: Count,
  size: Count,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  const [place, total] = [toCount(index), toCount(size)];
  if (place === undefined || total === undefined || place >= total || !areHashes([leaf, root, ...proof])) return false;
  let [fn, sn, hash] = [place, total - 1n, leaf];
  for (const sibling of proof) {
    if (sn === 0n) return false;
    if (isOdd(fn) || fn === sn) {
      hash = nodeHash(sibling, hash);
      while (!isOdd(fn) && fn !== 0n) [fn, sn] = [fn >> 1n, sn >> 1n];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [fn, sn] = [fn >> 1n, sn >> 1n];
  }
  return sn === 0n && equal(hash, root);
}

/**
 * Whether the tree of `size2` leaves with `root2` begins with the tree of `size1` leaves with `root1` (RFC 9162 section 2.1.4.2). From
 * the empty tree, and between equal sizes, the proof is empty.
 */
export function verifyConsistency(
  size1: Count,
  root1: Uint8Array,
  size2: Count,
  root2: Uint8Array,
  proof: readonly Uint8Array[],
): boolean {
  const [first, second] = [toCount(size1), toCount(size2)];
  if (first === undefined || second === undefined || first > second || !areHashes([root1, root2, ...proof]))
    return false;
  if (first === second) return proof.length === 0 && equal(root1, root2) && (first !== 0n || equal(root1, emptyRoot));
  if (first === 0n) return proof.length === 0 && equal(root1, emptyRoot);
  // Where the old tree is one complete subtree, its root is the first hash of the path and not repeated in the proof.
  const [start, ...path] = (first & (first - 1n)) === 0n ? [root1, ...proof] : proof;
  if (start === undefined) return false;
  let [fn, sn] = [first - 1n, second - 1n];
  while (isOdd(fn)) [fn, sn] = [fn >> 1n, sn >> 1n];
  let [fr, sr] = [start, start];
  for (const sibling of path) {
    if (sn === 0n) return false;
    if (isOdd(fn) || fn === sn) {
      fr = nodeHash(sibling, fr);
      sr = nodeHash(sibling, sr);
      while (!isOdd(fn) && fn !== 0n) [fn, sn] = [fn >> 1n, sn >> 1n];
    } else {
      sr = nodeHash(sr, sibling);
    }
    [fn, sn] = [fn >> 1n, sn >> 1n];
  }
  return sn === 0n && equal(fr, root1) && equal(sr, root2);
}

function toCount(value: Count): bigint | undefined {
  if (typeof value === 'bigint') return value >= 0n && value < 1n << 64n ? value : undefined;
  return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined;
}

function isOdd(value: bigint): boolean {
  return (value & 1n) === 1n;
}

function areHashes(values: readonly Uint8Array[]): boolean {
  return values.every((value) => value.length === 32);
}
