// Strings of JSON, sixteen bytes at a time. The newline at the end of every line is a control character: no string can
// run past it, so that nothing here looks for the end.
import { ARENA, ESCAPES, HEX } from './layout';

const QUOTE: u32 = 0x22;
const BACKSLASH: u32 = 0x5c;

/** Fills the tables. Called once. */
export function prepareStrings(): void {
  memory.fill(HEX, 0xff, 256);
  for (let digit: usize = 0; digit < 10; digit++) store<u8>(HEX + 0x30 + digit, <u8>digit);
  for (let digit: usize = 0; digit < 6; digit++) {
    store<u8>(HEX + 0x41 + digit, <u8>(10 + digit));
    store<u8>(HEX + 0x61 + digit, <u8>(10 + digit));
  }
  store<u8>(ESCAPES + 0x22, 2); // "
  store<u8>(ESCAPES + 0x2f, 2); // /
  store<u8>(ESCAPES + 0x5c, 2); // \
  store<u8>(ESCAPES + 0x62, 2); // b
  store<u8>(ESCAPES + 0x66, 2); // f
  store<u8>(ESCAPES + 0x6e, 2); // n
  store<u8>(ESCAPES + 0x72, 2); // r
  store<u8>(ESCAPES + 0x74, 2); // t
  store<u8>(ESCAPES + 0x75, 6); // u and four digits
}

/** Which of the sixteen bytes at `p` are a quote, a backslash or a control character. */
@inline export function specials(p: usize): u32 {
  const x = v128.load(p);
  const control = i8x16.eq(i8x16.min_u(x, i8x16.splat(0x1f)), x);
  const quote = i8x16.eq(x, i8x16.splat(<i8>QUOTE));
  const backslash = i8x16.eq(x, i8x16.splat(<i8>BACKSLASH));
  return <u32>i8x16.bitmask(v128.or(v128.or(quote, backslash), control));
}

/**
 * From the byte after a string's opening quote to its closing quote; 0 where the string is not well formed.
 * Most strings end in the first sixteen bytes; what is longer goes by blocks.
 */
export function skipString(p: usize): usize {
  const found = specials(p);
  if (found == 0) return skipLong(p + 16);
  const at = p + ctz(found);
  const c = <u32>load<u8>(at);
  if (c == QUOTE) return at;
  return c == BACKSLASH ? skipLong(at) : 0;
}

/**
 * The same by blocks of 64 bytes, a bit for each: an escape costs no look at the bytes around it. After D. Lemire,
 * G. Langdale, "Parsing Gigabytes of JSON per Second" (2019).
 */
function skipLong(p: usize): usize {
  const quotes = i8x16.splat(<i8>QUOTE);
  const backslashes = i8x16.splat(<i8>BACKSLASH);
  const controls = i8x16.splat(0x1f);
  while (true) {
    const x0 = v128.load(p), x1 = v128.load(p, 16), x2 = v128.load(p, 32), x3 = v128.load(p, 48);
    const b0 = i8x16.eq(x0, backslashes), b1 = i8x16.eq(x1, backslashes);
    const b2 = i8x16.eq(x2, backslashes), b3 = i8x16.eq(x3, backslashes);
    const s0 = v128.or(i8x16.eq(x0, quotes), i8x16.eq(i8x16.min_u(x0, controls), x0));
    const s1 = v128.or(i8x16.eq(x1, quotes), i8x16.eq(i8x16.min_u(x1, controls), x1));
    const s2 = v128.or(i8x16.eq(x2, quotes), i8x16.eq(i8x16.min_u(x2, controls), x2));
    const s3 = v128.or(i8x16.eq(x3, quotes), i8x16.eq(i8x16.min_u(x3, controls), x3));
    const b = v128.or(v128.or(b0, b1), v128.or(b2, b3));
    let stops: u64 = bits(s0, s1, s2, s3);
    let next = p + 64;
    if (v128.any_true(b)) {
      // A backslash that is not itself escaped begins an escape; the byte after it is escaped. Runs of backslashes are
      // told apart by where they begin, at an even or an odd place: the carry of a subtraction runs through them.
      const slashes = bits(b0, b1, b2, b3);
      const series = (((slashes << 1) | ODD) - slashes) ^ ODD;
      let escaped = series ^ slashes;
      stops &= ~escaped | ~bits(i8x16.eq(x0, quotes), i8x16.eq(x1, quotes), i8x16.eq(x2, quotes), i8x16.eq(x3, quotes));
      // Those before the end.
      escaped &= stops ^ (stops - 1);
      while (escaped != 0) {
        if (escapeLength(p + <usize>ctz(escaped)) == 0) return 0;
        escaped &= escaped - 1;
      }
      // An escape over the block's end: what it escapes is no stop of the next block.
      if (stops == 0 && ((series & slashes) >> 63) != 0) {
        const length = escapeLength(next);
        if (length == 0) return 0;
        next += length - 1;
      }
    }
    if (stops != 0) {
      const at = p + <usize>ctz(stops);
      return load<u8>(at) == QUOTE ? at : 0;
    }
    p = next;
  }
}

/** Every second bit. */
const ODD: u64 = 0xaaaaaaaaaaaaaaaa;

/** One bit for each of 64 bytes. */
@inline function bits(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    <u64>(<u32>i8x16.bitmask(a) | (<u32>i8x16.bitmask(b) << 16)) |
    (<u64>(<u32>i8x16.bitmask(c) | (<u32>i8x16.bitmask(d) << 16)) << 32)
  );
}

/** How long the escape is whose backslash stands before `at`; 0 where it is none. */
@inline function escapeLength(at: usize): usize {
  const length = <usize>load<u8>(ESCAPES + load<u8>(at));
  if (length != 6) return length;
  return (digit(at + 1) | digit(at + 2) | digit(at + 3) | digit(at + 4)) > 15 ? 0 : 6;
}

@inline function digit(at: usize): u32 {
  return <u32>load<u8>(HEX + load<u8>(at));
}

@inline function codeUnit(at: usize): u32 {
  return (digit(at) << 12) | (digit(at + 1) << 8) | (digit(at + 2) << 4) | digit(at + 3);
}

/** Where the next unescaped key goes. */
let arena: usize = ARENA;

export function arenaEnd(): usize {
  return arena;
}

export function resetArena(to: usize): void {
  arena = to;
}

/**
 * Unescapes the inside of a well-formed string into the arena, and returns its length there. The form is canonical: two
 * strings have the same bytes exactly when they have the same UTF-16 code units. It is UTF-8, but that a surrogate
 * without its other half is written as three bytes like any code point; a pair of escapes is the one code point.
 */
export function unescape(p: usize, end: usize): u32 {
  const start = arena;
  let to = start;
  while (p < end) {
    const c = <u32>load<u8>(p);
    if (c != BACKSLASH) {
      store<u8>(to++, <u8>c);
      p++;
      continue;
    }
    const escape = <u32>load<u8>(p, 1);
    p += 2;
    if (escape != 0x75) {
      store<u8>(to++, <u8>plain(escape));
      continue;
    }
    let unit = codeUnit(p);
    p += 4;
    if ((unit & 0xfc00) == 0xd800 && p < end && load<u16>(p) == 0x755c) {
      const second = codeUnit(p + 2);
      if ((second & 0xfc00) == 0xdc00) {
        unit = 0x10000 + ((unit & 0x3ff) << 10) + (second & 0x3ff);
        p += 6;
      }
    }
    to = putCodePoint(to, unit);
  }
  arena = to;
  return <u32>(to - start);
}

function plain(escape: u32): u32 {
  if (escape == 0x62) return 0x08;
  if (escape == 0x66) return 0x0c;
  if (escape == 0x6e) return 0x0a;
  if (escape == 0x72) return 0x0d;
  if (escape == 0x74) return 0x09;
  return escape;
}

function putCodePoint(to: usize, c: u32): usize {
  if (c < 0x80) {
    store<u8>(to, <u8>c);
    return to + 1;
  }
  if (c < 0x800) {
    store<u8>(to, <u8>(0xc0 | (c >> 6)));
    store<u8>(to, <u8>(0x80 | (c & 63)), 1);
    return to + 2;
  }
  if (c < 0x10000) {
    store<u8>(to, <u8>(0xe0 | (c >> 12)));
    store<u8>(to, <u8>(0x80 | ((c >> 6) & 63)), 1);
    store<u8>(to, <u8>(0x80 | (c & 63)), 2);
    return to + 3;
  }
  store<u8>(to, <u8>(0xf0 | (c >> 18)));
  store<u8>(to, <u8>(0x80 | ((c >> 12) & 63)), 1);
  store<u8>(to, <u8>(0x80 | ((c >> 6) & 63)), 2);
  store<u8>(to, <u8>(0x80 | (c & 63)), 3);
  return to + 4;
}
