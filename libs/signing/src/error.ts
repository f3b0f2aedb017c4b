/** What can be wrong with a key file. `exists`: there is one already; `io`: the disk or the folder refused. */
export type SigningCode = 'missing' | 'unreadable' | 'permissions' | 'format' | 'exists' | 'io';

/** A key file that cannot be used. The message says which file, what is wrong and how to mend it. */
export class SigningError extends Error {
  override readonly name = 'SigningError';

  constructor(
    readonly code: SigningCode,
    message: string,
    options?: { cause: unknown },
  ) {
    super(message, options);
  }
}
