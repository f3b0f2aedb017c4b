import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/**
 * What a file holds that a session can have laid, in full; undefined where it cannot be read, is no file, or holds more or less than it says
 * or than `most` bytes. Never waits, and reads no further: in a file's place there can be a pipe that nobody writes to, or a link to one of
 * /proc's, which say that they are empty and have no end.
 */
export function readWhole(path: string, most: number): Buffer | undefined {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.size > most) return undefined;
    const bytes = Buffer.alloc(stat.size + 1);
    let length = 0;
    while (length < bytes.length) {
      const read = readSync(file, bytes, length, bytes.length - length, null);
      if (read === 0) break;
      length += read;
    }
    return length === stat.size ? bytes.subarray(0, length) : undefined;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
