/**
 * Why the journal could not do what it was asked. The message says what, where and how to mend it.
 *
 * - `read-only`, `wrong-owner`, `permissions`, `not-a-folder`, `unreadable`: the home folder does not serve
 * - `session-id`, `session-case`: the id may not become a folder name
 * - `machine-key-lost`: this machine is enrolled and its key is gone
 * - `locked`: another process held the session for longer than the caller wanted to wait; nothing was written
 * - `no-space`: the disk is full; nothing was written, the journal goes on
 * - `io`: the disk failed; this journal has stopped for good
 * - `changed`: somebody cut or replaced the log while it was open; this journal has stopped, opening it again recovers
 * - `stopped`: the journal stopped earlier (the cause says why) or was closed
 * - `key-lost`: the session's signing key is gone; this journal has stopped, opening the session again continues it under a new id
 * - `no-session`: there is no log of this id
 */
export type JournalCode =
  | 'read-only'
  | 'wrong-owner'
  | 'permissions'
  | 'not-a-folder'
  | 'unreadable'
  | 'session-id'
  | 'session-case'
  | 'machine-key-lost'
  | 'locked'
  | 'no-space'
  | 'io'
  | 'changed'
  | 'stopped'
  | 'key-lost'
  | 'no-session';

export class JournalError extends Error {
  override readonly name = 'JournalError';
  constructor(
    readonly code: JournalCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** The errno name of a Node file system error (`ENOSPC`), undefined for anything else. */
export function errnoOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}

/** What a failed system call on `path` means to the caller. */
export function diskError(error: unknown, path: string): unknown {
  const errno = errnoOf(error);
  if (errno === undefined || error instanceof JournalError) return error;
  if (errno === 'ENOSPC' || errno === 'EDQUOT')
    return new JournalError('no-space', `no space left for ${path} (${errno}): make room on that disk`, {
      cause: error,
    });
  return new JournalError(
    'io',
    `${path} could not be written: ${error instanceof Error ? error.message : String(error)}`,
    { cause: error },
  );
}
