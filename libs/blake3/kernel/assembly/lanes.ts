// Four chunks at a time, of one line or of many: each SIMD lane works on a chunk of its own and takes the next when it
// is done. A job is one chunk, or one pair of chaining values.
import { JOB_SIZE, JOBS, LANES, PADS } from './layout';
import { steps } from './steps.generated';

export const CHUNK_START: u32 = 1;
export const CHUNK_END: u32 = 2;
export const PARENT: u32 = 4;
export const ROOT: u32 = 8;

/** Eight vectors: word i of the four lanes' chaining values. */
export const STATE: usize = LANES;
/** Vectors that a compression takes: per lane the chunk's number in its line, the block's length, its flags. */
export const COUNTERS: usize = LANES + 128;
export const LENGTHS: usize = LANES + 144;
export const FLAGS: usize = LANES + 160;
/** Per lane: where the next block stands. */
export const SOURCES: usize = LANES + 176;
/** Per lane: blocks still to do; IDLE in a lane without a job. */
const LEFT: usize = LANES + 192;
/** Per lane: bytes in the last block. */
const LAST: usize = LANES + 208;
/** Per lane: flags to add in the last block. */
const FINAL: usize = LANES + 224;
/** Per lane: where the 32 bytes go. */
const TARGETS: usize = LANES + 240;

const IDLE: u32 = 0x7fffffff;

@inline export function rotate16(x: v128): v128 {
  return i8x16.swizzle(x, i8x16(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
}

@inline export function rotate12(x: v128): v128 {
  return v128.or(i32x4.shr_u(x, 12), i32x4.shl(x, 20));
}

@inline export function rotate8(x: v128): v128 {
  return i8x16.swizzle(x, i8x16(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12));
}

@inline export function rotate7(x: v128): v128 {
  return v128.or(i32x4.shr_u(x, 7), i32x4.shl(x, 25));
}

/** Puts job number `at` down. `first` are the flags of its first block, `final` those its last has besides. */
@inline export function putJob(at: u32, source: usize, length: u32, counter: u32, first: u32, final: u32, target: usize): void {
  const job = JOBS + JOB_SIZE * at;
  store<u32>(job, <u32>source);
  store<u32>(job, length, 4);
  store<u32>(job, counter, 8);
  store<u32>(job, first, 12);
  store<u32>(job, final, 16);
  store<u32>(job, <u32>target, 20);
}

function start(lane: usize, job: usize): void {
  const length = load<u32>(job, 4);
  const blocks = length == 0 ? 1 : (length + 63) >> 6;
  store<u32>(SOURCES + lane, load<u32>(job));
  store<u32>(LEFT + lane, blocks);
  store<u32>(LAST + lane, length - ((blocks - 1) << 6));
  store<u32>(COUNTERS + lane, load<u32>(job, 8));
  store<u32>(FLAGS + lane, load<u32>(job, 12));
  store<u32>(FINAL + lane, load<u32>(job, 16));
  store<u32>(TARGETS + lane, load<u32>(job, 20));
  store<u32>(STATE + lane, 0x6a09e667);
  store<u32>(STATE + lane, 0xbb67ae85, 16);
  store<u32>(STATE + lane, 0x3c6ef372, 32);
  store<u32>(STATE + lane, 0xa54ff53a, 48);
  store<u32>(STATE + lane, 0x510e527f, 64);
  store<u32>(STATE + lane, 0x9b05688c, 80);
  store<u32>(STATE + lane, 0x1f83d9ab, 96);
  store<u32>(STATE + lane, 0x5be0cd19, 112);
}

/** The last block of a lane: if it is not full, a copy filled up with zeros. */
function finish(lane: usize): void {
  const last = load<u32>(LAST + lane);
  store<u32>(LENGTHS + lane, last);
  store<u32>(FLAGS + lane, load<u32>(FLAGS + lane) | load<u32>(FINAL + lane));
  if (last == 64) return;
  const from = <usize>load<u32>(SOURCES + lane);
  const pad = PADS + (lane << 4);
  const ramp = i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const length = i8x16.splat(<i8>last);
  for (let i: usize = 0; i < 64; i += 16) {
    const place = i8x16.add(ramp, i8x16.splat(<i8>i));
    v128.store(pad + i, v128.and(v128.load(from + i), i8x16.lt_s(place, length)));
  }
  store<u32>(SOURCES + lane, <u32>pad);
}

function emit(lane: usize): void {
  const target = <usize>load<u32>(TARGETS + lane);
  for (let i: usize = 0; i < 8; i++) store<u32>(target + (i << 2), load<u32>(STATE + lane + (i << 4)));
}

/** Does the first `count` jobs. They begin in order: a job may overwrite what earlier ones have read. */
export function runJobs(count: u32): void {
  let next: usize = JOBS;
  const end = JOBS + JOB_SIZE * count;
  let live = 0;
  v128.store(LENGTHS, i32x4.splat(64));
  for (let lane: usize = 0; lane < 16; lane += 4) {
    if (next < end) {
      start(lane, next);
      next += JOB_SIZE;
      live++;
    } else store<u32>(LEFT + lane, IDLE);
  }
  while (live > 0) {
    let quiet = IDLE;
    for (let lane: usize = 0; lane < 16; lane += 4) {
      const left = load<u32>(LEFT + lane);
      if (left == IDLE) store<u32>(SOURCES + lane, <u32>JOBS);
      quiet = min(quiet, left);
    }
    // Blocks that are nobody's last go without a look at the lanes between them.
    if (--quiet > 0) {
      steps(quiet);
      v128.store(FLAGS, i32x4.splat(0));
      for (let lane: usize = 0; lane < 16; lane += 4) {
        const left = load<u32>(LEFT + lane);
        if (left != IDLE) store<u32>(LEFT + lane, left - quiet);
      }
    }
    for (let lane: usize = 0; lane < 16; lane += 4) {
      if (load<u32>(LEFT + lane) == 1) finish(lane);
    }
    steps(1);
    v128.store(FLAGS, i32x4.splat(0));
    v128.store(LENGTHS, i32x4.splat(64));
    for (let lane: usize = 0; lane < 16; lane += 4) {
      const left = load<u32>(LEFT + lane);
      if (left == IDLE) continue;
      if (left > 1) {
        store<u32>(LEFT + lane, left - 1);
        continue;
      }
      emit(lane);
      if (next < end) {
        start(lane, next);
        next += JOB_SIZE;
      } else {
        store<u32>(LEFT + lane, IDLE);
        live--;
      }
    }
  }
}
