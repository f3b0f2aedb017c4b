// The keys of the objects that are open, to find one that stands twice. Keys lie on a stack: those of the innermost
// object on top. A small object is searched through; a large one has its keys in a hash set with a random key, so that
// nobody can choose keys that fall together. Keys leave the set in the opposite order of their coming, which keeps
// linear probing right without marks for what is gone.
import { FRAMES, KEYS, MARKS, SEED, SLOTS, TABLE } from './layout';
import { arenaEnd, resetArena, unescape } from './strings';

/** Up to so many keys an object is searched through. */
const FEW: u32 = 16;

/** Keys on the stack. */
let count: u32 = 0;
/** First key of the innermost object. */
let base: u32 = 0;
/** Frames on the stack of those below it. */
let frame: usize = FRAMES;

/** An object begins. */
export function openKeys(): void {
  store<u32>(frame, base);
  store<u32>(frame, <u32>arenaEnd(), 4);
  frame += 8;
  base = count;
}

/** The innermost object ends. */
export function closeKeys(): void {
  if (count - base > FEW) while (count > base) forget(--count);
  count = base;
  frame -= 8;
  base = load<u32>(frame);
  resetArena(<usize>load<u32>(frame, 4));
}

/**
 * Takes a key of the innermost object: the inside of its string. Returns whether it is new; one that stands twice is
 * not taken, and nothing may be added after it.
 */
export function addKey(at: usize, end: usize, escaped: bool): bool {
  let length = <u32>(end - at);
  if (escaped) {
    const copy = arenaEnd();
    length = unescape(at, end);
    at = copy;
  }
  const others = count - base;
  if (others < FEW) {
    const mark = quickMark(at, length);
    const marks = i32x4.splat(mark);
    for (let i: u32 = 0; i < others; i += 4) {
      let found = <u32>i32x4.bitmask(i32x4.eq(v128.load(MARKS + (<usize>(base + i) << 2)), marks));
      while (found != 0) {
        const other = i + ctz(found);
        if (other < others && isKey(base + other, at, length)) return false;
        found &= found - 1;
      }
    }
    push(at, length, mark);
    return true;
  }
  if (others == FEW) for (let i: u32 = 0; i < FEW; i++) remember(base + i);
  const mark = strongMark(at, length);
  let slot = <u32>mark & (SLOTS - 1);
  while (true) {
    const other = load<u32>(TABLE + (<usize>slot << 2));
    if (other == 0) break;
    // The set holds keys of outer objects too.
    if (other > base && load<i32>(MARKS + (<usize>(other - 1) << 2)) == mark && isKey(other - 1, at, length)) {
      if (others == FEW) for (let i = FEW; i > 0; i--) forget(base + i - 1);
      return false;
    }
    slot = (slot + 1) & (SLOTS - 1);
  }
  push(at, length, mark);
  store<u32>(TABLE + (<usize>slot << 2), count);
  return true;
}

@inline function push(at: usize, length: u32, mark: i32): void {
  const key = KEYS + (<usize>count << 3);
  store<u32>(key, <u32>at);
  store<u32>(key, length, 4);
  store<i32>(MARKS + (<usize>count << 2), mark);
  count++;
}

/** Puts a key of the stack into the set. It is known to be new in its object. */
function remember(index: u32): void {
  const key = KEYS + (<usize>index << 3);
  const mark = strongMark(<usize>load<u32>(key), load<u32>(key, 4));
  store<i32>(MARKS + (<usize>index << 2), mark);
  let slot = <u32>mark & (SLOTS - 1);
  while (load<u32>(TABLE + (<usize>slot << 2)) != 0) slot = (slot + 1) & (SLOTS - 1);
  store<u32>(TABLE + (<usize>slot << 2), index + 1);
}

/** Takes the youngest key out of the set. */
function forget(index: u32): void {
  let slot = load<u32>(MARKS + (<usize>index << 2)) & (SLOTS - 1);
  while (load<u32>(TABLE + (<usize>slot << 2)) != index + 1) slot = (slot + 1) & (SLOTS - 1);
  store<u32>(TABLE + (<usize>slot << 2), 0);
}

function isKey(index: u32, at: usize, length: u32): bool {
  const key = KEYS + (<usize>index << 3);
  if (load<u32>(key, 4) != length) return false;
  const other = <usize>load<u32>(key);
  let i: usize = 0;
  for (; i + 8 <= <usize>length; i += 8) if (load<u64>(at + i) != load<u64>(other + i)) return false;
  return head(load<u64>(at + i), length & 7) == head(load<u64>(other + i), length & 7);
}

/** The first `bytes` (0 to 7) of eight. */
@inline function head(word: u64, bytes: u32): u64 {
  return word & (((<u64>1) << (bytes << 3)) - 1);
}

/** 32 bits that keys which differ seldom share, unless somebody wants them to: a filter, no more. */
@inline function quickMark(at: usize, length: u32): i32 {
  let word: u64;
  if (length < 8) word = head(load<u64>(at), length);
  else word = load<u64>(at) ^ rotl<u64>(load<u64>(at + <usize>length - 8), 29);
  return <i32>(((word ^ <u64>length) * 0x9e3779b97f4a7c15) >> 32);
}

/** SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein), cut to 32 bits. */
function strongMark(at: usize, length: u32): i32 {
  const key0 = load<u64>(SEED), key1 = load<u64>(SEED, 8);
  let v0 = key0 ^ 0x736f6d6570736575, v1 = key1 ^ 0x646f72616e646f6d;
  let v2 = key0 ^ 0x6c7967656e657261, v3 = key1 ^ 0x7465646279746573;
  let left = length;
  let final = 0;
  while (true) {
    let word: u64 = 0;
    if (left >= 8) word = load<u64>(at);
    else if (final == 0) word = head(load<u64>(at), left) | ((<u64>length) << 56);
    else if (final == 1) v2 ^= 0xff;
    v3 ^= word;
    v0 += v1; v2 += v3;
    v1 = rotl<u64>(v1, 13) ^ v0; v3 = rotl<u64>(v3, 16) ^ v2;
    v0 = rotl<u64>(v0, 32);
    v2 += v1; v0 += v3;
    v1 = rotl<u64>(v1, 17) ^ v2; v3 = rotl<u64>(v3, 21) ^ v0;
    v2 = rotl<u64>(v2, 32);
    v0 ^= word;
    if (left >= 8) {
      left -= 8;
      at += 8;
    } else if (++final > 3) break;
  }
  return <i32>(v0 ^ v1 ^ v2 ^ v3);
}
