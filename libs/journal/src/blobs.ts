import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';
import { isHex } from '@nd7/entry';
import { syncFolder, writeAll, type Disk } from './disk.js';
import { errnoOf } from './failure.js';
import type { Home } from './home.js';

/** A detached value as it is kept: 32 bytes of salt, then the value; `hash` is BLAKE3 over both, hex. */
export interface Blob {
  hash: string;
  bytes: Uint8Array;
}

const SALT = 32;

/**
 * Writes blobs (0600) and returns when they are on the disk, so that an entry may name them. The salt makes every name new: a half-written
 * blob of a crash is named by no entry and stands in nobody's way.
 */
export async function writeBlobs(disk: Disk, home: Home, blobs: readonly Blob[]): Promise<void> {
  if (blobs.length === 0) return;
  for (const { hash, bytes } of blobs) {
    if (!isHex(hash, 32)) throw new TypeError('a blob is named by 64 hex digits');
    let file;
    try {
      file = await open(join(home.blobs, hash), 'wx', 0o600);
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') continue; // the same salt and value: this very blob, handed in again
      throw error;
    }
    try {
      writeAll(disk, file.fd, bytes);
      disk.step('blob-written');
      await disk.datasync(file.fd);
    } finally {
      await file.close();
    }
  }
  syncFolder(disk, home.blobs);
  disk.step('blobs-synced');
}

/** What a detached value's blob says: `missing` (deleted or never here), `differs` (not what the entry names), or the value. */
export async function readBlob(home: Home, hash: string): Promise<{ value: Uint8Array } | 'missing' | 'differs'> {
  if (!isHex(hash, 32)) return 'missing';
  let bytes: Buffer;
  try {
    bytes = await readFile(join(home.blobs, hash));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 'missing';
    throw error;
  }
  return bytes.length < SALT || blake3Hex(bytes) !== hash ? 'differs' : { value: bytes.subarray(SALT) };
}
