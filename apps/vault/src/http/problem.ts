import { PROBLEMS, type ProblemCode, type ProblemExtra } from '@nd7/vault-api';

/** A refusal: thrown anywhere in the service, answered as `application/problem+json` by ProblemFilter. `detail` says how to mend it. */
export class Problem extends Error {
  readonly status: number;
  constructor(
    readonly code: ProblemCode,
    readonly detail: string,
    readonly extra: ProblemExtra = {},
    /** Headers besides, such as retry-after. */
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(`${code}: ${detail}`);
    this.status = PROBLEMS[code].status;
  }
}

/** 503: try again. Seconds are a hint; clients add jitter. */
export function busy(detail: string, seconds = 1): Problem {
  return new Problem('busy', detail, {}, { 'retry-after': String(seconds) });
}
