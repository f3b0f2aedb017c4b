// Byte by byte: the chain of a segment, its members, its seals, and what of it may stand in clear.
import type { LineKernel } from '@nd7/blake3';
import { genesis, walk, type WalkResult } from '@nd7/chain';
import type { SignedClaim } from '@nd7/segment';
import { verifySignatures } from '@nd7/signing';
import { Problem } from '../http/problem.js';
import { EntryIndex, type ClearIndex } from './entry-index.js';

/** Entries in one segment. */
export const MAX_ENTRIES = 4096;

export interface Examined {
  /** Key in force after the segment. */
  keyAfter: string;
  /** k(0), of a segment that begins the session. */
  firstKey: string | undefined;
  /** Every session key it names: the first one and those of its seals. */
  sessionKeys: string[];
  index: ClearIndex;
}

/**
 * Verifies a segment's bytes against its claim and the state before it. Throws a Problem 422 with the first entry that does not check out, in the
 * order of the format: the chain, then members, then seals.
 *
 * @param keyBefore the session key in force before the first entry; null exactly when the segment begins the session
 */
export async function examine(
  plain: Uint8Array,
  claim: SignedClaim,
  keyBefore: string | null,
  kernel: LineKernel,
): Promise<Examined> {
  const index = new EntryIndex();
  const result = await walk(plain, {
    session: claim.session,
    kernel,
    verify: verifySignatures,
    ...(keyBefore === null ? {} : { start: { entries: claim.from, head: claim.prev, key: keyBefore } }),
    head: { entries: claim.to, hash: claim.head },
    onEntry: (seq, line) => index.add(seq, line),
  });
  checkChain(result, claim);
  const [bad] = index.problems;
  if (bad !== undefined) {
    throw new Problem('bad-member', `entry ${String(bad.seq)}: \`${bad.member}\` is missing or not of its form`, {
      bad_entry: bad.seq,
      reason: bad.member,
    });
  }
  checkSeals(result, claim);
  return {
    keyAfter: result.seals.key as string,
    firstKey: keyBefore === null ? result.seals.firstKey : undefined,
    sessionKeys: [
      ...new Set([
        ...(keyBefore === null && result.seals.firstKey !== undefined ? [result.seals.firstKey] : []),
        ...index.nextKeys,
      ]),
    ],
    index: index.finish(),
  };
}

function checkChain(result: WalkResult, claim: SignedClaim): void {
  const { bad_entry: bad, reason } = result;
  if (bad !== undefined && reason !== undefined && bad < claim.to) {
    throw new Problem(
      reason === 'receipt-mismatch' ? 'head-mismatch' : reason,
      `entry ${String(bad)} does not check out: ${reason}`,
      { bad_entry: bad, reason },
    );
  }
  if (result.lines > claim.to - claim.from) {
    throw new Problem(
      'bad-claim',
      `the claim counts ${String(claim.to - claim.from)} entries, the body has ${String(result.lines)}`,
    );
  }
  if (bad !== undefined && reason !== undefined && reason !== 'receipt-mismatch') {
    throw new Problem(reason, `the body does not end with entry ${String(claim.to - 1)}: ${reason}`, {
      bad_entry: bad,
      reason,
    });
  }
  // The walk of a first segment starts from the genesis link whatever the claim says of it.
  if (claim.from === 0 && claim.prev !== genesis(claim.session)) {
    throw new Problem('bad-claim', 'the claim’s prev is not the genesis link of the session');
  }
}

function checkSeals(result: WalkResult, claim: SignedClaim): void {
  if (result.seals.key === null)
    throw new Problem('unsealed', 'entry 0 has no key: this vault takes sealed sessions only', { bad_entry: 0 });
  if (result.seals.sealedTo !== claim.to - 1) {
    throw new Problem(
      'unsealed',
      `entry ${String(claim.to - 1)} is the last and no seal: seal each cut before it is shipped`,
      { bad_entry: claim.to - 1 },
    );
  }
  if (claim.from === 0 && result.entry0?.machine !== claim.machine) {
    throw new Problem('bad-machine', 'entry 0 names another machine than the one that ships it', { bad_entry: 0 });
  }
}
