import { MAX_LINE } from '@nd7/entry';
import type { FileHandle } from 'node:fs/promises';

/** Bytes of a log, from the start of one line to the start of another or the end. */
export interface Range {
  from: number;
  to: number;
}

/**
 * Cuts a log into about `parts` ranges of equal size at line starts. Where no line starts within the longest line's length of a
 * cut, the cut is left out: the log is broken there (`too-long`), and one part more or less does not matter.
 */
export async function cutAtLines(file: FileHandle, size: number, parts: number): Promise<Range[]> {
  const cuts = [0];
  for (let i = 1; i < parts; i++) {
    const at = await lineStart(file, Math.floor((size * i) / parts), size);
    if (at !== undefined && at > (cuts.at(-1) ?? 0) && at < size) cuts.push(at);
  }
  return cuts.map((from, i) => ({ from, to: cuts[i + 1] ?? size }));
}

/** The first line start at or after `from`; undefined where there is none near. */
async function lineStart(file: FileHandle, from: number, size: number): Promise<number | undefined> {
  const buffer = new Uint8Array(1 << 16);
  const limit = Math.min(size, from + MAX_LINE + 2);
  // A line starts at `from` itself where the byte before it is a newline.
  for (let at = Math.max(from - 1, 0); at < limit;) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, limit - at), at);
    if (bytesRead === 0) return undefined;
    const newline = buffer.subarray(0, bytesRead).indexOf(0x0a);
    if (newline >= 0) return at + newline + 1;
    at += bytesRead;
  }
  return undefined;
}
