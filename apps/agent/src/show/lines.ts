import { MAX_LINE } from '@nd7/entry';

/** One line of a log as it stands: nothing about it is verified. */
export interface LogLine {
  /** Its number by counting, which is its seq in a log that verifies. */
  seq: number;
  /** Without the newline; of a line longer than allowed only the beginning. */
  bytes: Uint8Array;
  isTooLong: boolean;
}

/**
 * Cuts chunks into lines; bytes after the last newline are kept until they are ended. Costs at most one line of memory, whatever
 * the log holds. A line's bytes are valid until the next is asked for.
 */
export class LineCutter {
  #seq: number;
  #rest = new Uint8Array(0);
  #dropped = false;

  constructor(first = 0) {
    this.#seq = first;
  }

  *push(chunk: Uint8Array): Generator<LogLine> {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const bytes = this.#join(chunk.subarray(start, end));
      yield {
        seq: this.#seq++,
        bytes: bytes.subarray(0, MAX_LINE),
        isTooLong: this.#dropped || bytes.length > MAX_LINE,
      };
      this.#rest = new Uint8Array(0);
      this.#dropped = false;
      start = end + 1;
    }
    if (start < chunk.length) this.#rest = new Uint8Array(this.#join(chunk.subarray(start))); // a copy: the chunk may be reused
  }

  #join(more: Uint8Array): Uint8Array {
    if (this.#rest.length === 0 && more.length <= MAX_LINE + 1) return more;
    const room = MAX_LINE + 1 - this.#rest.length;
    if (more.length > room) this.#dropped = true;
    const kept = more.subarray(0, Math.max(0, room));
    const joined = new Uint8Array(this.#rest.length + kept.length);
    joined.set(this.#rest);
    joined.set(kept, this.#rest.length);
    return joined;
  }
}
