import { stringValue } from '@nd7/entry';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * A cursor over the members of one JSON object, without building anything. It stands on text that has already passed the
 * strict check (valid JSON, no key twice), so the first member with a key is the only one, and a reader may stop there: that
 * is what lets the walk decide "no seal" from the first hundred bytes of most lines.
 */
export class Members {
  #at: number;
  #valueEnd = -1;
  /** The key's bytes, without its quotes. */
  keyStart = 0;
  keyEnd = 0;
  /** Where the value begins; a string's quotes are part of it. */
  valueStart = 0;

  /** `start` is the place of the opening brace, or before a comma behind which to begin; `end` is the end of the text that is safe to read. */
  constructor(
    readonly bytes: Uint8Array,
    start: number,
    readonly end: number,
  ) {
    this.#at = start + 1;
  }

  /** Just past the value. Found when asked for, so that a reader that stops at a large value does not pay for it. */
  get valueEnd(): number {
    if (this.#valueEnd < 0) this.#valueEnd = skipValue(this.bytes, this.valueStart, this.end);
    return this.#valueEnd;
  }

  /** Goes to the next member; false after the last. */
  next(): boolean {
    const { bytes, end } = this;
    if (this.valueStart > 0) this.#at = this.valueEnd;
    let i = skipSpace(bytes, this.#at, end);
    if (bytes[i] === 0x2c /* , */) i = skipSpace(bytes, i + 1, end);
    if (i >= end || bytes[i] !== QUOTE) return false;
    this.keyStart = i + 1;
    i = skipString(bytes, i, end);
    this.keyEnd = i - 1;
    i = skipSpace(bytes, i, end) + 1; // the colon
    this.valueStart = skipSpace(bytes, i, end);
    this.#valueEnd = -1;
    return true;
  }

  /** Whether the key is `text` (ASCII without quote and backslash), compared after unescaping. */
  keyIs(text: string): boolean {
    return spells(this.bytes, this.keyStart, this.keyEnd, text);
  }

  /** Whether the value is the string `text`, compared after unescaping. */
  valueIs(text: string): boolean {
    return this.isString() && spells(this.bytes, this.valueStart + 1, this.valueEnd - 1, text);
  }

  isString(): boolean {
    return this.bytes[this.valueStart] === QUOTE;
  }

  isObject(): boolean {
    return this.bytes[this.valueStart] === 0x7b;
  }

  /** The value where it is a string of at most `limit` UTF-16 units, after unescaping; else null. */
  text(limit: number): string | null {
    const raw = this.valueEnd - this.valueStart - 2;
    if (!this.isString() || raw > 6 * limit) return null; // no unit is spelled with more than six bytes
    const text = stringValue(this.bytes, { type: 'string', start: this.valueStart, end: this.valueEnd });
    return text === undefined || text.length > limit ? null : text;
  }
}

/** Whether the string between two quotes says `text`. */
function spells(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  const raw = end - start;
  if (raw === text.length) {
    for (let i = 0; i < raw; i++) {
      if (bytes[start + i] !== text.charCodeAt(i)) return false; // an escape makes the raw text longer than what it says
    }
    return true;
  }
  if (raw < text.length || raw > 6 * text.length) return false;
  if (bytes.subarray(start, end).indexOf(BACKSLASH) < 0) return false;
  return stringValue(bytes, { type: 'string', start: start - 1, end: end + 1 }) === text;
}

function skipSpace(bytes: Uint8Array, from: number, end: number): number {
  let i = from;
  while (i < end && (bytes[i] as number) <= 0x20) i++;
  return i;
}

/** From an opening quote to just past the closing one. */
function skipString(bytes: Uint8Array, from: number, end: number): number {
  let i = from + 1;
  while (i < end) {
    const c = bytes[i];
    if (c === QUOTE) return i + 1;
    i += c === BACKSLASH ? 2 : 1;
  }
  return end;
}

function skipValue(bytes: Uint8Array, from: number, end: number): number {
  const first = bytes[from];
  if (first === QUOTE) return skipString(bytes, from, end);
  let i = from;
  if (first !== 0x7b && first !== 0x5b) {
    while (i < end) {
      const c = bytes[i] as number;
      if (c === 0x2c || c === 0x7d || c === 0x5d || c <= 0x20) break;
      i++;
    }
    return i;
  }
  let depth = 0;
  while (i < end) {
    const c = bytes[i] as number;
    if (c === QUOTE) {
      i = skipString(bytes, i, end);
      continue;
    }
    i++;
    if (c === 0x7b || c === 0x5b) depth++;
    else if ((c === 0x7d || c === 0x5d) && --depth === 0) break;
  }
  return i;
}
