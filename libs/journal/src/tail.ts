import { readSync } from 'node:fs';
import { blake3Hex, sharedKernel } from '@nd7/blake3';
import { ChainWalk, genesis, type Head, type LogReason } from '@nd7/chain';
import { isHex, MAX_LINE, readEntry } from '@nd7/entry';
import { verifySignatures } from '@nd7/signing';

/** Where a chain stands: all that is needed to append to it. */
export interface Place {
  entries: number;
  /** Hash of the last entry; of none, the genesis link. */
  head: string;
  /** Offset just past the last entry's newline. */
  bytes: number;
  /** Public key of the signing key in force; null where entry 0 names none, or before it. */
  key: string | null;
  /** Seq of the last seal. */
  sealedTo: number | null;
  /** Offset just past the last seal; 0 without one. */
  sealedBytes: number;
  /** When the last seal (or else entry 0) was written, by its own `time`, ms; 0 where it has none. */
  sealedAt: number;
}

/** What a walk over the end of a log found. */
export interface Tail {
  place: Place;
  /** Why the bytes after `place` are no entry, where there are any or the given head counts more. */
  fault?: LogReason;
}

/** Before entry 0. */
export function beginning(session: string): Place {
  return {
    entries: 0,
    head: genesis(session),
    bytes: 0,
    key: null,
    sealedTo: null,
    sealedBytes: 0,
    sealedAt: 0,
  };
}

const CHUNK = 1 << 20;
/** How far back a seal is looked for; past that the log is walked from its beginning. 256 entries of the longest kind are 256 MiB. */
const SEARCH = 64 << 20;

/**
 * The place just after the last seal within the first `durable` bytes, so that opening a long log costs what stands after it. Those bytes were on
 * the disk once (head.json says so): a crash cannot have made a hole in them, as it can in what came later. The seal is believed as it stands; who wants
 * the whole log checked verifies it. Without a seal in sight: the beginning.
 */
export function lastSeal(fd: number, durable: number, session: string): Place {
  let end = durable; // everything from here on has been looked at
  let carry = Buffer.alloc(0); // the beginning of a line whose start is further up
  while (end > 0 && durable - end < SEARCH) {
    const from = Math.max(0, end - CHUNK);
    const block = Buffer.concat([readBytes(fd, from, end), carry]);
    const first = from === 0 ? 0 : block.indexOf(10) + 1;
    const found = first > 0 || from === 0 ? sealIn(block, first, from) : undefined;
    if (found) return found;
    // What is longer than a line may be is no seal: there is no need to put it together.
    carry = first > 0 ? block.subarray(0, first) : block.length > MAX_LINE ? Buffer.alloc(0) : block;
    end = from;
  }
  return beginning(session);
}

/** The last seal among the whole lines of `block` from offset `first` on; `at` is the block's own offset in the file. */
function sealIn(block: Buffer, first: number, at: number): Place | undefined {
  let end = block.lastIndexOf(10);
  while (end >= first) {
    const before = end === 0 ? -1 : block.lastIndexOf(10, end - 1);
    const start = Math.max(before + 1, first);
    const place = sealPlace(block.subarray(start, end), at + end + 1);
    if (place) return place;
    if (start === first) break;
    end = before;
  }
  return undefined;
}

function sealPlace(line: Buffer, bytes: number): Place | undefined {
  if (!line.includes('seal')) return undefined;
  const view = readEntry(line);
  if (view.source !== 'recorder:nd7' || view.kind !== 'seal' || view.seq === undefined || view.data === undefined)
    return undefined;
  const next = (JSON.parse(view.data) as { next?: unknown }).next;
  if (typeof next !== 'string' || !isHex(next, 32)) return undefined;
  return {
    entries: view.seq + 1,
    head: blake3Hex(line),
    bytes,
    key: next,
    sealedTo: view.seq,
    sealedBytes: bytes,
    sealedAt: ms(view.time),
  };
}

/** Walks the log from a place to `size`, checking every entry, and says where it stands then. `head` is what it is held against. */
export async function walkTail(fd: number, from: Place, size: number, session: string, head?: Head): Promise<Tail> {
  let { bytes, sealedBytes, sealedAt } = from;
  const chain = new ChainWalk({
    session,
    kernel: sharedKernel(),
    verify: verifySignatures,
    ...(from.entries > 0 && { start: { entries: from.entries, head: from.head, key: from.key } }),
    ...(head && { head }),
    onEntry: (seq, line) => {
      bytes += line.length + 1;
      const text = Buffer.from(line.buffer, line.byteOffset, line.length);
      if (seq === 0) sealedAt = ms(readEntry(line).time);
      else if (text.includes('seal')) {
        const view = readEntry(line);
        if (view.source === 'recorder:nd7' && view.kind === 'seal') [sealedBytes, sealedAt] = [bytes, ms(view.time)];
      }
    },
  });
  for (let at = from.bytes; at < size && !chain.broken; at += CHUNK)
    await chain.push(readBytes(fd, at, Math.min(at + CHUNK, size)));
  const result = await chain.finish();
  const walked: Place = {
    entries: result.entries,
    head: result.head,
    bytes,
    key: result.seals.key,
    sealedTo: result.seals.sealedTo ?? from.sealedTo,
    sealedBytes,
    sealedAt,
  };
  return { place: walked, ...(result.reason && { fault: result.reason }) };
}

/** The bytes from `start` to `end` of a file; fewer where it ends before. */
export function readBytes(fd: number, start: number, end: number): Buffer {
  const buffer = Buffer.allocUnsafe(Math.max(0, end - start));
  let have = 0;
  while (have < buffer.length) {
    const n = readSync(fd, buffer, have, buffer.length - have, start + have);
    if (n === 0) break;
    have += n;
  }
  return buffer.subarray(0, have);
}

function ms(time: string | undefined): number {
  return time === undefined ? 0 : Date.parse(time);
}
