/**
 * A text that is no payload: `bad-json` (not one JSON object by RFC 8259), `duplicate-key` (a key twice in an object that would stay in the log),
 * `bad-text` (a lone surrogate outside an escape: no UTF-8 can carry it). The caller records such bytes as one string instead.
 */
export class DetachError extends Error {
  override readonly name = 'DetachError';
  constructor(
    readonly code: 'bad-json' | 'duplicate-key' | 'bad-text',
    message: string,
  ) {
    super(message);
  }
}
