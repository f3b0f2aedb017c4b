const encoder = new TextEncoder();

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const SEXTETS = new Map([...ALPHABET].map((character, value) => [character.charCodeAt(0), value]));

/** Text as UTF-8 bytes. Lone surrogates become U+FFFD: whoever must keep bytes exactly checks for them first. */
export function utf8(s: string): Uint8Array {
  return encoder.encode(s);
}

/** Bytes as lower-case hex. */
export function toHex(b: Uint8Array): string {
  let text = '';
  for (const byte of b) text += HEX[byte] ?? '';
  return text;
}

/** The bytes that lower-case hex stands for; `undefined` for anything else, upper case included. */
export function fromHex(s: string): Uint8Array | undefined {
  if (s.length % 2 !== 0) return undefined;
  const bytes = new Uint8Array(s.length / 2);
  for (let i = 0; i < bytes.length; i++) {
    const high = nibble(s.charCodeAt(2 * i));
    const low = nibble(s.charCodeAt(2 * i + 1));
    if (high < 0 || low < 0) return undefined;
    bytes[i] = high * 16 + low;
  }
  return bytes;
}

/** Whether `s` is lower-case hex of exactly `bytes` bytes. */
export function isHex(s: string, bytes: number): boolean {
  if (s.length !== 2 * bytes) return false;
  for (let i = 0; i < s.length; i++) if (nibble(s.charCodeAt(i)) < 0) return false;
  return true;
}

function nibble(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  if (code >= 0x61 && code <= 0x66) return code - 0x57;
  return -1;
}

/** Bytes as base64 of RFC 4648 section 4, padded. */
export function toBase64(b: Uint8Array): string {
  let text = '';
  for (let i = 0; i < b.length; i += 3) {
    const left = b.length - i;
    const group = ((b[i] ?? 0) << 16) | ((b[i + 1] ?? 0) << 8) | (b[i + 2] ?? 0);
    text += ALPHABET.charAt(group >> 18) + ALPHABET.charAt((group >> 12) & 63);
    text += left > 1 ? ALPHABET.charAt((group >> 6) & 63) : '=';
    text += left > 2 ? ALPHABET.charAt(group & 63) : '=';
  }
  return text;
}

/**
 * The bytes that base64 stands for. Only the one canonical text per byte string is taken: padded, no white space, the
 * standard alphabet, unused bits zero. Everything else is `undefined`, so that a text cannot be varied unseen.
 */
export function fromBase64(s: string): Uint8Array | undefined {
  if (s.length % 4 !== 0) return undefined;
  const padding = s.endsWith('==') ? 2 : s.endsWith('=') ? 1 : 0;
  const bytes = new Uint8Array((s.length / 4) * 3 - padding);
  let out = 0;
  for (let i = 0; i < s.length; i += 4) {
    const missing = i + 4 === s.length ? padding : 0;
    let group = 0;
    for (let k = 0; k < 4; k++) {
      const value = k >= 4 - missing ? 0 : SEXTETS.get(s.charCodeAt(i + k));
      if (value === undefined) return undefined;
      group = (group << 6) | value;
    }
    if (missing > 0 && (group & (missing === 2 ? 0xffff : 0xff)) !== 0) return undefined;
    for (let k = 0; k < 3 - missing; k++) bytes[out++] = (group >> (16 - 8 * k)) & 0xff;
  }
  return bytes;
}
