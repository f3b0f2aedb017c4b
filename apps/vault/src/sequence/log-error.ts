/**
 * - `log-read-only`: what the signer signed is not in the database (a restored backup, a standby that lagged) or the signer has lost its
 *   state; the message names both checkpoints. The HTTP answer is 503 `log-read-only`; nothing is written until a person has decided.
 * - `unknown-log`: the team has no log, or the log has another origin than this vault's name gives.
 * - `bad-statement`: no statement of docs/receipt.md, or one of another origin: a mistake of the program.
 * - `deposed`: another sequencer leads, or has added what this one was about to add. Nothing was written; never seen outside the sequencer.
 * - `corrupt`: what is stored is not what was written; the sequencer signs nothing.
 */
export type LogErrorCode = 'log-read-only' | 'unknown-log' | 'bad-statement' | 'deposed' | 'corrupt';

export class LogError extends Error {
  constructor(
    readonly code: LogErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'LogError';
  }
}

/** SQLSTATEs of the log's guards (db/migrations/0201_log.sql) and of unique constraints: somebody else was there first. */
export function isOvertaken(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return code === 'ND701' || code === 'ND702' || code === '23505';
}
