// What is found out about a segment's bytes, wherever that is done: here, or in a thread (check-thread.ts).
import type { LineKernel } from '@nd7/blake3';
import type { SignedClaim } from '@nd7/segment';
import { Problem } from '../http/problem.js';
import { examine, MAX_ENTRIES, type Examined } from './examine.js';
import { bufferOf, entriesOf, type Entries } from './frame.js';

/** A body, and what it must go on from. Plain data: it goes to a thread as it is. */
export interface CheckJob {
  body: Uint8Array;
  /** Of the content, as the request's header has it. */
  encoding: string | undefined;
  claim: SignedClaim;
  /** The session key in force before the first entry; null where the segment begins the session. */
  keyBefore: string | null;
}

/** What is known of good bytes once they can be let go. Plain data: it comes back from a thread as it is. */
export interface Found {
  /** Of the entries. */
  bytes: number;
  examined: Examined;
  /** The frame that is kept, where it was made of a body that came plain. */
  frame?: Uint8Array;
}

/** Lends the kernel to one piece of work at a time. */
export type UseKernel = <T>(work: (kernel: LineKernel) => Promise<T>) => Promise<T>;

/** Checks every byte. Throws the Problem of the first thing that is wrong, in the format's order. */
export async function checkSegment({ body, encoding, claim, keyBefore }: CheckJob, use: UseKernel): Promise<Found> {
  const { plain, frame } = await segmentOf(bufferOf(body), encoding);
  const examined = await use((kernel) => examine(plain, claim, keyBefore, kernel));
  return { bytes: plain.length, examined, ...(encoding !== 'zstd' && { frame }) };
}

/** A body's entries, no more than a segment may have. Throws a Problem. */
export async function segmentOf(body: Buffer, encoding: string | undefined): Promise<Entries> {
  const entries = await entriesOf(body, encoding);
  if (countLines(entries.plain) > MAX_ENTRIES)
    throw new Problem('too-large', `a segment holds at most ${String(MAX_ENTRIES)} entries: cut it smaller`);
  return entries;
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(10); at >= 0 && lines <= MAX_ENTRIES; at = bytes.indexOf(10, at + 1)) lines += 1;
  return lines;
}
