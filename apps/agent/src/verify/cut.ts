import { MAX_LINE } from '@nd7/entry';
import type { FileHandle } from 'node:fs/promises';

/** Bytes of a log, from the start of one line to the start of another or the end. */
export interface Range {
  from: number;
  to: number;
}

/** The smallest part, some 20 ms of work; of a small log a share for each thread. */
const LEAST = 8 << 20;

/**
 * Where a log is to be cut for threads that take one part after the other: each part is a share of what is left, so that they are few (beginning one costs a
 * millisecond) and the last are small: a thread that began late, or had less of a processor, takes fewer of them, and all end at about the same time.
 */
export function placesOf(size: number, threads: number): number[] {
  const least = Math.max(1, Math.min(LEAST, Math.floor(size / (4 * threads))));
  const places: number[] = [];
  for (let at = 0; ;) {
    at += Math.max(least, Math.floor((size - at) / threads));
    if (at >= size) return places;
    places.push(at);
  }
}

/**
 * Cuts a log into ranges at the first line start after each of these places, which ascend. Where no line starts within the longest line's length of a place, it is
 * left out: the log is broken there (`too-long`), and one part more or less does not matter.
 */
export async function cutAtLines(file: FileHandle, size: number, places: readonly number[]): Promise<Range[]> {
  const cuts = [0];
  for (const place of places) {
    const at = await lineStart(file, place, size);
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
