import type { Clock, Random } from '@nd7/entry';
import { createHash, randomBytes } from 'node:crypto';

/** The operating system's randomness. */
export const systemRandom: Random = (bytes) => new Uint8Array(randomBytes(bytes));

/** The operating system's clock. */
export const systemClock: Clock = { now: () => Date.now() };

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(createHash('sha256').update(bytes).digest());
}

/** SHA-256 as 64 hex. */
export function sha256Hex(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
