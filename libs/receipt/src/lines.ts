import { fromBase64, isHex, isSessionId, isTime, utf8 } from '@nd7/entry';
import { textOf as decode } from '@nd7/segment';
import { isOrigin, parseVkey } from '@nd7/tlog';

/** Bytes or text as text; undefined where the bytes are not UTF-8, or the text could not be (half a surrogate pair). */
export function textOf(input: Uint8Array | string): string | undefined {
  if (typeof input === 'string') return /[\ud800-\udfff]/u.test(input) ? undefined : input;
  return decode(input);
}

/** A field that is not of its form; caught where a statement is parsed, seen by nobody else. */
export class BadField extends Error {}

/** The lines of a statement, read one after the other by name. Each reader throws BadField for a field that is not of its form. */
export class Lines {
  private at = 0;

  constructor(private readonly lines: readonly string[]) {}

  /** What follows `name` and one space in the next line. */
  field(name: string): string {
    const line = this.lines[this.at++];
    if (!line?.startsWith(`${name} `)) throw new BadField(name);
    return line.slice(name.length + 1);
  }

  fields(name: string, count: number): string[] {
    const values = this.field(name).split(' ');
    need(values.length === count);
    return values;
  }

  /** Whether the next line is of this name. */
  has(name: string): boolean {
    return this.lines[this.at]?.startsWith(`${name} `) === true;
  }

  end(): void {
    need(this.at === this.lines.length);
  }

  origin(): string {
    return must(this.field('origin'), isOrigin);
  }

  hex(name: string): string {
    return must(this.field(name), isHash);
  }

  session(): string {
    return must(this.field('session'), isSessionId);
  }

  /** A real date and time. The years begin at 0001. */
  time(name: string): string {
    return must(this.field(name), (text) => isTime(text) && !text.startsWith('0000'));
  }

  signature(): string {
    return must(this.field('signature'), isSignature);
  }

  /** A person, as an opaque id of the team. */
  by(): string {
    return must(this.field('by'), (text) => /^u_[0-9a-f]{32}$/.test(text));
  }

  vkey(name: string, origin: string): string {
    return must(this.field(name), (text) => {
      const key = parseVkey(text);
      return key?.type === 1 && key.name === origin;
    });
  }

  count(name: string): number {
    return countOf(this.field(name));
  }
}

/** A count as a number, the nearest double above 2^53 - 1. */
export function countOf(text: string | undefined): number {
  need(text !== undefined && /^(0|[1-9][0-9]{0,15})$/.test(text));
  return Number(text);
}

/** Two counts of which the first is the lower, compared as they are written. */
export function rangeOf(fromText: string | undefined, toText: string | undefined): { from: number; to: number } {
  const [from, to] = [countOf(fromText), countOf(toText)];
  need(BigInt(fromText ?? 0) < BigInt(toText ?? 0));
  return { from, to };
}

export function isHash(text: string | undefined): text is string {
  return text !== undefined && isHex(text, 32);
}

export function isSignature(text: string | undefined): text is string {
  return text !== undefined && fromBase64(text)?.length === 64;
}

export function isRoot(text: string | undefined): text is string {
  return text !== undefined && fromBase64(text)?.length === 32;
}

export function need(ok: boolean): asserts ok {
  if (!ok) throw new BadField();
}

function must(text: string, isGood: (text: string) => boolean): string {
  need(isGood(text));
  return text;
}

/** Whether a text is a statement's whole frame: UTF-8 lines, each ended by "\n", at most 4,096 bytes. */
export function isFramed(text: string): boolean {
  return text.endsWith('\n') && text.length <= MAX_LEAF && utf8(text).length <= MAX_LEAF;
}

/** The longest leaf, in bytes. */
export const MAX_LEAF = 4096;
