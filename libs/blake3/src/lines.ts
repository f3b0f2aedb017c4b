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

/** Hashes and checks lines, many at a time. Not re-entrant; one per thread. */
export interface LineKernel {
  /**
   * @param chunk bytes that begin at the start of a line, MAX_CHUNK at most; what follows the last `\n` is not looked at
   * @throws RangeError where the chunk is too large
   */
  scan(chunk: Uint8Array): LineScan;
}

/** Throws where a chunk is larger than the kernels take. */
export function checkChunk(chunk: Uint8Array): void {
  if (chunk.length > MAX_CHUNK)
    throw new RangeError(`a chunk of ${chunk.length} bytes, at most ${MAX_CHUNK} are allowed`);
}
