/** What stands in the way of attaching to an agent; the message says where and how to mend it. */
export type HooksErrorCode = 'settings-broken' | 'settings-shape' | 'settings-unreadable' | 'settings-unwritable';

/** A user's mistake or a file that cannot be read or written; nothing was changed. */
export class HooksError extends Error {
  constructor(
    readonly code: HooksErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = 'HooksError';
  }
}
