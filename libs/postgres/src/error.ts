/** A PostgreSQL that could not be had; the message says why and what to do. */
export class PostgresError extends Error {
  constructor(
    readonly code: 'initdb' | 'start' | 'none' | 'rung',
    message: string,
  ) {
    super(message);
    this.name = 'PostgresError';
  }
}
