/** A place in a list of pieces to cut back to. */
export interface Mark {
  count: number;
  end: number;
}

/**
 * What stays of a text, as ranges of it with literals between. Neighbouring ranges are joined, so that a payload without white space between its
 * tokens is one piece however many tokens it has.
 */
export class Pieces {
  /** Start of each piece; a literal character as its negative code, -1 for `null`. */
  #starts: number[] = [];
  #ends: number[] = [];

  constructor(readonly text: string) {}

  range(start: number, end: number): void {
    const last = this.#ends.length - 1;
    if (last >= 0 && this.#ends[last] === start && (this.#starts[last] as number) >= 0) this.#ends[last] = end;
    else this.#push(start, end);
  }

  /** A separator: taken from the text where it follows the last piece directly. */
  separator(code: number): void {
    const last = this.#ends.length - 1;
    const at = this.#ends[last] as number;
    if (last >= 0 && (this.#starts[last] as number) >= 0 && this.text.charCodeAt(at) === code)
      this.#ends[last] = at + 1;
    else this.#push(-code, -1);
  }

  null(): void {
    this.#push(-1, -1);
  }

  #push(start: number, end: number): void {
    this.#starts.push(start);
    this.#ends.push(end);
  }

  mark(): Mark {
    return { count: this.#starts.length, end: this.#ends[this.#ends.length - 1] ?? -1 };
  }

  cut({ count, end }: Mark): void {
    this.#starts.length = count;
    this.#ends.length = count;
    if (count > 0) this.#ends[count - 1] = end;
  }

  toString(): string {
    let joined = '';
    for (const [i, start] of this.#starts.entries()) {
      joined +=
        start >= 0 ? this.text.slice(start, this.#ends[i]) : start === -1 ? 'null' : String.fromCharCode(-start);
    }
    return joined;
  }
}
