export type PolicyErrorCode =
  | 'bad-json'
  | 'bad-policy'
  | 'bad-path'
  | 'bad-pattern'
  | 'bad-host'
  | 'bad-ports'
  | 'unknown-name'
  | 'cycle'
  | 'bad-place'
  | 'bad-team';

/** What is wrong with a policy, where (file and line, once known), and how to mend it. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';
  constructor(
    readonly code: PolicyErrorCode,
    /** What is wrong, without the place. */
    readonly what: string,
    /** What to do about it: a sentence. */
    readonly mend: string,
    readonly file: string | null = null,
    readonly line: number | null = null,
  ) {
    super(`${placed(file, line)}${what}. ${mend}`);
  }

  /** The same, said of a place. */
  at(file: string | null, line: number | null): PolicyError {
    return this.file === null && this.line === null
      ? new PolicyError(this.code, this.what, this.mend, file, line)
      : this;
  }
}

function placed(file: string | null, line: number | null): string {
  if (file === null) return '';
  return line === null ? `${file}: ` : `${file}:${line}: `;
}
