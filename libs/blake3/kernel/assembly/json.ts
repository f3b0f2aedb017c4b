// One JSON object by RFC 8259, without recursion. The newline at the end of the line fits nowhere in JSON as it is read
// here, so that nothing looks for the end: white space is space, tab and carriage return.
import { KINDS, MAX_DEPTH } from './layout';
import { addKey, closeKeys, openKeys } from './keys';
import { skipString, specials } from './strings';

export const BAD_JSON: u32 = 3;
export const DUPLICATE_KEY: u32 = 4;

const QUOTE: u32 = 0x22;
const COMMA: u32 = 0x2c;
const COLON: u32 = 0x3a;
const OPEN_BRACE: u32 = 0x7b;
const CLOSE_BRACE: u32 = 0x7d;
const OPEN_BRACKET: u32 = 0x5b;
const CLOSE_BRACKET: u32 = 0x5d;

/** Brackets that are open. */
let depth: u32 = 0;
/** A key stood twice; from then on only the grammar is looked at. */
let doubled: bool = false;

/** What is wrong with the line from `start` to the newline at `end`; 0 where nothing is. */
export function checkJson(start: usize, end: usize): u32 {
  depth = 0;
  doubled = false;
  const good = read(start, end);
  while (depth > 0) pop();
  return good ? (doubled ? DUPLICATE_KEY : 0) : BAD_JSON;
}

function read(p: usize, end: usize): bool {
  p = skipSpace(p);
  if (load<u8>(p) != OPEN_BRACE) return false;
  /** Whether the innermost open bracket is a brace. */
  let object = false;
  while (true) {
    // At a value.
    const c = <u32>load<u8>(p);
    if (c == QUOTE) {
      p = skipString(p + 1);
      if (p == 0) return false;
      p++;
    } else if (c == OPEN_BRACE) {
      if (depth == MAX_DEPTH) return false;
      push(1);
      openKeys();
      p = skipSpace(p + 1);
      if (load<u8>(p) != CLOSE_BRACE) {
        object = true;
        p = readKey(p);
        if (p == 0) return false;
        continue;
      }
      pop();
      p++;
    } else if (c == OPEN_BRACKET) {
      if (depth == MAX_DEPTH) return false;
      push(0);
      p = skipSpace(p + 1);
      if (load<u8>(p) != CLOSE_BRACKET) {
        object = false;
        continue;
      }
      pop();
      p++;
    } else {
      p = skipScalar(p, c);
      if (p == 0) return false;
    }
    // After a value.
    while (true) {
      p = skipSpace(p);
      if (depth == 0) return p == end;
      const d = <u32>load<u8>(p);
      if (d == COMMA) {
        p = skipSpace(p + 1);
        if (object) {
          p = readKey(p);
          if (p == 0) return false;
        }
        break;
      }
      if (d != (object ? CLOSE_BRACE : CLOSE_BRACKET)) return false;
      p++;
      pop();
      object = load<u8>(KINDS + depth) != 0;
    }
  }
}

// The kind of the bracket at depth n stands at KINDS + n; nothing is ever asked of depth 0.

@inline function push(kind: u8): void {
  store<u8>(KINDS + ++depth, kind);
}

@inline function pop(): void {
  if (load<u8>(KINDS + depth--) != 0) closeKeys();
}

@inline function skipSpace(p: usize): usize {
  while (true) {
    const c = <u32>load<u8>(p);
    if (c > 0x20 || (c != 0x20 && c != 0x09 && c != 0x0d)) return p;
    p++;
  }
}

/** From a key's quote to the value after its colon; 0 where it is not well formed. */
function readKey(p: usize): usize {
  if (load<u8>(p) != QUOTE) return 0;
  const start = ++p;
  const found = specials(p);
  const first = p + ctz(found);
  let escaped = false;
  // Most keys are shorter than a vector and have no escape.
  if (found != 0 && load<u8>(first) == QUOTE) p = first;
  else {
    p = skipString(p);
    if (p == 0) return 0;
    for (let q = start; q < p && !escaped; q++) escaped = load<u8>(q) == 0x5c;
  }
  if (!doubled) doubled = !addKey(start, p, escaped);
  p = skipSpace(p + 1);
  if (load<u8>(p) != COLON) return 0;
  return skipSpace(p + 1);
}

/** Past a number or a literal that begins with `c`; 0 where there is none. */
function skipScalar(p: usize, c: u32): usize {
  if (c == 0x74) return load<u32>(p) == 0x65757274 ? p + 4 : 0; // true
  if (c == 0x66) return load<u32>(p, 1) == 0x65736c61 ? p + 5 : 0; // false
  if (c == 0x6e) return load<u32>(p) == 0x6c6c756e ? p + 4 : 0; // null
  if (c == 0x2d) c = <u32>load<u8>(++p);
  if (c == 0x30) p++;
  else {
    p = skipDigits(p);
    if (p == 0) return 0;
  }
  if (load<u8>(p) == 0x2e) {
    p = skipDigits(p + 1);
    if (p == 0) return 0;
  }
  if ((load<u8>(p) | 0x20) == 0x65) {
    const sign = <u32>load<u8>(++p);
    if (sign == 0x2b || sign == 0x2d) p++;
    p = skipDigits(p);
  }
  return p;
}

/** Past one digit or more; 0 where there is none. */
@inline function skipDigits(p: usize): usize {
  const start = p;
  while (<u32>load<u8>(p) - 0x30 < 10) p++;
  return p > start ? p : 0;
}
