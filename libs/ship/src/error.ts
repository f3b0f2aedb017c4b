import type { ProblemCode } from '@nd7/vault-api';

/**
 * Why shipping cannot go on until a person has looked. Nothing is lost or forgotten by any of them: log, outbox and receipts stay as they are.
 *
 * `bad-token`, `bad-name`, `wrong-vault`, `insecure-url`, `enrolled`, `not-enrolled`: enrolment. `wrong-key`: the machine's key is not the one it was enrolled with. `bad-receipt`: the vault gave something that is no receipt for what was
 * sent. `fork`, `disagrees`: the vault holds another history of this session. `log-behind`: it holds more than this log has. `log-broken`: the log's own chain
 * does not hold. `refused`: the vault takes neither this machine nor these entries. `bad-answer`: it does not speak the protocol. `bad-policy`: the team's policy is not what the
 * pinned key signed, or older than one that was seen. `two-policies`: the pinned key has signed two policies of one version. `io`: the disk.
 */
export type ShipCode =
  | 'bad-token'
  | 'bad-name'
  | 'wrong-vault'
  | 'insecure-url'
  | 'enrolled'
  | 'not-enrolled'
  | 'wrong-key'
  | 'bad-receipt'
  | 'fork'
  | 'disagrees'
  | 'log-behind'
  | 'log-broken'
  | 'refused'
  | 'bad-answer'
  | 'bad-policy'
  | 'two-policies'
  | 'io';

/** A failure that retrying does not mend. The message says what, where and how to mend it. */
export class ShipError extends Error {
  override readonly name = 'ShipError';

  constructor(
    readonly code: ShipCode,
    message: string,
    /** The session and the first entry in question, where there is one. */
    readonly at: { session?: string; entry?: number; reason?: string } = {},
    options?: { cause: unknown },
  ) {
    super(message, options);
  }
}

/** What the vault answered: a code of its own table, or that it could not be reached, or that the answer was none of the protocol. */
export type VaultCode = ProblemCode | 'unreachable' | 'bad-answer';

/** A request that the vault refused, or that did not reach it. */
export class VaultError extends Error {
  override readonly name = 'VaultError';
  readonly code: VaultCode;
  /** HTTP status; 0 where there was no answer. */
  readonly status: number;
  /** The vault's present count of the session, with every 409 of ingest. */
  readonly next?: number;
  readonly bad_entry?: number;
  readonly reason?: string;
  /** Milliseconds to wait, from Retry-After. */
  readonly retryAfter?: number;

  constructor(
    code: VaultCode,
    status: number,
    message: string,
    extra: { next?: number; bad_entry?: number; reason?: string; retryAfter?: number } = {},
    options?: { cause: unknown },
  ) {
    super(message, options);
    this.code = code;
    this.status = status;
    Object.assign(this, extra);
  }

  /** Whether the same request may do better later: nothing was decided about it. */
  get isTransient(): boolean {
    return (
      this.code === 'unreachable' ||
      this.code === 'replayed' ||
      // A machine that has just woken up may have its clock in a minute.
      this.code === 'stale-request' ||
      this.code === 'log-read-only' ||
      this.status === 429 ||
      this.status >= 500
    );
  }
}

/** Known by its name, so that an error from a second copy of this module (another realm, another installed version) is not taken for an unknown one. */
export function isVaultError(error: unknown): error is VaultError {
  return error instanceof VaultError || nameOf(error) === 'VaultError';
}

/** As isVaultError. */
export function isShipError(error: unknown): error is ShipError {
  return error instanceof ShipError || nameOf(error) === 'ShipError';
}

function nameOf(error: unknown): unknown {
  return (error as { name?: unknown } | null | undefined)?.name;
}
