import type { Checkpoint } from '@nd7/tlog';

/** A tree's size and root: what a signer remembers of a log. */
export interface TreeHead {
  /** Leaves. */
  size: number;
  /** 32 bytes (RFC 6962). */
  root: Uint8Array;
}

/** What is to be signed, and the proof that it extends what this signer signed last (`state`). */
export interface SignRequest extends Checkpoint {
  /** Consistency from the signer's last size to `size` (RFC 6962 section 2.1.2); empty from 0 and for the same size again. */
  proof: readonly Uint8Array[];
}

/**
 * Why a signer does not sign:
 * - `behind`: it has signed a larger tree. A database that is asked for less than that was restored, or is a lagging standby.
 * - `fork`: it has signed another root for this very size.
 * - `not-consistent`: the proof does not lead from what it signed last to what is asked for.
 * - `no-key`, `no-state`: it has no key of this log, or has a key and has lost what it signed with it (`nd7-vault signer adopt`).
 * - `failed`: its state could not be made durable; it signs nothing for this log until it is started again.
 * - `bad-request`: no request of this protocol.
 */
export type Refusal = 'behind' | 'fork' | 'not-consistent' | 'no-key' | 'no-state' | 'failed' | 'bad-request';

export interface Refused {
  ok: false;
  refusal: Refusal;
  /** What it signed last, where it knows. */
  last?: TreeHead;
  /** One sentence for the operator. */
  message: string;
}

/** Signature lines for the note (without line feed), one for each key in force, the oldest key first. */
export type SignAnswer = { ok: true; lines: string[] } | Refused;

/** What it signed last and the verifier keys it signs with now, oldest first. */
export type SignerState = { ok: true; last: TreeHead; vkeys: string[] } | Refused;

/**
 * The vault's first witness: it signs tree heads, not bytes, and only such as extend the last one it signed, which it remembers in a
 * durable place of its own. So whatever happens to the database or to the processes that use it, one key never signs two histories.
 *
 * `EmbeddedSigner` holds key files; `SignerClient` asks a signer process. A key in an HSM or KMS is a third implementation: it needs the
 * same durable state and the same exclusive lock beside the key's handle, and nothing of the rest of the vault changes.
 */
export interface CheckpointSigner {
  /** Makes a log's key and its empty state where there is neither; the same answer when they are there. Never replaces either. */
  provision(origin: string): Promise<SignerState>;
  state(origin: string): Promise<SignerState>;
  sign(request: SignRequest): Promise<SignAnswer>;
  close(): Promise<void>;
}

export type SignerErrorCode = 'locked' | 'folder' | 'state-file' | 'unreachable' | 'not-adopted' | 'keys';

/** A signer that cannot be started, reached or changed; the message says how to mend it. */
export class SignerError extends Error {
  constructor(
    readonly code: SignerErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'SignerError';
  }
}

export function refuse(refusal: Refusal, message: string, last?: TreeHead): Refused {
  return { ok: false, refusal, message, ...(last === undefined ? {} : { last }) };
}

/** A tree head as messages name it, so that two can be compared by eye. */
export function describeHead(head: TreeHead): string {
  return `size ${String(head.size)}, root ${Buffer.from(head.root).toString('base64')}`;
}
