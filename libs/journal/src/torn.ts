import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { blake3Stream } from '@nd7/blake3';
import { type Random } from '@nd7/entry';
import { syncFolder, writeAll, type Disk } from './disk.js';
import { readBytes } from './tail.js';

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

/** Where a torn tail stands in an open log. */
export interface TornTail {
  fd: number;
  from: number;
  to: number;
}

/**
 * Keeps the bytes of a torn tail in `log.torn-<seq>-<n>` (32 bytes of salt, then the tail), on the disk when it resolves. A crash
 * between keeping and cutting comes here again with the same bytes: then the file that is there serves. A tail may be of any length (whoever
 * can write to a log can append to it): it is never held whole.
 */
export async function keepTorn(disk: Disk, folder: string, seq: number, tail: TornTail, random: Random): Promise<void> {
  const numbers = tornFiles(folder).filter((f) => f.seq === seq);
  for (const { name } of numbers) if (await isKeptAs(join(folder, name), tail)) return;
  const n = 1 + Math.max(0, ...numbers.map((f) => f.n));
  const fd = openSync(join(folder, `log.torn-${seq}-${n}`), 'wx', 0o600);
  try {
    writeAll(disk, fd, random(SALT));
    for await (const piece of pieces(tail)) writeAll(disk, fd, piece);
    disk.fsync(fd);
  } finally {
    closeSync(fd);
  }
  syncFolder(disk, folder);
}

async function isKeptAs(path: string, tail: TornTail): Promise<boolean> {
  const fd = openSync(path, 'r');
  try {
    if (fstatSync(fd).size !== SALT + tail.to - tail.from) return false;
    let at = SALT;
    for await (const piece of pieces(tail)) {
      if (!readBytes(fd, at, at + piece.length).equals(piece)) return false;
      at += piece.length;
    }
    return true;
  } finally {
    closeSync(fd);
  }
}

/**
 * The kept tails that no gap entry names yet. The gap takes the number of the entry that was lost, so every file of that number or a
 * later one is still to be declared.
 */
export async function undeclared(folder: string, entries: number): Promise<KeptTail[]> {
  const kept: KeptTail[] = [];
  for (const { name } of tornFiles(folder).filter((f) => f.seq >= entries)) {
    const fd = openSync(join(folder, name), 'r');
    try {
      const { size } = fstatSync(fd);
      const hash = blake3Stream();
      for await (const piece of pieces({ fd, from: 0, to: size })) hash.update(piece);
      kept.push({ file: name, bytes: Math.max(0, size - SALT), blake3: hash.hex() });
    } finally {
      closeSync(fd);
    }
  }
  return kept;
}

const PIECE = 1 << 20;

/** The bytes of a range, a piece at a time, each valid until the next; others get their turn between two. */
async function* pieces({ fd, from, to }: TornTail): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.min(PIECE, to - from));
  for (let at = from, n = -1; at < to && n !== 0; at += n) {
    if (at > from) await new Promise((resolve) => setImmediate(resolve));
    n = readSync(fd, buffer, 0, Math.min(buffer.length, to - at), at);
    yield buffer.subarray(0, n);
  }
}

function tornFiles(folder: string): { name: string; seq: number; n: number }[] {
  return readdirSync(folder)
    .flatMap((name) => {
      const m = TORN.exec(name);
      return m ? [{ name, seq: Number(m[1]), n: Number(m[2]) }] : [];
    })
    .sort((a, b) => a.seq - b.seq || a.n - b.n);
}
