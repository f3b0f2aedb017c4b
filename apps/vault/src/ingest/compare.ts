// An overlapping body against what is stored: entry by entry, by hash.
import type { LineKernel } from '@nd7/blake3';
import { MAX_CHUNK } from '@nd7/blake3';
import { toHex } from '@nd7/entry';

/** BLAKE3 of each line that is ended by "\n", 64 hex each. */
export function lineHashes(bytes: Uint8Array, kernel: LineKernel): string[] {
  const hashes: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const scan = kernel.scan(bytes.subarray(at, at + MAX_CHUNK));
    for (let i = 0; i < scan.count; i += 1) hashes.push(toHex(scan.hashes.subarray(i * 32, i * 32 + 32)));
    if (scan.consumed === 0) break; // no line ends in this chunk: it is no entry of any log
    at += scan.consumed;
  }
  return hashes;
}

/** Hashes of a session after counts that the vault holds: `at(n)` is the hash after n entries. */
export type HashAt = (count: number) => string | undefined;

/**
 * The counts at which a claim over an overlapping body can be held against what is stored: those the body reaches, and the claim's own end where
 * the vault holds it. A claim may name any `to`: what is looked at is bounded by the body, not by what the claim says.
 */
export function comparedCounts(claim: { from: number; to: number }, lines: number, held: number): number[] {
  const last = Math.min(claim.to, claim.from + lines, held);
  const counts = Array.from({ length: Math.max(last - claim.from + 1, 0) }, (_, i) => claim.from + i);
  return claim.to > last && claim.to <= held ? [...counts, claim.to] : counts;
}

/**
 * The lowest count at which a claim and its body disagree with what is stored, undefined when they agree wherever both speak. Both may be wrong
 * about each other: what the claim says of its two ends counts as much as what the body holds.
 */
export function firstDisagreement(
  claim: { from: number; to: number; prev: string; head: string },
  body: readonly string[],
  counts: readonly number[],
  stored: HashAt,
): number | undefined {
  return counts.find((count) => {
    const held = stored(count);
    if (held === undefined) return false;
    const said = [
      count === claim.from ? claim.prev : body[count - claim.from - 1],
      count === claim.to ? claim.head : undefined,
    ];
    return said.some((hash) => hash !== undefined && hash !== held);
  });
}
