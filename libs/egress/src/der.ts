// DER (ITU-T X.690), written and never read: as much of it as a certificate needs.

function tagged(tag: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(tag), lengthOf(body.length), body]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes = length < 0x100 ? [length] : [length >> 8, length & 255];
  return Buffer.of(0x80 | bytes.length, ...bytes);
}

export const sequence = (...parts: Uint8Array[]): Buffer => tagged(0x30, ...parts);
export const set = (...parts: Uint8Array[]): Buffer => tagged(0x31, ...parts);
export const octets = (bytes: Uint8Array): Buffer => tagged(0x04, bytes);
export const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text));
export const yes = Buffer.of(0x01, 0x01, 0xff);
/** Whole bytes; `unused` bits at the end of the last one do not count. */
export const bits = (bytes: Uint8Array, unused = 0): Buffer => tagged(0x03, Buffer.of(unused), bytes);
/** A positive number, most significant byte first. */
export const integer = (bytes: Uint8Array): Buffer =>
  tagged(0x02, (bytes[0] as number) >= 0x80 ? Buffer.of(0) : Buffer.alloc(0), bytes);
/** `[n]`, which holds values whole or is one itself. */
export const context = (n: number, ...parts: Uint8Array[]): Buffer => tagged(0xa0 | n, ...parts);
export const contextText = (n: number, text: string): Buffer => tagged(0x80 | n, Buffer.from(text, 'latin1'));
export const contextBytes = (n: number, bytes: Uint8Array): Buffer => tagged(0x80 | n, bytes);

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(0x06, Buffer.from([40 * first + second, ...rest].flatMap(base128)));
}

function base128(value: number): number[] {
  const bytes = [value & 127];
  for (let left = value >>> 7; left > 0; left >>>= 7) bytes.unshift(0x80 | (left & 127));
  return bytes;
}

/** RFC 5280 section 4.1.2.5: with two digits for the year until 2049, with four from then on. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().replaceAll(/[-:T]|\.\d+/g, '')}`;
  return date.getUTCFullYear() < 2050 ? tagged(0x17, Buffer.from(digits.slice(2))) : tagged(0x18, Buffer.from(digits));
}
