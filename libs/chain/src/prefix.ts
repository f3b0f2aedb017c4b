import { fromHex } from '@nd7/entry';
import type { LinkBefore } from '@nd7/blake3';
import type { LogReason } from './link.js';

/** The link a line carries: its number, in the digits it is written with, and the hash of the line before it. */
export interface Link {
  seq: string;
  prev: string;
}

const HEX = Uint8Array.from('0123456789abcdef', (c) => c.charCodeAt(0));
const ascii = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const VERSION = ascii('{"v":');
const ONE = ascii('{"v":1,');
const SEQ = ascii('{"v":1,"seq":');
const PREV = ascii(',"prev":"');
const CLOSE = ascii('",');
/** Everything but the digits of the number. */
const FIXED = SEQ.length + PREV.length + 64 + CLOSE.length;
const ZERO = 0x30;

/**
 * Compares the first three members of line after line with what they must be, byte by byte and without making a string. Only
 * a line that differs is read (`read`), to say why.
 */
export class LinkReader implements LinkBefore {
  /** The hash after the last line taken, which the next must carry. */
  readonly hash = new Uint8Array(32);
  /** The digits of the next number, right-aligned. */
  readonly digits = new Uint8Array(20).fill(ZERO);
  #width = 0;

  /** Without `next` nothing is expected yet, and nothing matches. */
  constructor(next?: Link) {
    if (next) this.expect(next);
  }

  /** The number the next line must have. */
  get seq(): string {
    return String.fromCharCode(...this.digits.subarray(this.digits.length - this.#width));
  }

  /** How many digits the next number has; 0 while none is expected. */
  get width(): number {
    return this.#width;
  }

  /** How many bytes of the line that matches (or was read and is expected) are its version, number and link: the comma after them is the last. */
  get length(): number {
    return FIXED + this.#width;
  }

  expect(next: Link): void {
    this.#width = next.seq.length;
    this.digits.fill(ZERO);
    this.digits.set(ascii(next.seq), this.digits.length - this.#width);
    this.hash.set(fromHex(next.prev) as Uint8Array);
  }

  /** Whether the line begins with the version, the number and the link expected. */
  matches(bytes: Uint8Array, start: number, end: number): boolean {
    const width = this.#width;
    if (width === 0 || end - start < FIXED + width || !has(bytes, start, SEQ)) return false;
    let at = start + SEQ.length;
    const first = this.digits.length - width;
    for (let i = 0; i < width; i++) if (bytes[at + i] !== this.digits[first + i]) return false;
    at += width;
    if (!has(bytes, at, PREV)) return false;
    at += PREV.length;
    const { hash } = this;
    for (let i = 0; i < 32; i++, at += 2) {
      const byte = hash[i] as number;
      if (bytes[at] !== HEX[byte >> 4] || bytes[at + 1] !== HEX[byte & 15]) return false;
    }
    return has(bytes, at, CLOSE);
  }

  /** The line is good: its hash stands at `offset`, the number goes up by one. */
  advance(hashes: Uint8Array, offset: number): void {
    const { hash } = this;
    for (let i = 0; i < 32; i++) hash[i] = hashes[offset + i] as number;
    const digits = this.digits;
    let i = digits.length - 1;
    while (digits[i] === ZERO + 9) digits[i--] = ZERO;
    digits[i] = (digits[i] as number) + 1;
    this.#width = Math.max(this.#width, digits.length - i);
  }

  /** So many lines are good: the hash of the last of them stands at `offset`. */
  skip(count: number, hashes: Uint8Array, offset: number): void {
    this.hash.set(hashes.subarray(offset, offset + 32));
    const { digits } = this;
    let i = digits.length;
    for (let carry = count; carry > 0; carry = Math.floor(carry / 10)) {
      carry += (digits[--i] as number) - ZERO;
      digits[i] = ZERO + (carry % 10);
    }
    this.#width = Math.max(this.#width, digits.length - i);
  }

  /** Falls back to a hash; the number is then no longer of interest. */
  rewind(hash: Uint8Array): void {
    this.hash.set(hash);
  }

  /** The link of a line that may have any; or why its first members are not of the form. */
  read(bytes: Uint8Array, start: number, end: number): Link | LogReason {
    const line = bytes.subarray(start, Math.min(end, start + FIXED + 17));
    if (has(line, 0, VERSION) && !has(line, 0, ONE)) return 'unsupported-version';
    if (!has(line, 0, SEQ)) return 'bad-prefix';
    let at = SEQ.length;
    while (isDigit(line[at])) at++;
    const width = at - SEQ.length;
    if (width < 1 || width > 16 || (width > 1 && line[SEQ.length] === ZERO)) return 'bad-prefix';
    const seq = String.fromCharCode(...line.subarray(SEQ.length, at));
    if (!has(line, at, PREV)) return 'bad-prefix';
    at += PREV.length;
    const prev = String.fromCharCode(...line.subarray(at, at + 64));
    if (prev.length !== 64 || fromHex(prev) === undefined || !has(line, at + 64, CLOSE)) return 'bad-prefix';
    return { seq, prev };
  }
}

function has(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}
