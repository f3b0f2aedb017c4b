/** Sets of characters that tokens are made of, as tests on one UTF-16 unit. */
const upper = (c: number): boolean => c >= 65 && c <= 90;
const lower = (c: number): boolean => c >= 97 && c <= 122;
const digit = (c: number): boolean => c >= 48 && c <= 57;
const alnum = (c: number): boolean => upper(c) || lower(c) || digit(c);

const SETS = {
  alnum,
  upper: (c: number) => upper(c) || digit(c),
  hex: (c: number) => digit(c) || (c >= 97 && c <= 102) || (c >= 65 && c <= 70),
  word: (c: number) => alnum(c) || c === 95,
  base64url: (c: number) => alnum(c) || c === 95 || c === 45,
  dotted: (c: number) => alnum(c) || c === 95 || c === 45 || c === 46,
  base64: (c: number) => alnum(c) || c === 43 || c === 47 || c === 61,
  path: (c: number) => alnum(c) || c === 95 || c === 45 || c === 47,
  blank: (c: number) => c === 32 || c === 9,
  /** What a bare value is made of: up to a blank, a quote, a bracket or a list's separator. */
  bare: (c: number) => c > 32 && !BARE_ENDS.has(c),
  /** Up to a blank. */
  solid: (c: number) => c > 32,
  line: (c: number) => c !== 10 && c !== 13,
  notDouble: (c: number) => c !== 34 && c !== 10 && c !== 92,
  notSingle: (c: number) => c !== 39 && c !== 10 && c !== 92,
  notBacktick: (c: number) => c !== 96 && c !== 92,
} as const;

const BARE_ENDS = new Set([...'"\'`\\,;)}]<>&|'].map((c) => c.charCodeAt(0)));

export type CharSet = keyof typeof SETS;

/** Whether a character (NaN: none) can stand inside a word, so that a token cannot begin after it. */
export function isWord(c: number): boolean {
  return SETS.word(c);
}

export function isDigit(c: number): boolean {
  return digit(c);
}

/**
 * How far runs of characters go in one text. A run's end is the same from wherever in it one asks, and is remembered: any number of questions
 * that go forward costs one reading of the text per set.
 */
export class Runs {
  readonly #quotes = new Map<number, { asked: number; at: number }>();
  readonly #known = new Map<CharSet, { start: number; end: number }>();
  /** How many characters were looked at: what a test of linear cost counts. */
  steps = 0;

  constructor(readonly text: string) {}

  /** The end of the run of `set` that `at` stands in; `at` itself where it stands in none. */
  end(set: CharSet, at: number): number {
    const known = this.#known.get(set);
    if (known && at >= known.start && at < known.end) return known.end;
    const test = SETS[set];
    let end = at;
    while (end < this.text.length && test(this.text.charCodeAt(end))) end++;
    this.steps += end - at + 1;
    if (end > at) this.#known.set(set, { start: at, end });
    return end;
  }

  /** Where the next `quote` stands at or after `at`, -1 for none. */
  closing(quote: number, at: number): number {
    const known = this.#quotes.get(quote);
    if (known && at >= known.asked && (known.at < 0 || at <= known.at)) return known.at;
    const found = this.text.indexOf(String.fromCharCode(quote), at);
    this.steps += (found < 0 ? this.text.length : found) - at + 1;
    this.#quotes.set(quote, { asked: at, at: found });
    return found;
  }

  /** The start of the run that ends before `at`, looked for at most `most` characters back. */
  start(set: CharSet, at: number, most: number): number {
    const test = SETS[set];
    const limit = Math.max(0, at - most);
    let start = at;
    while (start > limit && test(this.text.charCodeAt(start - 1))) start--;
    this.steps += at - start + 1;
    return start;
  }
}
