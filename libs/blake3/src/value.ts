import { blake3 as nobleBlake3 } from '@noble/hashes/blake3.js';
import { toHex } from '@nd7/entry';
import { kernelHash } from './kernel.js';
import { MAX_CHUNK } from './lines.js';

/** Below this a call into the kernel gains nothing. */
const WORTH_IT = 256;

/**
 * Plain BLAKE3 of one value, 32 bytes: through the kernel up to MAX_CHUNK bytes, by noble beyond and where WebAssembly cannot be had. Lines go through
 * a kernel of their own, many at once.
 */
export function blake3(bytes: Uint8Array): Uint8Array {
  if (bytes.length < WORTH_IT || bytes.length > MAX_CHUNK) return nobleBlake3(bytes);
  return kernelHash(bytes) ?? nobleBlake3(bytes);
}

/** Plain BLAKE3, as hex, of what comes in pieces and is too large to be held; slow (10 to 17 MB/s). */
export function blake3Stream(): { update(bytes: Uint8Array): void; hex(): string } {
  const hash = nobleBlake3.create();
  return { update: (bytes) => void hash.update(bytes), hex: () => toHex(hash.digest()) };
}

/** Plain BLAKE3 as 64 lower-case hex digits. */
export function blake3Hex(bytes: Uint8Array): string {
  return toHex(blake3(bytes));
}
