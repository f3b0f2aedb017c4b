import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';
import { type Random } from '@nd7/entry';
import { syncFolder, writeAll, type Disk } from './disk.js';

const TORN = /^log\.torn-(0|[1-9][0-9]{0,15})-([1-9][0-9]{0,15})$/;
const SALT = 32;

/** What a gap entry says of one kept tail. */
export interface KeptTail {
  file: string;
  /** Length of the tail without the salt. */
  bytes: number;
  /** Of salt and tail, which is what the file holds. */
  blake3: string;
}

/**
 * Keeps the bytes of a torn tail in `log.torn-<seq>-<n>` (32 bytes of salt, then the tail), on the disk before it returns. A crash
 * between keeping and cutting comes here again with the same bytes: then the file that is there serves.
 */
export function keepTorn(disk: Disk, folder: string, seq: number, tail: Uint8Array, random: Random): void {
  const numbers = tornFiles(folder).filter((f) => f.seq === seq);
  for (const { name } of numbers) {
    if (readFileSync(join(folder, name)).subarray(SALT).equals(tail)) return;
  }
  const n = 1 + Math.max(0, ...numbers.map((f) => f.n));
  const fd = openSync(join(folder, `log.torn-${seq}-${n}`), 'wx', 0o600);
  try {
    writeAll(disk, fd, random(SALT));
    writeAll(disk, fd, tail);
    disk.fsync(fd);
  } finally {
    closeSync(fd);
  }
  syncFolder(disk, folder);
}

/**
 * The kept tails that no gap entry names yet. The gap takes the number of the entry that was lost, so every file of that number or a
 * later one is still to be declared.
 */
export function undeclared(folder: string, entries: number): KeptTail[] {
  return tornFiles(folder)
    .filter((f) => f.seq >= entries)
    .map(({ name }) => {
      const bytes = readFileSync(join(folder, name));
      return { file: name, bytes: Math.max(0, bytes.length - SALT), blake3: blake3Hex(bytes) };
    });
}

function tornFiles(folder: string): { name: string; seq: number; n: number }[] {
  return readdirSync(folder)
    .flatMap((name) => {
      const m = TORN.exec(name);
      return m ? [{ name, seq: Number(m[1]), n: Number(m[2]) }] : [];
    })
    .sort((a, b) => a.seq - b.seq || a.n - b.n);
}
