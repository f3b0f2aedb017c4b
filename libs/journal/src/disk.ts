import {
  close,
  closeSync,
  fdatasync,
  fsync,
  fsyncSync,
  open,
  ftruncateSync,
  mkdirSync,
  openSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf } from './failure.js';

/**
 * The moments between two system calls at which a crash leaves something behind: the rows of "life of an entry" in this lib's README.
 */
export type Step =
  | 'folder-made'
  | 'first-key-made'
  | 'blob-written'
  | 'blobs-synced'
  | 'entries-written'
  | 'entries-synced'
  | 'next-key-made'
  | 'seal-written'
  | 'seal-synced'
  | 'old-key-destroyed'
  | 'head-written'
  | 'head-renamed'
  | 'torn-kept'
  | 'gap-written'
  | 'torn-cut';

/**
 * The system calls whose failure or order the journal's promises hang on, as one seam: a test gives another one that fails, writes
 * short, or kills its process at a step. Everything else goes to `node:fs` directly.
 */
export interface Disk {
  /** write(2), at the end of an O_APPEND file or at `position` of another; may write less than asked. */
  write(fd: number, bytes: Uint8Array, position?: number): number;
  truncate(fd: number, size: number): void;
  /** fdatasync(2) of the log, off the main thread. */
  datasync(fd: number): Promise<void>;
  /** fsync(2) of a small file or a folder. */
  fsync(fd: number): void;
  /** The same by path, off the main thread. */
  fsyncLater(path: string): Promise<void>;
  rename(from: string, to: string): void;
  /** Called when a step is done. */
  step(step: Step): void;
}

export const realDisk: Disk = {
  write: (fd, bytes, position) => writeSync(fd, bytes, 0, bytes.length, position ?? null),
  truncate: ftruncateSync,
  datasync: (fd) => new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve()))),
  fsync: fsyncSync,
  fsyncLater: fsyncPath,
  rename: renameSync,
  step: () => undefined,
};

function fsyncPath(path: string): Promise<void> {
  return new Promise((resolve, reject) =>
    open(path, 'r', (failed, fd) => {
      if (failed) return reject(failed);
      fsync(fd, (error) => close(fd, () => (error ? reject(error) : resolve())));
    }),
  );
}

/** Writes all of it or throws; what was written before the failure stands in the file. */
export function writeAll(disk: Disk, fd: number, bytes: Uint8Array, position?: number): void {
  for (let at = 0; at < bytes.length;) {
    at += disk.write(fd, at === 0 ? bytes : bytes.subarray(at), position === undefined ? undefined : position + at);
  }
}

/** Makes the names in a folder durable. */
export function syncFolder(disk: Disk, path: string): void {
  const fd = openSync(path, 'r');
  try {
    disk.fsync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Writes a small file so that a crash leaves the old one or the new one, whole: temporary file, fsync, rename, fsync of the folder. */
export function replaceFile(disk: Disk, path: string, bytes: Uint8Array, written?: () => void): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const fd = openSync(temporary, 'w', 0o600);
  try {
    writeAll(disk, fd, bytes);
    disk.fsync(fd);
  } finally {
    closeSync(fd);
  }
  written?.();
  disk.rename(temporary, path);
  syncFolder(disk, dirname(path));
}

/** Makes a folder 0700 where there is none; true when it was made now. */
export function makeFolder(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
}
