import type { LineKernel } from './lines.js';
import { referenceKernel } from './reference.js';

/** Hashes and checks lines, many at a time. */
export function createKernel(): LineKernel {
  return referenceKernel();
}
