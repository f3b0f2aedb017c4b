// Runs of lines that follow one another: each carries the number and the hash that it must, and what stands between its link and its data
// is one of the heads that the host has learned. The host looks at all other lines itself.
import { FAULTS, ENDS, HASHES, HEAD_MASK, HEAD_RAW, HEAD_SIZE, HEADS, INPUT, LINK, MAX_HEADS, TALLY } from './layout';

/** Digits of the next number, right-aligned. */
export const DIGITS: usize = LINK;
export const DIGIT_PLACES: usize = 20;
/** The hash that the first line of a run must carry. */
export const BEFORE: usize = LINK + 32;

/** `{"v":1,"seq":` and three bytes that are not compared. */
const FRONT: usize = 13;
/** `,"prev":"` */
const MIDDLE: usize = 9;
/** A number of more digits is the host's to look at. */
const MAX_WIDTH: u32 = 16;
const HOUR_TENS: u8 = 0x32;
const HOUR_ONES: u8 = 0x33;

/** Which head the last line of the last run has. */
let last: u32 = 0;

export function lastHead(): u32 {
  return last;
}

/**
 * How many of the lines `from` to `count` of the last scan, from the first on, have no fault, carry the next number (`width` digits, at
 * DIGITS) and the hash of the line before them (of the first: at BEFORE), and have a head that is known. How many have which is put to TALLY.
 */
export function run(from: u32, count: u32, width: u32): u32 {
  memory.fill(TALLY, 0, 4 * MAX_HEADS);
  if (width == 0) return 0;
  let before = BEFORE;
  let line = from;
  while (line < count && load<u8>(FAULTS + line) == 0 && width <= MAX_WIDTH) {
    const start = INPUT + (line == 0 ? 0 : <usize>load<u32>(ENDS + ((<usize>line - 1) << 2)));
    if (!isLinked(start, width, before)) break;
    const head = headAt(start + FRONT + width + MIDDLE + 65);
    if (head == MAX_HEADS) break;
    last = head;
    const tally = TALLY + (<usize>head << 2);
    store<u32>(tally, load<u32>(tally) + 1);
    before = HASHES + 32 * <usize>line;
    width = max(width, countUp());
    line++;
  }
  return line - from;
}

/** Whether a line begins with the version, the number and the link. Nothing that is compared is a newline, so what matches lies in the line. */
@inline function isLinked(start: usize, width: u32, before: usize): bool {
  const front = i8x16(0x7b, 0x22, 0x76, 0x22, 0x3a, 0x31, 0x2c, 0x22, 0x73, 0x65, 0x71, 0x22, 0x3a, 0, 0, 0);
  const middle = i8x16(0x2c, 0x22, 0x70, 0x72, 0x65, 0x76, 0x22, 0x3a, 0x22, 0, 0, 0, 0, 0, 0, 0);
  if ((<u32>i8x16.bitmask(i8x16.eq(v128.load(start), front)) & 0x1fff) != 0x1fff) return false;
  const digits = (<u32>1 << width) - 1;
  const number = v128.load(DIGITS + DIGIT_PLACES - width);
  let at = start + FRONT;
  if ((<u32>i8x16.bitmask(i8x16.eq(v128.load(at), number)) & digits) != digits) return false;
  at += width;
  if ((<u32>i8x16.bitmask(i8x16.eq(v128.load(at), middle)) & 0x1ff) != 0x1ff) return false;
  at += MIDDLE;
  const same = v128.and(isHex(at, v128.load(before)), isHex(at + 32, v128.load(before, 16)));
  return i8x16.all_true(same) && load<u16>(at, 64) == 0x2c22; // ",
}

/** Ones where the 32 characters at `at` are the sixteen bytes in lower-case hex, a vector for each half put together. */
@inline function isHex(at: usize, bytes: v128): v128 {
  const digits = i8x16(0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66);
  const high = i8x16.swizzle(digits, i8x16.shr_u(bytes, 4));
  const low = i8x16.swizzle(digits, v128.and(bytes, i8x16.splat(15)));
  const first = v128.shuffle<u8>(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const second = v128.shuffle<u8>(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return v128.and(i8x16.eq(v128.load(at), first), i8x16.eq(v128.load(at, 16), second));
}

/** Counts DIGITS up by one; how many digits that took. */
@inline function countUp(): u32 {
  let at = DIGITS + DIGIT_PLACES - 1;
  while (load<u8>(at) == 0x39) store<u8>(at--, 0x30);
  store<u8>(at, load<u8>(at) + 1);
  return <u32>(DIGITS + DIGIT_PLACES - at);
}

/** The head that stands at `at`, the one of the line before first; MAX_HEADS where none is known. */
@inline function headAt(at: usize): u32 {
  if (isHead(at, last)) return last;
  for (let head: u32 = 0; head < MAX_HEADS; head++) if (isHead(at, head)) return head;
  return MAX_HEADS;
}

/** Whether a head stands at `at`, but for another time of the same day. One that is not in use has no length and stands nowhere. */
function isHead(at: usize, head: u32): bool {
  const slot = HEADS + HEAD_SIZE * <usize>head;
  const length = <usize>load<u32>(slot);
  if (length == 0) return false;
  // From the end: heads differ by source and kind, which stand behind the time.
  for (let i = (length - 1) & ~15; ; i -= 16) {
    const other = v128.and(v128.xor(v128.load(at + i), v128.load(slot + HEAD_RAW + i)), v128.load(slot + HEAD_MASK + i));
    if (v128.any_true(other)) return false;
    if (i == 0) break;
  }
  return isClock(at + <usize>load<u32>(slot, 4));
}

/** Whether a time of day stands at `at`: `00:00:00.000Z"` up to `23:59:59.999Z"`. */
@inline function isClock(at: usize): bool {
  const least = i8x16(0x30, 0x30, 0x3a, 0x30, 0x30, 0x3a, 0x30, 0x30, 0x2e, 0x30, 0x30, 0x30, 0x5a, 0x22, 0, 0);
  const most = i8x16(0x32, 0x39, 0x3a, 0x35, 0x39, 0x3a, 0x35, 0x39, 0x2e, 0x39, 0x39, 0x39, 0x5a, 0x22, -1, -1);
  const clock = v128.load(at);
  const good = v128.and(i8x16.ge_u(clock, least), i8x16.le_u(clock, most));
  return i8x16.all_true(good) && !(load<u8>(at) == HOUR_TENS && load<u8>(at, 1) > HOUR_ONES);
}
