import { Injectable, type LoggerService } from '@nestjs/common';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
const RANK: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 };

/**
 * Structured log lines on stderr, one JSON object each: what happened, to which ids, how long it took. Never content: no body, no claim, no token,
 * no query string, no name of a person. Also Nest's own logger, whose lines are for debugging.
 */
@Injectable()
export class Log implements LoggerService {
  constructor(
    private readonly level: LogLevel,
    private readonly write: (line: string) => void = (line) => void process.stderr.write(line),
  ) {}

  info(message: string, fields: Record<string, unknown> = {}): void {
    this.line('info', message, fields);
  }

  warn(message: string, fields?: unknown): void {
    this.line('warn', message, isFields(fields) ? fields : {});
  }

  error(message: string, fields?: unknown): void {
    this.line('error', message, isFields(fields) ? fields : {});
  }

  /** Nest's. */
  log(message: unknown): void {
    this.line('debug', String(message), {});
  }

  /** Nest's. */
  debug(message: unknown): void {
    this.line('debug', String(message), {});
  }

  private line(level: LogLevel, message: string, fields: Record<string, unknown>): void {
    if (RANK[level] < RANK[this.level]) return;
    const { error, ...rest } = fields;
    this.write(
      `${JSON.stringify({ time: new Date().toISOString(), level, message, ...rest, ...(error === undefined ? {} : { error: described(error) }) })}\n`,
    );
  }
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** An error's own words and where it came from. The driver puts parameters on its errors: they are content and stay out. */
function described(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, constraint_name: constraint } = error as { code?: unknown; constraint_name?: unknown };
  return {
    name: error.name,
    message: error.message,
    code,
    constraint,
    stack: error.stack
      ?.split('\n')
      .slice(1, 8)
      .map((line) => line.trim()),
  };
}
