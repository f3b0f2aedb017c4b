/**
 * BLAKE3 of many lines at once, and the strict check of each line (docs/format.md): length, UTF-8, JSON, no key twice.
 *
 * It promises the same hashes and faults from both kernels on any bytes, one copy and one call per chunk, linear time
 * and bounded memory whatever the bytes say. It knows nothing of links, numbers or seals: `@nd7/chain` does.
 * Called by the chain's walk, in Node, in workers and in the browser.
 */
export { createKernel, sharedKernel } from './kernel.js';
export { referenceKernel } from './reference.js';
export { blake3, blake3Hex, blake3Stream } from './value.js';
export { FAULT_REASONS, MAX_CHUNK } from './lines.js';
export type { LineKernel, LineScan } from './lines.js';
