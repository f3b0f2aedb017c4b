import type { CloseClaim, CloseReason, EnrolClaim, OpenClaim, SignedClaim } from '@nd7/segment';

/** Common to all: the log the statement stands in, and the vault's clock when it was durably accepted (no order; order is the leaf's index). */
interface Stated {
  origin: string;
  received: string;
}

/** A segment was accepted. Counts above 2^53 - 1 are the nearest double (no log reaches them; the leaf's bytes are exact). */
export interface HeadStatement extends SignedClaim, Stated {
  type: 'head';
}

/** A machine became known to the team. */
export interface EnrolStatement extends EnrolClaim, Stated {
  type: 'enrol';
  signature: string;
}

/** A session began; its first key is pinned. */
export interface OpenStatement extends OpenClaim, Stated {
  type: 'open';
  signature: string;
}

/** A session is over. Without a signature exactly where the vault itself says so: `lost`, `forked`. */
export interface CloseStatement extends CloseClaim, Stated {
  type: 'close';
  signature?: string;
}

/** What a fork keeps of one of its two claims; origin, machine and session are the statement's. */
export type ForkClaim = Pick<SignedClaim, 'from' | 'to' | 'prev' | 'head' | 'signature'>;

/** One machine signed two hashes for one count of one session. It convicts by itself: both claims are whole, the stored one first. */
export interface ForkStatement extends Stated {
  type: 'fork';
  machine: string;
  session: string;
  count: number;
  claims: [ForkClaim, ForkClaim];
}

/** A machine's key is not to be believed from a time on. */
export interface RevokeStatement extends Stated {
  type: 'revoke';
  machine: string;
  since: string;
  by: string;
}

/** The log goes on under another key; both keys say so. */
export interface RotateStatement extends Stated {
  type: 'rotate';
  /** Verifier keys of type 1 whose name is the origin. */
  old: string;
  new: string;
  /** By the old key, by the new key, over `rotateMessage`. */
  signatures: [string, string];
}

/** A tree head, as the signer's state has it. `root` is base64, as in a checkpoint. */
export interface SignerState {
  size: number;
  root: string;
}

/** A person had the signer adopt a state that its own did not lead to. */
export interface SignerStatement extends Stated {
  type: 'signer';
  old: SignerState;
  new: SignerState;
  by: string;
}

/** What a leaf says. */
export type Statement =
  | HeadStatement
  | EnrolStatement
  | OpenStatement
  | CloseStatement
  | ForkStatement
  | RevokeStatement
  | RotateStatement
  | SignerStatement;

/** A leaf of a type that this version does not know: carried along unread. `first` is its first line. */
export interface UnknownStatement {
  type: 'unknown';
  first: string;
}

/** The vault's own reasons to close a session, which no machine signs. */
export function isVaultReason(reason: CloseReason): boolean {
  return reason === 'lost' || reason === 'forked';
}
