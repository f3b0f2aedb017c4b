/** A caller's mistake. What a log contains never throws: that is a verdict. */
export class ChainError extends Error {
  override readonly name = 'ChainError';
  constructor(
    readonly code: 'bad-session' | 'bad-start' | 'finished' | 'overlapping-push',
    message: string,
  ) {
    super(message);
  }
}
