import { MAX_LINE } from '@nd7/entry';
import { FAULT_REASONS, type LineKernel, MAX_CHUNK } from '@nd7/blake3';

/** One line of a log as it lies in the stream. */
export interface Line {
  /** Where it starts and ends in the stream; its `\n` is not part of it. */
  start: number;
  end: number;
  /** The bytes; undefined for a line too long to be kept. They belong to the splitter and hold until the next line. */
  bytes: Uint8Array | undefined;
  fault: (typeof FAULT_REASONS)[number] | 'torn-tail';
}

/** Small enough that a carried line and a piece fit one call of the kernel. */
const PIECE = MAX_CHUNK - MAX_LINE - 2;

/**
 * Splits any stream into lines and says of each whether it is one JSON object without a key twice (the kernel's check, so that JSON.parse
 * may be trusted with the good ones). Bounded memory: of a line that is too long only its length is kept.
 */
export class LineSplitter {
  readonly #kernel: LineKernel;
  readonly #emit: (line: Line) => void;
  /** Bytes of a line whose end has not come yet. */
  #carry = new Uint8Array(0);
  #carryStart = 0;
  /** Set while the rest of a too long line is passed over. */
  #skipping = false;

  constructor(kernel: LineKernel, emit: (line: Line) => void) {
    this.#kernel = kernel;
    this.#emit = emit;
  }

  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; at += PIECE) this.#piece(chunk.subarray(at, at + PIECE));
  }

  /** What stands after the last line end is a torn tail. */
  finish(): void {
    if (this.#skipping)
      this.#emit({
        start: this.#carryStart,
        end: this.#carryStart + this.#skipped,
        bytes: undefined,
        fault: 'too-long',
      });
    else if (this.#carry.length > 0)
      this.#emit({
        start: this.#carryStart,
        end: this.#carryStart + this.#carry.length,
        bytes: this.#carry,
        fault: 'torn-tail',
      });
    this.#carry = new Uint8Array(0);
    this.#skipping = false;
  }

  #skipped = 0;

  #piece(piece: Uint8Array): void {
    let rest = piece;
    if (this.#skipping) {
      const end = rest.indexOf(10);
      if (end < 0) {
        this.#skipped += rest.length;
        return;
      }
      const start = this.#carryStart;
      this.#emit({ start, end: start + this.#skipped + end, bytes: undefined, fault: 'too-long' });
      this.#carryStart = start + this.#skipped + end + 1;
      this.#skipping = false;
      rest = rest.subarray(end + 1);
    }
    let whole = rest;
    if (this.#carry.length > 0) {
      whole = new Uint8Array(this.#carry.length + rest.length);
      whole.set(this.#carry);
      whole.set(rest, this.#carry.length);
    }
    let [from, more] = [0, true];
    while (more) {
      const scan = this.#kernel.scan(whole.subarray(from));
      let start = from;
      for (let i = 0; i < scan.count; i++) {
        const end = from + (scan.ends[i] ?? 0);
        const fault = FAULT_REASONS[scan.faults[i] ?? 0];
        const line = { start: this.#carryStart + start, end: this.#carryStart + end - 1, fault };
        this.#emit({ ...line, bytes: fault === 'too-long' ? undefined : whole.subarray(start, end - 1) });
        start = end;
      }
      from += scan.consumed;
      more = scan.more;
    }
    this.#carryStart += from;
    this.#carry = whole.slice(from);
    if (this.#carry.length > MAX_LINE) {
      this.#skipping = true;
      this.#skipped = this.#carry.length;
      this.#carry = new Uint8Array(0);
    }
  }
}
