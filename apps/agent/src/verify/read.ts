// Reading a log file for verifying.
import { readSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';

/** What is read and checked while it lies in the processor's cache: at 1 MB reading takes twice as long. */
const CHUNK = 1 << 18;
/** Signals and progress are heard after so many bytes, some 10 ms of work. */
const BREATH = 1 << 22;
const NEWLINE = 0x0a;

/** Opens a log for reading; the caller closes it. */
export function openLog(path: string): Promise<FileHandle> {
  return open(path, 'r');
}

/**
 * The bytes `from` (included) to `to` (excluded), or to the file's end. A chunk is valid until the next one is asked for. Reads wait for the disk: the
 * kernel reads ahead of who reads in order, and a thread for it would take a tenth of a processor from those that check.
 */
export async function* readRange(
  file: FileHandle,
  from: number,
  to: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const buffer = new Uint8Array(Math.max(0, Math.min(CHUNK, to - from)));
  let breath = from + BREATH;
  for (let at = from; at < to;) {
    const read = readSync(file.fd, buffer, 0, Math.min(CHUNK, to - at), at);
    if (read === 0) return;
    at += read;
    yield buffer.subarray(0, read);
    if (at >= breath) {
      breath = at + BREATH;
      await setImmediate();
    }
  }
}

/** How long a writer may take for one entry before bytes without a newline are taken for a torn tail. */
const SETTLE_TRIES = 20;
const SETTLE_MS = 50;

/**
 * The size of a log that a recorder may be writing: bytes after the last newline are not yet an entry, so that they are given a
 * moment to become one. What does not is a torn tail and belongs to the log.
 */
export async function settledSize(file: FileHandle, isLive: boolean): Promise<number> {
  const last = new Uint8Array(1);
  for (let i = 0; ; i++) {
    const { size } = await file.stat();
    if (!isLive || size === 0 || i === SETTLE_TRIES) return size;
    const { bytesRead } = await file.read(last, 0, 1, size - 1);
    if (bytesRead === 1 && last[0] === NEWLINE) return size;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  }
}
