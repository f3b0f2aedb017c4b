// SBPL, the language of Seatbelt's profiles, as text: only what `compile.ts` needs of it. No path ever stands in it: paths are parameters.

/** A filter: an expression in its written form. */
export type Filter = string;

/** Parameters by what they stand for, named in the order in which they are first needed. */
export class Parameters {
  readonly #names = new Map<string, string>();

  /** `(param "P0")`. Throws RangeError for a value with a NUL in it: it would end there. */
  of(value: string): string {
    if (value.includes('\0')) throw new RangeError(`a path with a NUL in it: ${JSON.stringify(value)}`);
    const name = this.#names.get(value) ?? `P${this.#names.size}`;
    this.#names.set(value, name);
    return `(param "${name}")`;
  }

  get values(): Record<string, string> {
    return Object.fromEntries([...this.#names].map(([value, name]) => [name, value]));
  }
}

export const any = (filters: readonly Filter[]): Filter =>
  filters.length === 1 ? (filters[0] as Filter) : `(require-any ${filters.join(' ')})`;

export const all = (filters: readonly Filter[]): Filter =>
  filters.length === 1 ? (filters[0] as Filter) : `(require-all ${filters.join(' ')})`;

export const not = (filter: Filter): Filter => `(require-not ${filter})`;

/** `filter`, but for what any of `except` holds of. */
export const less = (filter: Filter, except: readonly Filter[]): Filter =>
  except.length === 0 ? filter : all([filter, not(any(except))]);

/** A string of the language. Only plain ASCII ever stands in one. */
export function quoted(text: string): string {
  if (!/^[\x20-\x7e]*$/.test(text)) throw new RangeError(`not a plain text: ${JSON.stringify(text)}`);
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

/** A regular expression that begins with a path, as the path is, and goes on as `rest` says. */
export const pathRegex = (parameter: string, rest: string): Filter =>
  `(regex (string-append "^" (regex-quote ${parameter}) ${quoted(rest)}))`;
