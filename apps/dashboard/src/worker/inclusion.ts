import { toHex } from '@nd7/entry';
import { checkReceiptItself, indexOf, parseReceipt } from '@nd7/receipt';
import { leafHash, nodeHash, parseVkey, type SignatureVerifier, sizeOf } from '@nd7/tlog';
import type { InclusionResult, ProofStep } from './protocol.js';

const decoder = new TextDecoder();

/**
 * Recomputes a receipt's inclusion proof step by step, so that a reader can follow it. Whether the whole holds is decided by
 * `@nd7/receipt`, not by the steps shown.
 */
export async function followInclusion(
  input: { receipt: Uint8Array; vkeys: readonly string[] },
  verify: SignatureVerifier,
): Promise<InclusionResult> {
  const receipt = parseReceipt(input.receipt, { anyType: true });
  if (receipt === undefined) return { kind: 'inclusion', ok: false, reason: 'bad-receipt', steps: [], signed: false };
  const keys = input.vkeys.map(parseVkey).filter((key) => key !== undefined);
  const itself = await checkReceiptItself(input.receipt, { keys }, verify);
  const size = BigInt(sizeOf(receipt.checkpoint));
  const steps = walk(BigInt(indexOf(receipt)), size, leafHash(receipt.leaf), receipt.proof);
  const reached = steps.length === 0 ? toHex(leafHash(receipt.leaf)) : steps.at(-1)?.gives;
  return {
    kind: 'inclusion',
    ok: itself.ok && reached === toHex(receipt.checkpoint.root),
    ...(!itself.ok && { reason: itself.reason }),
    origin: receipt.checkpoint.origin,
    index: Number(receipt.index),
    size: Number(size),
    leaf: toHex(leafHash(receipt.leaf)),
    statement: decoder.decode(receipt.leaf),
    steps,
    root: toHex(receipt.checkpoint.root),
    signed: itself.ok || (itself.reason !== 'bad-receipt' && itself.reason !== 'bad-signature'),
  };
}

/** RFC 9162 section 2.1.3.2, with every hash on the way kept. */
function walk(index: bigint, size: bigint, leaf: Uint8Array, proof: readonly Uint8Array[]): ProofStep[] {
  const steps: ProofStep[] = [];
  let [fn, sn, hash] = [index, size - 1n, leaf];
  for (const sibling of proof) {
    const left = (fn & 1n) === 1n || fn === sn;
    hash = left ? nodeHash(sibling, hash) : nodeHash(hash, sibling);
    steps.push({ side: left ? 'left' : 'right', sibling: toHex(sibling), gives: toHex(hash) });
    if (left) while ((fn & 1n) === 0n && fn !== 0n) [fn, sn] = [fn >> 1n, sn >> 1n];
    [fn, sn] = [fn >> 1n, sn >> 1n];
  }
  return steps;
}
