import { DetachError } from './failure.js';

/**
 * What a scan meets, in the order of the text. Offsets are UTF-16 units; `extra` is how many bytes more than units the text before that
 * offset takes in UTF-8, so that `end + extra` is an offset in bytes.
 */
export interface ScanEvents {
  open(object: boolean, at: number, extra: number): void;
  close(end: number, extra: number): void;
  /** A key with its quotes. */
  key(start: number, end: number, extra: number): void;
  /** A string with its quotes, a number or a literal. */
  scalar(start: number, end: number, extraBefore: number, extra: number): void;
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

const enum Expect {
  Value,
  ValueOrEnd,
  KeyOrEnd,
  Key,
  Colon,
  CommaOrEnd,
  Nothing,
}

/**
 * Reads JSON (RFC 8259, strictly) without building anything: a payload of 64 MiB of `[0,0,…` would as a tree cost gigabytes, and which few
 * values of it stay in the log is known only at its end. Iterative: depth costs one byte a level. Throws DetachError.
 */
export function scanJson(text: string, events: ScanEvents): void {
  let containers = new Uint8Array(256);
  let depth = 0;
  let expect = Expect.Value;
  let extra = 0;
  let at = 0;
  const fail = (): never => {
    throw new DetachError('bad-json', `not JSON at character ${at}`);
  };

  /** The end of the string that begins at `at`; counts what its characters take in UTF-8. */
  const string = (): number => {
    for (let i = at + 1; ; i++) {
      const c = text.charCodeAt(i);
      if (c === 0x22) return i + 1;
      if (c === 0x5c) {
        const escaped = text.charCodeAt(++i);
        if (escaped === 0x75) {
          for (let k = 1; k <= 4; k++) if (!isHexDigit(text.charCodeAt(i + k))) fail();
          i += 4;
        } else if (!isEscape(escaped)) fail();
      } else if (c < 0x20 || c !== c) fail();
      else if (c > 0x7f) {
        if (c < 0x800) extra += 1;
        else if (c < 0xd800 || c > 0xdfff) extra += 2;
        else {
          const low = text.charCodeAt(i + 1);
          if (c > 0xdbff || !(low >= 0xdc00 && low <= 0xdfff))
            throw new DetachError('bad-text', `a lone surrogate at character ${i}`);
          extra += 2;
          i++;
        }
      }
    }
  };

  for (;;) {
    const c = text.charCodeAt(at);
    if (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) {
      at++;
      continue;
    }
    if (expect === Expect.Nothing) {
      if (at < text.length) fail();
      return;
    }
    if (expect === Expect.Colon) {
      if (c !== 0x3a) fail();
      expect = Expect.Value;
      at++;
    } else if (expect === Expect.CommaOrEnd && c === 0x2c) {
      expect = containers[depth - 1] === 1 ? Expect.Key : Expect.Value;
      at++;
    } else if (
      (expect === Expect.CommaOrEnd || expect === Expect.ValueOrEnd || expect === Expect.KeyOrEnd) &&
      (c === 0x7d || c === 0x5d)
    ) {
      if ((containers[depth - 1] === 1) !== (c === 0x7d)) fail();
      depth--;
      at++;
      events.close(at, extra);
      expect = depth === 0 ? Expect.Nothing : Expect.CommaOrEnd;
    } else if (expect === Expect.CommaOrEnd) {
      fail();
    } else if (expect === Expect.Key || expect === Expect.KeyOrEnd) {
      if (c !== 0x22) fail();
      const end = string();
      events.key(at, end, extra);
      at = end;
      expect = Expect.Colon;
    } else if (c === 0x7b || c === 0x5b) {
      if (depth === containers.length) {
        const more = new Uint8Array(2 * depth);
        more.set(containers);
        containers = more;
      }
      containers[depth++] = c === 0x7b ? 1 : 0;
      events.open(c === 0x7b, at, extra);
      expect = c === 0x7b ? Expect.KeyOrEnd : Expect.ValueOrEnd;
      at++;
    } else {
      const before = extra;
      const end = c === 0x22 ? string() : word(text, at);
      if (end < 0) fail();
      events.scalar(at, end, before, extra);
      at = end;
      expect = depth === 0 ? Expect.Nothing : Expect.CommaOrEnd;
    }
  }
}

/** What a scanned key or string says. `token` is the text with its quotes. */
export function unquote(token: string): string {
  return token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1);
}

/** The end of the number or literal at `at`, -1 for neither. */
function word(text: string, at: number): number {
  for (const literal of ['null', 'true', 'false']) if (text.startsWith(literal, at)) return at + literal.length;
  NUMBER.lastIndex = at;
  return NUMBER.test(text) ? NUMBER.lastIndex : -1;
}

function isHexDigit(c: number): boolean {
  return (c >= 0x30 && c <= 0x39) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66);
}

function isEscape(c: number): boolean {
  return c === 0x22 || c === 0x5c || c === 0x2f || c === 0x62 || c === 0x66 || c === 0x6e || c === 0x72 || c === 0x74;
}
