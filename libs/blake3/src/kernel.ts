/// <reference path="../../entry/src/platform.d.ts" />
import { fromBase64 } from '@nd7/entry';
import { KERNEL } from './kernel.generated.js';
import { checkChunk, type LineKernel } from './lines.js';

/** Compiled once per process (or worker); instances are cheap. */
let compiled: WebAssembly.Module | undefined;

interface Exports {
  memory: WebAssembly.Memory;
  INPUT: Address;
  ENDS: Address;
  FAULTS: Address;
  HASHES: Address;
  SEED: Address;
  scan(length: number, check: number): number;
  hasMore(): number;
}

interface Address {
  readonly value: number;
}

/**
 * The kernel in WebAssembly with SIMD: four chunks of BLAKE3 at a time, of one line or of several, and the check of each
 * line in the same pass. It needs 12 MiB, whatever it is given. Compiling is synchronous: in a browser, use it in a
 * worker, where the page's policy must allow `wasm-unsafe-eval`.
 */
export function createKernel(): LineKernel {
  compiled ??= new WebAssembly.Module(fromBase64(KERNEL) as Uint8Array<ArrayBuffer>);
  const kernel = new WebAssembly.Instance(compiled).exports as unknown as Exports;
  const bytes = new Uint8Array(kernel.memory.buffer);
  const input = kernel.INPUT.value;
  const hashesAt = kernel.HASHES.value;
  const faultsAt = kernel.FAULTS.value;
  // The set of keys hashes with a secret, so that nobody can choose keys that collide. No verdict depends on it.
  crypto.getRandomValues(bytes.subarray(kernel.SEED.value, kernel.SEED.value + 16));
  return {
    scan(chunk) {
      checkChunk(chunk);
      bytes.set(chunk, input);
      const count = kernel.scan(chunk.length, 1);
      const ends = new Uint32Array(kernel.memory.buffer, kernel.ENDS.value, count);
      return {
        count,
        ends,
        hashes: bytes.subarray(hashesAt, hashesAt + 32 * count),
        faults: bytes.subarray(faultsAt, faultsAt + count),
        consumed: ends[count - 1] ?? 0,
        more: kernel.hasMore() !== 0,
      };
    },
  };
}
