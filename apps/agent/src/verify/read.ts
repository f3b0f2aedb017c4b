// Reading a log file for verifying: in large chunks, the next one read while the last is checked.
import { open, type FileHandle } from 'node:fs/promises';

const CHUNK = 1 << 20;
const NEWLINE = 0x0a;

/** Opens a log for reading; the caller closes it. */
export function openLog(path: string): Promise<FileHandle> {
  return open(path, 'r');
}

/** The bytes `from` (included) to `to` (excluded), or to the file's end. A chunk is valid until the next one is asked for. */
export async function* readRange(
  file: FileHandle,
  from: number,
  to: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const size = Math.max(0, Math.min(CHUNK, to - from));
  const buffers = [new Uint8Array(size), new Uint8Array(size)] as const;
  let at = from;
  const read = async (turn: 0 | 1): Promise<Uint8Array> => {
    const want = Math.min(CHUNK, to - at);
    if (want <= 0) return buffers[turn].subarray(0, 0);
    const { bytesRead } = await file.read(buffers[turn], 0, want, at);
    at += bytesRead;
    return buffers[turn].subarray(0, bytesRead);
  };
  let turn: 0 | 1 = 0;
  let next = read(turn);
  for (;;) {
    const chunk = await next;
    if (chunk.length === 0) return;
    turn = turn === 0 ? 1 : 0;
    next = read(turn);
    next.catch(() => undefined); // seen when it is awaited; a reader that stops early never awaits it
    yield chunk;
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
