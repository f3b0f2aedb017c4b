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
  hash(length: number): void;
}

interface Address {
  readonly value: number;
}

/** An instance of its own: its memory, and what it exports. */
function instantiate(): { kernel: Exports; bytes: Uint8Array } {
  compiled ??= new WebAssembly.Module(fromBase64(KERNEL) as Uint8Array<ArrayBuffer>);
  const kernel = new WebAssembly.Instance(compiled).exports as unknown as Exports;
  return { kernel, bytes: new Uint8Array(kernel.memory.buffer) };
}

/** Hashes single values. Null where this host compiles no WebAssembly (a page under a strict policy). */
let single: WeakRef<ReturnType<typeof instantiate>> | null | undefined;

/** BLAKE3 of at most MAX_CHUNK bytes through the kernel; undefined where it cannot be had here. */
export function kernelHash(value: Uint8Array): Uint8Array | undefined {
  if (single === null) return undefined;
  let instance = single?.deref();
  if (instance === undefined) {
    try {
      instance = instantiate();
    } catch {
      single = null;
      return undefined;
    }
    single = new WeakRef(instance);
  }
  const { kernel, bytes } = instance;
  bytes.set(value, kernel.INPUT.value);
  kernel.hash(value.length);
  return bytes.slice(kernel.HASHES.value, kernel.HASHES.value + 32);
}

let shared: WeakRef<LineKernel> | undefined;

/**
 * A kernel for all in this thread who use its results before they await anything. It is held weakly: a process that has come to rest gives its memory
 * back with other garbage, and the next who asks gets another.
 */
export function sharedKernel(): LineKernel {
  let kernel = shared?.deref();
  if (kernel === undefined) {
    kernel = createKernel();
    shared = new WeakRef(kernel);
  }
  return kernel;
}

/**
 * The kernel in WebAssembly with SIMD: four chunks of BLAKE3 at a time, of one line or of several, and the check of each
 * line in the same pass. It needs 12 MiB, whatever it is given. Compiling is synchronous: in a browser, use it in a
 * worker, where the page's policy must allow `wasm-unsafe-eval`.
 */
export function createKernel(): LineKernel {
  const { kernel, bytes } = instantiate();
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
