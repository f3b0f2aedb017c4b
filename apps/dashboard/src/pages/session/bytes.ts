import type { Row } from '../../worker/row.js';

/** The session's bytes as they were fetched, segment by segment: exactly those that the worker judged. */
export class SessionBytes {
  readonly #parts: readonly Uint8Array[];
  readonly #starts: number[] = [];
  readonly #length: number;

  constructor(parts: readonly Uint8Array[]) {
    this.#parts = parts;
    let at = 0;
    for (const part of parts) {
      this.#starts.push(at);
      at += part.length;
    }
    this.#length = at;
  }

  get length(): number {
    return this.#length;
  }

  /** The bytes from `start` to `end`, cut at what there is. A line may cross segments where a vault cut them so. */
  slice(start: number, end: number): Uint8Array {
    const stop = Math.min(end, this.#length);
    if (start >= stop) return new Uint8Array(0);
    let index = this.#partAt(start);
    const first = this.#parts[index];
    const offset = start - (this.#starts[index] ?? 0);
    if (first !== undefined && offset + (stop - start) <= first.length)
      return first.subarray(offset, offset + (stop - start));
    const out = new Uint8Array(stop - start);
    for (let at = start; at < stop; index++) {
      const part = this.#parts[index];
      if (part === undefined) break;
      const from = at - (this.#starts[index] ?? 0);
      const piece = part.subarray(from, from + (stop - at));
      out.set(piece, at - start);
      at += piece.length;
    }
    return out;
  }

  line(row: Row): Uint8Array {
    return this.slice(row.start, row.end);
  }

  #partAt(offset: number): number {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

const decoder = new TextDecoder();
/** Lines read in one go before the page gets a turn. */
const SLICE = 2000;

/**
 * The entries whose line holds the text, upper and lower case alike. JSON spells quotes, backslashes and line feeds with a backslash; so does the
 * text that is looked for.
 */
export async function findText(
  bytes: SessionBytes,
  rows: readonly Row[],
  text: string,
  signal: AbortSignal,
): Promise<Set<number>> {
  const needle = JSON.stringify(text).slice(1, -1).toLowerCase();
  const found = new Set<number>();
  for (let at = 0; at < rows.length; at += SLICE) {
    for (const row of rows.slice(at, at + SLICE)) {
      if (decoder.decode(bytes.line(row)).toLowerCase().includes(needle)) found.add(row.seq);
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
    signal.throwIfAborted();
  }
  return found;
}
