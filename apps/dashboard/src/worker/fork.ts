import { claimItem, hashAt, isFork } from '@nd7/segment';
import type { SignatureVerifier } from '@nd7/tlog';
import type { ForkClaim, ForkResult } from './protocol.js';

/** Whether two claims convict their machine by themselves: both signed by it, and one count with two hashes. */
export async function checkFork(
  [a, b]: readonly [ForkClaim, ForkClaim],
  verify: SignatureVerifier,
): Promise<ForkResult> {
  const [first = false, second = false] = await verify([claimItem(a), claimItem(b)]);
  const count = isFork(a, b);
  if (count === undefined) return { kind: 'fork', ok: false, signatures: [first, second] };
  return {
    kind: 'fork',
    ok: first && second,
    signatures: [first, second],
    count,
    hashes: [hashAt(a, count) ?? '', hashAt(b, count) ?? ''],
  };
}
