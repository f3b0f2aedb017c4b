import { blake3 as nobleBlake3 } from '@noble/hashes/blake3.js';
import { MAX_LINE, parseStrictJson } from '@nd7/entry';
import { checkChunk, Fault, type LineKernel, type LineScan, MAX_LINES } from './lines.js';

const NEWLINE = 0x0a;
const NUMBER_OF = {
  'not-utf8': Fault.notUtf8,
  'bad-json': Fault.badJson,
  'duplicate-key': Fault.duplicateKey,
} as const;

/**
 * The same answers as `createKernel`, from other code: noble's BLAKE3 and the parser of `@nd7/entry`. Fifty times
 * slower; for tests, and for hosts without WebAssembly.
 */
export function referenceKernel(): LineKernel {
  return { scan };
}

function scan(chunk: Uint8Array): LineScan {
  checkChunk(chunk);
  const ends: number[] = [];
  let consumed = 0;
  let next = chunk.indexOf(NEWLINE);
  for (; next >= 0 && ends.length < MAX_LINES; next = chunk.indexOf(NEWLINE, consumed)) {
    consumed = next + 1;
    ends.push(consumed);
  }
  const hashes = new Uint8Array(32 * ends.length);
  const faults = new Uint8Array(ends.length);
  let start = 0;
  ends.forEach((end, i) => {
    const line = chunk.subarray(start, end - 1);
    hashes.set(nobleBlake3(line), 32 * i);
    faults[i] = faultOf(line);
    start = end;
  });
  return { count: ends.length, ends: Uint32Array.from(ends), hashes, faults, consumed, more: next >= 0 };
}

function faultOf(line: Uint8Array): number {
  if (line.length > MAX_LINE) return Fault.tooLong;
  const parsed = parseStrictJson(line, { object: true });
  return parsed.ok ? Fault.ok : NUMBER_OF[parsed.reason];
}
