/** The largest chunk that one call of `scan` takes, in bytes. */
export const MAX_CHUNK = 4 * 1_048_576;

/** The most lines that one call reports. Real lines are longer than 64 bytes, so that only hostile chunks meet it. */
export const MAX_LINES = 65_536;

/** What may be wrong with a line by itself, in the order of precedence; 0 is nothing. */
export const Fault = { ok: 0, tooLong: 1, notUtf8: 2, badJson: 3, duplicateKey: 4 } as const;

/** The reasons of docs/format.md at the numbers of `Fault`. */
export const FAULT_REASONS = [undefined, 'too-long', 'not-utf8', 'bad-json', 'duplicate-key'] as const;

/** The lines of one chunk. The arrays belong to the kernel and hold until its next call. */
export interface LineScan {
  /** How many lines are reported, MAX_LINES at most. */
  count: number;
  /** Per line: the offset in the chunk just past its `\n`. */
  ends: Uint32Array;
  /** Per line: 32 bytes of BLAKE3 over the line without its `\n`; made of faulty lines too. */
  hashes: Uint8Array;
  /** Per line: a number of `Fault`. */
  faults: Uint8Array;
  /** Bytes of the lines reported: the end of the last one, 0 without any. */
  consumed: number;
  /** Complete lines remain, because there are more than MAX_LINES: call again with `chunk.subarray(consumed)`. */
  more: boolean;
}

/** What lines must carry: the number of the first of them, and the hash of the line before it. */
export interface LinkBefore {
  /** The number's digits in ASCII, right-aligned in 20 places whose others are `0`. */
  digits: Uint8Array;
  /** How many of the places are the number, 16 at most; 0 where none is expected, which no line carries. */
  width: number;
  hash: Uint8Array;
}

/** Lines that follow one another, without anything that needs a look at them. */
export interface LineRun {
  count: number;
  /** By the number that `learn` gave: how many of the lines have this head. Holds until the kernel's next call. */
  heads: Uint32Array;
  /** The head of the last of them. */
  last: number;
}

/** A head: what stands in a line from the comma after its link up to some place before its end. */
export const MAX_HEAD = 400;

/** How many heads a kernel knows at a time. */
export const MAX_HEADS = 24;

/** The time of day in a head and the quote after it, which may differ from line to line: `00:00:00.000Z"`. */
export const CLOCK_LENGTH = 14;

/** Hashes and checks lines, many at a time. Not re-entrant; one per thread. */
export interface LineKernel {
  /**
   * @param chunk bytes that begin at the start of a line, MAX_CHUNK at most; what follows the last `\n` is not looked at
   * @throws RangeError where the chunk is too large
   */
  scan(chunk: Uint8Array): LineScan;
  /**
   * How many lines of the last scan, from line `from` on, have no fault, begin with the version, the number and the link that follow from
   * `before`, and have a head that was learned. The line after them may be good, too: the kernel only knows those it has learned.
   */
  run(from: number, before: LinkBefore): LineRun;
  /**
   * Makes a head known, for any session, in the place of the one that was learned first where there are too many; returns its number. `clock` is where
   * the time of day stands in it: lines with another one have the same head.
   */
  learn(head: Uint8Array, clock: number): number;
}

/** Throws where a chunk is larger than the kernels take. */
export function checkChunk(chunk: Uint8Array): void {
  if (chunk.length > MAX_CHUNK)
    throw new RangeError(`a chunk of ${chunk.length} bytes, at most ${MAX_CHUNK} are allowed`);
}

/** Throws where no kernel learns such a head. */
export function checkHead(head: Uint8Array, clock: number): void {
  if (head.length > MAX_HEAD || !(clock >= 0 && clock + CLOCK_LENGTH <= head.length))
    throw new RangeError(`a head of ${head.length} bytes with its clock at ${clock}, at most ${MAX_HEAD} are allowed`);
}
