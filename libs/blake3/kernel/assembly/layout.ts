// Where everything stands in memory. The size is fixed: no input can make the instance grow.

export const MAX_CHUNK: u32 = 4 << 20;
export const MAX_LINES: u32 = 65536;
export const MAX_LINE: u32 = 1 << 20;
export const MAX_DEPTH: u32 = 256;

/** Jobs are collected over lines until there are so many, then hashed; one line more may add MAX_CHUNK / 1024. */
export const BATCH: u32 = 256;
const MAX_JOBS: u32 = BATCH + (MAX_CHUNK >> 10) + 1;

/** The most keys that open objects can hold at once: a member takes at least 5 bytes of a line. */
const MAX_KEYS: u32 = MAX_LINE / 5 + 1;
/** A power of two, more than twice MAX_KEYS. */
export const SLOTS: u32 = 1 << 19;

// Below the first address stand the tables of utf8.ts, which the compiler places.
/** By byte: how long the escape is that the byte after a backslash begins (2, 6), or 0. */
export const ESCAPES: usize = 4096;
/** By byte: its value as a hex digit, or 0xff. */
export const HEX: usize = ESCAPES + 256;
/** 16 bytes, random: the key of the hash over keys. Written by the host. */
export const SEED: usize = HEX + 256;

/** Lane state: see lanes.ts. */
export const LANES: usize = SEED + 64;
export const PADS: usize = LANES + 256;
export const JOBS: usize = PADS + 256;
export const JOB_SIZE: usize = 24;
/** Chaining values of the chunks of lines of more than one chunk, 32 bytes each. */
export const VALUES: usize = JOBS + JOB_SIZE * MAX_JOBS;
/** The lines of more than one chunk in a batch: where their values begin, how many are left, where the hash goes. */
export const TREES: usize = VALUES + 32 * MAX_JOBS;
export const TREE_SIZE: usize = 12;

/** One byte per open bracket: 1 for an object. */
export const KINDS: usize = TREES + TREE_SIZE * MAX_JOBS;
/** Per open object: number of its first key, and the arena's end before it. */
export const FRAMES: usize = KINDS + MAX_DEPTH + 8;
/** Per key: its address and length, of the canonical bytes. */
export const KEYS: usize = FRAMES + 8 * (MAX_DEPTH + 1);
/** Per key: 32 bits made from it. Sixteen more are read than are there. */
export const MARKS: usize = KEYS + 8 * MAX_KEYS;
/** The hash set of the keys of large objects: numbers of keys plus 1, 0 is free. */
export const TABLE: usize = MARKS + 4 * MAX_KEYS + 64;
/** Keys with escapes, unescaped. */
export const ARENA: usize = TABLE + 4 * SLOTS;

/** What the next line must carry: see links.ts. */
export const LINK: usize = (ARENA + MAX_LINE + 127) & ~63;
/** The heads that the host has learned: length, place of the time of day, bytes, and a mask of those that are compared. */
export const MAX_HEADS: u32 = 24;
const MAX_HEAD: usize = 400;
export const HEAD_RAW: usize = 16;
export const HEAD_MASK: usize = HEAD_RAW + MAX_HEAD;
export const HEAD_SIZE: usize = HEAD_MASK + MAX_HEAD;
export const HEADS: usize = LINK + 64;
/** Per head: how many lines of a run have it. */
export const TALLY: usize = HEADS + HEAD_SIZE * MAX_HEADS;

export const ENDS: usize = (TALLY + 4 * MAX_HEADS + 63) & ~63;
export const FAULTS: usize = ENDS + 4 * MAX_LINES;
export const HASHES: usize = FAULTS + MAX_LINES;
export const INPUT: usize = HASHES + 32 * MAX_LINES;
/** Vectors are read past the end. */
export const END: usize = INPUT + MAX_CHUNK + 256 + MAX_HEAD;
