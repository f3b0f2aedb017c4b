// Hellos of TLS, part by part: right ones, and such as no client would send.
const u8 = (n: number): number[] => [n & 255];
const u16 = (n: number): number[] => [(n >> 8) & 255, n & 255];
const u24 = (n: number): number[] => [(n >> 16) & 255, ...u16(n)];
const vector = (size: (n: number) => number[], bytes: number[]): number[] => [...size(bytes.length), ...bytes];
export const ascii = (text: string): number[] => [...Buffer.from(text, 'latin1')];

export const name = (text: string, type = 0): number[] => [type, ...vector(u16, ascii(text))];
export const extension = (type: number, body: number[]): number[] => [...u16(type), ...vector(u16, body)];
export const serverName = (...names: number[][]): number[] => extension(0, vector(u16, names.flat()));

interface Parts {
  extensions?: number[] | undefined;
  session?: number[];
  ciphers?: number[];
  compression?: number[];
}
export function hello({
  extensions = serverName(name('api.example.com')),
  session = [],
  ciphers = [0x13, 1],
  compression = [0],
}: Parts = {}): number[] {
  return [
    3,
    3,
    ...Array<number>(32).fill(7),
    ...vector(u8, session),
    ...vector(u16, ciphers),
    ...vector(u8, compression),
    ...vector(u16, extensions),
  ];
}
export const handshake = (body: number[], type = 1): number[] => [type, ...vector(u24, body)];
export const record = (fragment: number[], type = 22): Uint8Array =>
  Uint8Array.from([type, 3, 1, ...vector(u16, fragment)]);
export const whole = (body: number[]): Uint8Array => record(handshake(body));
