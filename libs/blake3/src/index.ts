/**
 * BLAKE3 of many lines at once, and the strict check of each line (docs/format.md): length, UTF-8, JSON, no key twice.
 *
 * It promises the same hashes and faults from both kernels on any bytes, one copy and one call per chunk, linear time
 * and bounded memory whatever the bytes say. It compares links and
 * numbers with those it is told to expect; what they mean, and seals, is `@nd7/chain`'s.
 * Called by the chain's walk, in Node, in workers and in the browser.
 */
export { createKernel, sharedKernel } from './kernel.js';
export { referenceKernel } from './reference.js';
export { blake3, blake3Hex, blake3Stream } from './value.js';
export { CLOCK_LENGTH, FAULT_REASONS, MAX_CHUNK, MAX_HEAD, MAX_HEADS } from './lines.js';
export type { LineKernel, LineRun, LineScan, LinkBefore } from './lines.js';
