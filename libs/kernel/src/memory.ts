import { cLibrary } from './library.js';

/**
 * Gives memory that was freed back to the system (`malloc_trim(3)`): after a burst of work glibc keeps what it may need again, which in a process that rests for
 * hours is only in the way. True when some was given back; false where the C library has no such call.
 */
export function releaseFreedMemory(): boolean {
  try {
    return (cLibrary().malloc_trim?.(0) ?? 0) === 1;
  } catch {
    return false; // no koffi here: then nothing else of it was used either
  }
}
