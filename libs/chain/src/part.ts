import { FAULT_REASONS, MAX_CHUNK, type LineKernel, type LineScan } from '@nd7/blake3';
import { isSessionId, MAX_LINE, toHex } from '@nd7/entry';
import type { SignatureVerifier, SignedItem } from '@nd7/tlog';
import { ChainError } from './error.js';
import { Heads, type Label } from './heads.js';
import { LinkReader, type Link } from './prefix.js';
import type { LogReason } from './link.js';
import { certItem, readFirstEntry, readSeal, sealForm, sealItem, type Seal, type SealState } from './seal.js';

/** What stands before a part: the count, the hash the next line must carry, and the key in force. */
export interface PartStart {
  entries: number;
  head: string;
  key: string | null;
}

export interface PartOptions {
  session: string;
  kernel: LineKernel;
  verify: SignatureVerifier;
  /** `unknown`: the part begins somewhere in a log; its first line is believed and `stitchParts` checks it later. */
  start: PartStart | 'unknown';
  /** Counts whose hash is wanted (absolute; in a part of unknown start by what its first line claims). */
  marks?: readonly number[];
  /** Each line that checks out, in order, with its seq (by the first line's claim where the start is unknown). */
  onEntry?: (seq: number, line: LineAt) => void;
  /** Of how many lines more this is the label, once they check out. Of lines that are told of together the last one's label comes last. */
  onLabel?: (label: Label, count: number) => void;
}

/** A line where it lies: half a million views of a chunk cost more than what most readers do with them. Valid during the call it is given to. */
export interface LineAt {
  bytes: Uint8Array;
  start: number;
  /** Its newline. */
  end: number;
}

/** What one part of a log says by itself. Plain data: it goes from a worker to the thread that stitches. */
export interface PartResult {
  /** Of a part of unknown start: the link its first line carries, where that line is good up to there. */
  first?: Link;
  /** How many lines check out, and the hash after them (absent for none). */
  good: number;
  last?: string;
  /** Why the line after the good ones does not check out. */
  fault?: LogReason;
  /** All lines ended by "\n", to the end of the part. */
  lines: number;
  bytes: number;
  /** Hashes after wanted counts; after a bad seal some lie beyond the good lines, and stitching leaves them out. */
  marks: [number, string][];
  /** After the good lines; `sealedTo` counts from the part's first line. */
  seals: SealState;
  /** The first seal of a part of unknown start: by which key it must be signed is not known here. */
  deferred?: { index: number; link: Link; next: string; sig: string };
  /** Where the part begins at entry 0 and that line by itself passes up to its link. */
  entry0?: { machine: string | null | undefined };
}

const NEWLINE = 0x0a;

interface Pending {
  item: SignedItem;
  /** The state before the entry whose signature this is: where the walk falls back to when it is bad. */
  good: number;
  hash: Uint8Array;
  seals: SealState;
}

interface Waiting {
  /** The good lines before. */
  good: number;
  tell: () => void;
}

/**
 * Walks the bytes of one part of a log, in any chunking. Costs at most one line of memory besides the kernel's own: a line that
 * is longer than allowed is given up as soon as that is known. Signatures are collected and checked once per chunk.
 */
export class PartWalk {
  readonly #o: PartOptions;
  readonly #known: boolean;
  readonly #links: LinkReader;
  readonly #heads: Heads;
  readonly #marks: readonly number[];
  #base = 0;
  #first: Link | undefined;
  #good = 0;
  #fault: LogReason | undefined;
  #lines = 0;
  #bytes = 0;
  readonly #found: [number, string][] = [];
  #nextMark = 0;
  #seals: SealState;
  /** Undefined: not known (a part of unknown start before its first seal). */
  #key: string | null | undefined;
  #deferred: PartResult['deferred'];
  #entry0: PartResult['entry0'];
  #carry = new Uint8Array(4096);
  #carried = 0;
  #pending: Pending[] = [];
  /** Lines of which nobody is told before the signatures of their chunk are known to be good. */
  #waiting: Waiting[] = [];
  #state: 'open' | 'busy' | 'finished' = 'open';

  constructor(o: PartOptions) {
    if (!isSessionId(o.session)) throw new ChainError('bad-session', 'not a session id');
    this.#o = o;
    this.#heads = Heads.of(o.kernel);
    this.#marks = [...new Set(o.marks ?? [])].sort((a, b) => a - b);
    this.#known = o.start !== 'unknown';
    const start = o.start === 'unknown' ? undefined : o.start;
    this.#links = new LinkReader(start && { seq: String(start.entries), prev: start.head });
    this.#key = start ? start.key : undefined;
    this.#seals = { key: start?.key ?? null, sealedTo: null, seals: 0 };
    if (start) this.#begin(start.entries, start.head);
  }

  /** Whether the verdict on this part is already known: what follows is only counted. */
  get broken(): boolean {
    return this.#fault !== undefined;
  }

  /** Which line of a part of unknown start is its first seal, whose signature only stitching can check. */
  get deferredAt(): number | undefined {
    return this.#deferred?.index;
  }

  /** Entries that check out so far, of this part. */
  get good(): number {
    return this.#good;
  }

  /** Takes the next bytes. The chunk may be reused when the promise resolves, not before. */
  async push(chunk: Uint8Array): Promise<void> {
    if (this.#state !== 'open') throw this.#misuse();
    this.#state = 'busy';
    try {
      this.#bytes += chunk.length;
      let rest = chunk;
      if (this.#carried > 0 && this.#fault === undefined) rest = await this.#complete(rest);
      while (rest.length > 0) {
        if (this.#fault !== undefined) {
          this.#lines += countLines(rest);
          break;
        }
        const whole = rest.length <= MAX_CHUNK;
        const piece = whole ? rest : rest.subarray(0, MAX_CHUNK);
        const consumed = await this.#piece(piece);
        rest = rest.subarray(consumed);
        if (this.#fault !== undefined) continue;
        const open = piece.length - consumed; // the piece ends with so many bytes that have no newline among them
        if (open > MAX_LINE && (whole || consumed === 0)) this.#fault = 'too-long';
        else if (whole) {
          this.#keep(rest);
          rest = rest.subarray(open);
        }
      }
      this.#state = 'open';
    } catch (error) {
      this.#state = 'finished'; // signatures that could not be checked must not pass for good ones
      throw error;
    }
  }

  /** Ends the part: bytes after the last newline are a torn tail. */
  finish(): PartResult {
    if (this.#state !== 'open') throw this.#misuse();
    this.#state = 'finished';
    if (this.#fault === undefined && this.#carried > 0) this.#fault = 'torn-tail';
    return {
      ...(this.#first && { first: this.#first }),
      good: this.#good,
      ...(this.#good > 0 && { last: toHex(this.#links.hash) }),
      ...(this.#fault && { fault: this.#fault }),
      lines: this.#lines,
      bytes: this.#bytes,
      marks: this.#found,
      seals: { ...this.#seals, key: this.#key ?? null },
      ...(this.#deferred && { deferred: this.#deferred }),
      ...(this.#entry0 && { entry0: this.#entry0 }),
    };
  }

  #misuse(): ChainError {
    return this.#state === 'finished'
      ? new ChainError('finished', 'this walk is finished')
      : new ChainError('overlapping-push', 'await each push before the next');
  }

  /** The count before the first line is known: marks can be told from here on. */
  #begin(entries: number, head: string): void {
    this.#base = entries;
    while ((this.#marks[this.#nextMark] ?? Infinity) < entries) this.#nextMark++;
    if (this.#marks[this.#nextMark] === entries) {
      this.#found.push([entries, head]);
      this.#nextMark++;
    }
  }

  /** Completes the carried line with the beginning of a chunk; returns what follows it. */
  async #complete(chunk: Uint8Array): Promise<Uint8Array> {
    const newline = chunk.indexOf(NEWLINE);
    const more = newline < 0 ? chunk.length : newline;
    if (this.#carried + more > MAX_LINE) {
      this.#carried = 0;
      this.#fault = 'too-long';
      return chunk; // counted by the caller
    }
    this.#keep(newline < 0 ? chunk : chunk.subarray(0, newline + 1));
    if (newline < 0) return chunk.subarray(chunk.length);
    const line = this.#carry.subarray(0, this.#carried);
    this.#carried = 0;
    await this.#piece(line);
    return chunk.subarray(newline + 1);
  }

  #keep(bytes: Uint8Array): void {
    const size = this.#carried + bytes.length;
    if (size > this.#carry.length) {
      const grown = new Uint8Array(Math.min(MAX_LINE + 1, Math.max(size, 2 * this.#carry.length)));
      grown.set(this.#carry.subarray(0, this.#carried));
      this.#carry = grown;
    }
    this.#carry.set(bytes, this.#carried);
    this.#carried = size;
  }

  /** Checks the whole lines of a piece; returns how many bytes were looked at (up to the last newline, less after a fault). */
  async #piece(piece: Uint8Array): Promise<number> {
    let done = 0;
    let more = true;
    while (more && this.#fault === undefined) {
      const rest = done === 0 ? piece : piece.subarray(done);
      const scan = this.#o.kernel.scan(rest);
      this.#lines += scan.count;
      done += scan.consumed;
      more = scan.more;
      this.#scanned(rest, scan); // all of the scan's results are used before anything is awaited
      if (this.#pending.length > 0) await this.#settle();
    }
    return done;
  }

  #scanned(piece: Uint8Array, scan: LineScan): void {
    for (let i = 0; i < scan.count && this.#fault === undefined; i++) {
      i += this.#run(piece, scan, i);
      if (i < scan.count) this.#fault = this.#line(piece, scan, i);
    }
  }

  /** Takes the lines from this one on that need no look at them; returns how many they are. */
  #run(piece: Uint8Array, { ends, hashes }: LineScan, from: number): number {
    if (this.#base + this.#good === 0) return 0; // entry 0 names the keys
    const { count, heads, last } = this.#o.kernel.run(from, this.#links);
    if (count === 0) return 0;
    if (this.#o.onLabel) {
      for (let i = 0; i < heads.length; i++)
        if (heads[i] !== 0 && i !== last) this.#label(this.#heads.label(i), heads[i] as number);
      this.#label(this.#heads.label(last), heads[last] as number);
    }
    if (this.#o.onEntry) for (let i = 0; i < count; i++) this.#entry(this.#good + i, piece, ends, from + i);
    const before = this.#base + this.#good;
    this.#good += count;
    for (; (this.#marks[this.#nextMark] ?? Infinity) <= before + count; this.#nextMark++) {
      const mark = this.#marks[this.#nextMark] as number;
      const at = 32 * (from + mark - before - 1);
      this.#found.push([mark, toHex(hashes.subarray(at, at + 32))]);
    }
    this.#links.skip(count, hashes, 32 * (from + count - 1));
    return count;
  }

  /** Takes one line; why it does not check out. */
  #line(piece: Uint8Array, { ends, hashes, faults }: LineScan, i: number): LogReason | undefined {
    const links = this.#links;
    const start = i === 0 ? 0 : (ends[i - 1] as number);
    const end = (ends[i] as number) - 1;
    const fault = faults[i] as number;
    if (fault !== 0) return FAULT_REASONS[fault] ?? 'bad-json';
    const unlinked = links.matches(piece, start, end) ? undefined : this.#unlinked(piece, start, end);
    if (unlinked !== undefined) return unlinked;
    const rest = start + links.length - 1;
    const asked = this.#base + this.#good > 0 && (this.#known || this.#good > 0);
    if (!this.#sealed(piece, start, end, rest)) return 'bad-seal';
    this.#label(this.#heads.read(piece, rest, end, asked), 1);
    this.#entry(this.#good, piece, ends, i);
    links.advance(hashes, 32 * i);
    this.#good++;
    if (this.#base + this.#good === this.#marks[this.#nextMark]) {
      this.#found.push([this.#base + this.#good, toHex(links.hash)]);
      this.#nextMark++;
    }
    return undefined;
  }

  /** Tells of a line, now or when the signatures before it are known to be good. */
  #entry(good: number, bytes: Uint8Array, ends: Uint32Array, i: number): void {
    const { onEntry } = this.#o;
    if (!onEntry) return;
    const line = { bytes, start: i === 0 ? 0 : (ends[i - 1] as number), end: (ends[i] as number) - 1 };
    if (this.#pending.length === 0) onEntry(this.#base + good, line);
    else this.#waiting.push({ good, tell: () => onEntry(this.#base + good, line) });
  }

  #label(label: Label, count: number): void {
    const { onLabel } = this.#o;
    if (this.#pending.length === 0) onLabel?.(label, count);
    else if (onLabel) this.#waiting.push({ good: this.#good, tell: () => onLabel(label, count) });
  }

  /** Why a line's first members are not the expected ones; undefined for the first line of a part of unknown start. */
  #unlinked(piece: Uint8Array, start: number, end: number): LogReason | undefined {
    const read = this.#links.read(piece, start, end);
    if (typeof read === 'string') return read;
    if (!this.#known && this.#first === undefined) {
      this.#first = read;
      this.#links.expect(read);
      this.#begin(Number(read.seq), read.prev);
      return undefined;
    }
    if (read.seq !== this.#links.seq) return 'wrong-seq';
    return this.#known && this.#base + this.#good === 0 ? 'wrong-genesis' : 'wrong-prev';
  }

  /** Takes up what a line says about keys; false where its form is bad. Its signature is checked at the end of the piece. */
  #sealed(piece: Uint8Array, start: number, end: number, rest: number): boolean {
    const { session } = this.#o;
    if (this.#known && this.#base + this.#good === 0) {
      const first = readFirstEntry(piece, start, end);
      this.#entry0 = { machine: first.machine };
      if (first.key) {
        const item = certItem(session, first.key);
        if (item === undefined) return false;
        const key = first.key.key as string;
        this.#sign(item);
        this.#key = key;
        this.#seals = { key, machine: first.key.machine as string, firstKey: key, sealedTo: null, seals: 0 };
        return true;
      }
    }
    const seal = readSeal(piece, rest, end);
    if (seal === undefined) return true;
    if (this.#key === undefined) {
      if (!this.#defer(seal)) return false;
    } else {
      const item = sealItem(session, this.#links.seq, toHex(this.#links.hash), seal, this.#key);
      if (item === undefined) return false;
      this.#sign(item);
    }
    this.#key = seal.next;
    this.#seals = { ...this.#seals, key: seal.next, sealedTo: this.#good, seals: this.#seals.seals + 1 };
    return true;
  }

  #defer(seal: Seal): boolean {
    if (!sealForm(seal)) return false;
    const link = { seq: this.#links.seq, prev: toHex(this.#links.hash) };
    this.#deferred = { index: this.#good, link, next: seal.next, sig: seal.sig };
    return true;
  }

  #sign(item: SignedItem): void {
    this.#pending.push({ item, good: this.#good, hash: this.#links.hash.slice(), seals: this.#seals });
  }

  /** Checks the signatures of a piece; falls back to before the first bad one. */
  async #settle(): Promise<void> {
    const pending = this.#pending;
    const waiting = this.#waiting;
    this.#pending = [];
    this.#waiting = [];
    const verdicts = await this.#o.verify(pending.map((p) => p.item));
    const bad = pending.find((_, i) => verdicts[i] !== true);
    const good = bad?.good ?? Infinity;
    for (let i = 0; i < waiting.length; i++) if ((waiting[i] as Waiting).good < good) (waiting[i] as Waiting).tell();
    if (bad === undefined) return;
    this.#fault = 'bad-seal';
    this.#good = bad.good;
    this.#links.rewind(bad.hash);
    this.#seals = bad.seals;
    this.#key = bad.seals.key;
  }
}

function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === NEWLINE) count++;
  return count;
}
