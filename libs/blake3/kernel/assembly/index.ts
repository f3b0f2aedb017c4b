// The kernel: lines of a chunk, their hashes and their faults (libs/blake3/README.md).
import { hashLine, flushHashes } from './hash';
import { checkJson } from './json';
import * as layout from './layout';
import * as links from './links';
import { prepareStrings } from './strings';
import { isUtf8 } from './utf8';

export const INPUT: usize = layout.INPUT;
export const ENDS: usize = layout.ENDS;
export const FAULTS: usize = layout.FAULTS;
export const HASHES: usize = layout.HASHES;
export const SEED: usize = layout.SEED;
export const DIGITS: usize = links.DIGITS;
export const BEFORE: usize = links.BEFORE;
export const HEADS: usize = layout.HEADS;
export const TALLY: usize = layout.TALLY;
export const END: usize = layout.END;
export { run, lastHead } from './links';

const TOO_LONG: u8 = 1;
const NOT_UTF8: u8 = 2;
const NEWLINE: u8 = 0x0a;

prepareStrings();

/** The chunk's first byte that no complete line has. */
let rest: usize = INPUT;

/** Whether complete lines were left, because there are more than MAX_LINES. */
let more: bool = false;

export function hasMore(): bool {
  return more;
}

/**
 * Reads the chunk of `length` bytes at INPUT and puts per line its end to ENDS, its hash to HASHES, its fault to
 * FAULTS. Returns how many lines there are, MAX_LINES at most.
 */
export function scan(length: u32, check: bool): u32 {
  const end = INPUT + length;
  // Stops the search for the last line's end, and vectors that are read past it.
  store<u8>(end, NEWLINE);
  const newline = i8x16.splat(NEWLINE);
  let start = INPUT;
  let count: u32 = 0;
  more = false;
  while (true) {
    // To the end of the line, and whether it has a byte beyond ASCII.
    let beyond: u32 = 0;
    let p = start;
    while (true) {
      const x = v128.load(p);
      const found = <u32>i8x16.bitmask(i8x16.eq(x, newline));
      const high = <u32>i8x16.bitmask(x);
      if (found != 0) {
        beyond |= high & (found ^ (found - 1));
        p += ctz(found);
        break;
      }
      beyond |= high;
      p += 16;
    }
    if (p == end) break;
    if (count == layout.MAX_LINES) {
      more = true;
      break;
    }
    let fault: u8 = 0;
    const size = <u32>(p - start);
    if (size > layout.MAX_LINE) fault = TOO_LONG;
    else if (beyond != 0 && !isUtf8(start, p)) fault = NOT_UTF8;
    else if (check) fault = <u8>checkJson(start, p);
    hashLine(count, start, size);
    store<u8>(FAULTS + count, fault);
    store<u32>(ENDS + (<usize>count << 2), <u32>(p - INPUT) + 1);
    count++;
    start = p + 1;
  }
  flushHashes();
  return count;
}

/** Hashes the `length` bytes at INPUT as they are, newlines and all, to the first place of HASHES. */
export function hash(length: u32): void {
  hashLine(0, INPUT, length);
  flushHashes();
}
