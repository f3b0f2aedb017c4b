// What the admin commands share: configuration, database, how they print and how they fail.
import { ConfigError, VaultConfig } from '../config.js';
import { Database } from '../db/database.js';

/** A command that cannot do what it was asked: printed without a stack trace. */
export class CommandError extends Error {
  constructor(
    readonly exit: 1 | 2,
    message: string,
  ) {
    super(message);
  }
}

/** Hands each command its surroundings; everything is made when it is asked for. */
export class AdminIo {
  private made: Database | undefined;
  private settings: VaultConfig | undefined;

  constructor(
    readonly env: NodeJS.ProcessEnv,
    readonly isJson: boolean,
    private readonly write: (text: string) => void = (text) => void process.stdout.write(text),
  ) {}

  /** Throws ConfigError: exit 2. */
  config(): VaultConfig {
    return (this.settings ??= new VaultConfig(this.env));
  }

  database(): Database {
    return (this.made ??= new Database(this.config()));
  }

  /** A line for people; silent under --json. */
  out(text: string): void {
    if (!this.isJson) this.write(`${text}\n`);
  }

  /** The result for programs; silent without --json. */
  json(value: unknown): void {
    if (this.isJson) this.write(`${JSON.stringify(value)}\n`);
  }

  async close(): Promise<void> {
    await this.made?.onApplicationShutdown();
  }
}

/** The line and exit code of whatever a command threw. */
export function failure(error: unknown): { exit: number; lines: readonly string[] } {
  if (error instanceof ConfigError) return { exit: 2, lines: error.lines };
  if (error instanceof CommandError) return { exit: error.exit, lines: [error.message] };
  const { code, message, lines } = error as { code?: unknown; message?: string; lines?: readonly string[] };
  if (code === 'guards' && lines !== undefined) return { exit: 1, lines };
  if (code === '42P01' || code === '3F000' || (code === '22023' && /nd7_app/.test(message ?? ''))) {
    return { exit: 1, lines: ['the database has no tables of this vault yet: run `nd7-vault migrate`'] };
  }
  if (code === '42501' && /set role/.test(message ?? '')) {
    return {
      exit: 1,
      lines: ['the login of ND7_DATABASE_URL may not act as nd7_app: `grant nd7_app to` it (infra/postgres/README.md)'],
    };
  }
  if (typeof code === 'string' && /^(ECONN|ENOENT|CONNECT)/.test(code)) {
    return {
      exit: 1,
      lines: [`the database cannot be reached (${code}): is it running, and is ND7_DATABASE_URL right?`],
    };
  }
  return { exit: 1, lines: [message ?? String(error)] };
}
