// Reading what line after line says again, by comparing bytes instead of making texts.
import type { Members } from '@nd7/chain';
import { isTime } from '@nd7/entry';

const ZERO = 0x30;
/** Texts up to so many bytes are remembered, one of each length: those that alternate from line to line mostly differ in it. */
const LONGEST = 64;

/** The texts of short values, each made once as long as the next of its length is the same. */
export class Repeated {
  readonly #raw = new Uint8Array((LONGEST + 1) * LONGEST);
  readonly #texts: (string | undefined)[] = Array.from({ length: LONGEST + 1 }, () => undefined);

  /** The value of the member the cursor stands on: as `Members.text`. */
  text(members: Members, limit: number): string | null {
    const { bytes, valueStart, valueEnd } = members;
    const length = valueEnd - valueStart - 2;
    if (length > LONGEST || length < 0 || !members.isString()) return members.text(limit);
    const from = length * LONGEST;
    const known = this.#texts[length];
    if (known !== undefined && length <= limit) {
      let i = 0;
      while (i < length && this.#raw[from + i] === bytes[valueStart + 1 + i]) i += 1;
      if (i === length) return known;
    }
    const text = members.text(limit);
    // With an escape or beyond ASCII it is shorter than its bytes: such a one is not remembered.
    if (text?.length === length) {
      for (let i = 0; i < length; i += 1) this.#raw[from + i] = bytes[valueStart + 1 + i] as number;
      this.#texts[length] = text;
    }
    return text;
  }
}

/** `YYYY-MM-DDTHH:MM:` and `SS.mmmZ`. */
const [MINUTE, TIME] = [17, 24];

/** Times, whose minute mostly is the one of the line before. */
export class TimeReader {
  readonly #raw = new Uint8Array(MINUTE);
  /** Milliseconds since 1970 at the beginning of the minute in `#raw`; NaN before the first. */
  #minute = NaN;

  /** Milliseconds since 1970; NaN where the value is no `time` (docs/format.md). */
  read(members: Members): number {
    const { bytes, valueStart } = members;
    const at = valueStart + 1;
    if (members.valueEnd - valueStart - 2 === TIME && members.isString() && this.#isSameMinute(bytes, at)) {
      const ms = withinMinute(bytes, at + MINUTE);
      if (!Number.isNaN(ms)) return this.#minute + ms;
    }
    const text = members.text(TIME);
    if (text === null || !isTime(text)) return NaN;
    const time = Date.parse(text);
    // As many bytes as characters: nothing of it is escaped.
    if (members.valueEnd - valueStart - 2 === TIME) {
      for (let i = 0; i < MINUTE; i += 1) this.#raw[i] = bytes[at + i] as number;
      this.#minute = Math.floor(time / 60_000) * 60_000;
    }
    return time;
  }

  #isSameMinute(bytes: Uint8Array, at: number): boolean {
    for (let i = 0; i < MINUTE; i += 1) if (bytes[at + i] !== this.#raw[i]) return false;
    return !Number.isNaN(this.#minute);
  }
}

/** Milliseconds that `SS.mmmZ` says; NaN where it says something else. */
function withinMinute(bytes: Uint8Array, at: number): number {
  const digit = (place: number): number => {
    const value = (bytes[at + place] as number) - ZERO;
    return value >= 0 && value <= 9 ? value : NaN;
  };
  const ms = digit(0) * 10_000 + digit(1) * 1000 + digit(3) * 100 + digit(4) * 10 + digit(5);
  return ms < 60_000 && bytes[at + 2] === 0x2e && bytes[at + 6] === 0x5a ? ms : NaN;
}
