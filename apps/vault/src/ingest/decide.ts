// What a claim means against what the vault holds, from the claims alone: no body is looked at here.
import { isFork, type SignedClaim } from '@nd7/segment';

/** The head of a session as the vault holds it. */
export interface HeldSession {
  entries: number;
  head: string;
  /** Session key in force after the last entry. */
  key: string;
  firstKey: string;
  forked: boolean;
}

/** A stored segment: its claim, where its receipt is, and the key that was in force before it (null before entry 0). */
export interface StoredSegment {
  claim: SignedClaim;
  leafId: bigint;
  keyBefore: string | null;
}

export type Decision =
  /** It goes on where the vault is. */
  | { is: 'next' }
  /** The vault holds exactly this. */
  | { is: 'same'; stored: StoredSegment }
  /** Two signed hashes for one count. */
  | { is: 'fork'; count: number; stored: StoredSegment }
  /** The session forked before, and this is nothing that is stored. */
  | { is: 'after-fork' }
  | { is: 'gap' }
  /** It begins where the vault already is; whether it agrees only the body can say. */
  | { is: 'overlap' };

/**
 * @param held the session, undefined when there is none
 * @param touching every stored segment whose claim speaks of a count that this claim speaks of
 */
export function decide(
  claim: SignedClaim,
  held: HeldSession | undefined,
  touching: readonly StoredSegment[],
): Decision {
  const stored = touching.find(
    ({ claim: its }) =>
      its.from === claim.from && its.to === claim.to && its.prev === claim.prev && its.head === claim.head,
  );
  if (stored !== undefined) return { is: 'same', stored };
  const forks = touching.flatMap((one) => {
    const count = isFork(one.claim, claim);
    return count === undefined ? [] : [{ is: 'fork' as const, count, stored: one }];
  });
  const [fork] = forks.sort((a, b) => a.count - b.count);
  if (fork !== undefined) return fork;
  if (held?.forked === true) return { is: 'after-fork' };
  const entries = held?.entries ?? 0;
  if (claim.from > entries) return { is: 'gap' };
  return claim.from === entries ? { is: 'next' } : { is: 'overlap' };
}
