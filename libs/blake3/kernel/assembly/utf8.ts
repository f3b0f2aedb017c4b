// UTF-8 by RFC 3629, sixteen bytes at a time: J. Keiser, D. Lemire, "Validating UTF-8 In Less Than One Instruction Per
// Byte" (2021). Three look-ups over the nibbles of each byte and the one before it name what may be wrong; what all
// three name is wrong.

const TOO_SHORT: i8 = 1;
const TOO_LONG: i8 = 2;
const OVERLONG_3: i8 = 4;
const TOO_LARGE: i8 = 8;
const SURROGATE: i8 = 16;
const OVERLONG_2: i8 = 32;
/** Also: a four-byte form that is overlong. */
const TOO_LARGE_1000: i8 = 64;
const TWO_CONTINUATIONS: i8 = -128;
/** What the low nibble cannot rule out. */
const CARRY: i8 = TOO_SHORT | TOO_LONG | TWO_CONTINUATIONS;

/**
 * Whether the bytes from `start` up to `end` are UTF-8. The byte at `end` is a newline: it stands in the way of a
 * sequence that is cut off.
 */
export function isUtf8(start: usize, end: usize): bool {
  const firstHigh = i8x16(
    TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
    TWO_CONTINUATIONS, TWO_CONTINUATIONS, TWO_CONTINUATIONS, TWO_CONTINUATIONS,
    TOO_SHORT | OVERLONG_2, TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | TOO_LARGE_1000,
  );
  const firstLow = i8x16(
    CARRY | OVERLONG_3 | OVERLONG_2 | TOO_LARGE_1000, CARRY | OVERLONG_2, CARRY, CARRY,
    CARRY | TOO_LARGE,
    CARRY | TOO_LARGE | TOO_LARGE_1000, CARRY | TOO_LARGE | TOO_LARGE_1000, CARRY | TOO_LARGE | TOO_LARGE_1000,
    CARRY | TOO_LARGE | TOO_LARGE_1000, CARRY | TOO_LARGE | TOO_LARGE_1000, CARRY | TOO_LARGE | TOO_LARGE_1000,
    CARRY | TOO_LARGE | TOO_LARGE_1000, CARRY | TOO_LARGE | TOO_LARGE_1000,
    CARRY | TOO_LARGE | TOO_LARGE_1000 | SURROGATE, CARRY | TOO_LARGE | TOO_LARGE_1000, CARRY | TOO_LARGE | TOO_LARGE_1000,
  );
  const secondHigh = i8x16(
    TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
    TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS | OVERLONG_3 | TOO_LARGE_1000,
    TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS | OVERLONG_3 | TOO_LARGE,
    TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS | SURROGATE | TOO_LARGE, TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS | SURROGATE | TOO_LARGE,
    TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
  );
  const low = i8x16.splat(15);
  const ramp = i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  let before = i8x16.splat(0);
  let wrong = i8x16.splat(0);
  for (let p = start; p <= end; p += 16) {
    let now = v128.load(p);
    const left = <i32>(end - p);
    // Of the last vector only what is before the newline counts; the newline itself may as well be a zero.
    if (left < 16) now = v128.and(now, i8x16.lt_s(ramp, i8x16.splat(<i8>left)));
    if (i8x16.bitmask(v128.or(now, before)) == 0) continue;
    const back1 = v128.shuffle<u8>(before, now, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
    const back2 = v128.shuffle<u8>(before, now, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
    const back3 = v128.shuffle<u8>(before, now, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28);
    const named = v128.and(
      v128.and(i8x16.swizzle(firstHigh, i8x16.shr_u(back1, 4)), i8x16.swizzle(firstLow, v128.and(back1, low))),
      i8x16.swizzle(secondHigh, i8x16.shr_u(now, 4)),
    );
    // Two continuations in a row are right exactly where a lead of three or four bytes stands two or three before.
    const owed = v128.or(i8x16.sub_sat_u(back2, i8x16.splat(0x60)), i8x16.sub_sat_u(back3, i8x16.splat(0x70)));
    wrong = v128.or(wrong, v128.xor(named, v128.and(owed, i8x16.splat(-128))));
    before = now;
  }
  return !v128.any_true(wrong);
}
