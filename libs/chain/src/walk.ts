import type { LineKernel } from '@nd7/blake3';
import type { SignatureVerifier } from '@nd7/tlog';
import type { Head } from './head.js';
import { genesis } from './link.js';
import { PartWalk, type PartStart } from './part.js';
import { headMarks, stitchParts, type WalkResult } from './stitch.js';

export interface WalkOptions {
  session: string;
  kernel: LineKernel;
  verify: SignatureVerifier;
  /** A segment: resume after this. Absent: the bytes begin with entry 0. */
  start?: PartStart;
  /** What the log is held against. One that counts fewer entries than `start` is not checked. */
  head?: Head;
  /** Counts whose hash is wanted in the result. */
  marks?: readonly number[];
  /** Each entry that checks out, in order; `line` (without its newline) is valid during the call only. */
  onEntry?: (seq: number, line: Uint8Array) => void;
}

/**
 * Verifies a log, or a segment of one, as its bytes come: any chunking gives the same verdict. Holds at most one line of at
 * most 1 MiB besides the chunk. Never throws for what the bytes are.
 */
export class ChainWalk {
  readonly #part: PartWalk;
  readonly #o: WalkOptions;
  readonly #start: PartStart;

  constructor(o: WalkOptions) {
    const { onEntry } = o;
    const first = genesis(o.session);
    this.#start = o.start ?? { entries: 0, head: first, key: null };
    this.#o = o;
    this.#part = new PartWalk({
      session: o.session,
      kernel: o.kernel,
      verify: o.verify,
      start: this.#start,
      marks: [...(o.marks ?? []), ...headMarks(o.head)],
      ...(onEntry && { onEntry: (seq, { bytes, start, end }) => onEntry(seq, bytes.subarray(start, end)) }),
    });
  }

  /** Entries that check out so far. */
  get entries(): number {
    return this.#start.entries + this.#part.good;
  }

  /** Whether the chain is known to be broken: what follows is only counted. */
  get broken(): boolean {
    return this.#part.broken;
  }

  /** Takes the next bytes; await it before the chunk is reused and before the next push. */
  push(chunk: Uint8Array): Promise<void> {
    return this.#part.push(chunk);
  }

  /** Ends the log: what follows the last newline is a torn tail. */
  async finish(): Promise<WalkResult> {
    return stitchParts([this.#part.finish()], { ...this.#o, start: this.#start });
  }
}

/** A whole walk over bytes at hand or as they come. */
export async function walk(bytes: Uint8Array | AsyncIterable<Uint8Array>, o: WalkOptions): Promise<WalkResult> {
  const chain = new ChainWalk(o);
  if (bytes instanceof Uint8Array) await chain.push(bytes);
  else for await (const chunk of bytes) await chain.push(chunk);
  return chain.finish();
}
