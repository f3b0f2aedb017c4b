/// <reference path="../../entry/src/platform.d.ts" />
import { fromBase64 } from '@nd7/entry';
import { KERNEL } from './kernel.generated.js';
import { checkChunk, checkHead, CLOCK_LENGTH, MAX_HEAD, MAX_HEADS, type LineKernel } from './lines.js';

/** Compiled once per process (or worker); instances are cheap. */
let compiled: WebAssembly.Module | undefined;

interface Exports {
  memory: WebAssembly.Memory;
  INPUT: Address;
  ENDS: Address;
  FAULTS: Address;
  HASHES: Address;
  SEED: Address;
  DIGITS: Address;
  BEFORE: Address;
  HEADS: Address;
  TALLY: Address;
  scan(length: number, check: number): number;
  hasMore(): number;
  run(from: number, count: number, width: number): number;
  lastHead(): number;
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

/** As `layout.ts` has it: length and clock, the bytes, the mask of those that are compared. */
const HEAD_RAW = 16;
const HEAD_SIZE = HEAD_RAW + 2 * MAX_HEAD;

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
  const digitsAt = kernel.DIGITS.value;
  const beforeAt = kernel.BEFORE.value;
  const heads = new Uint32Array(kernel.memory.buffer, kernel.TALLY.value, MAX_HEADS);
  let scanned = 0;
  let learned = 0;
  // The set of keys hashes with a secret, so that nobody can choose keys that collide. No verdict depends on it.
  crypto.getRandomValues(bytes.subarray(kernel.SEED.value, kernel.SEED.value + 16));
  return {
    scan(chunk) {
      checkChunk(chunk);
      bytes.set(chunk, input);
      const count = kernel.scan(chunk.length, 1);
      scanned = count;
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
    run(from, { digits, width, hash }) {
      bytes.set(digits, digitsAt);
      bytes.set(hash, beforeAt);
      const count = kernel.run(from, scanned, width);
      return { count, heads, last: kernel.lastHead() };
    },
    learn(head, clock) {
      checkHead(head, clock);
      const number = learned++ % MAX_HEADS;
      const slot = kernel.HEADS.value + HEAD_SIZE * number;
      new DataView(kernel.memory.buffer, slot, 8).setUint32(0, head.length, true);
      new DataView(kernel.memory.buffer, slot, 8).setUint32(4, clock, true);
      bytes.set(head, slot + HEAD_RAW);
      const mask = bytes.subarray(slot + HEAD_RAW + MAX_HEAD, slot + HEAD_SIZE);
      mask
        .fill(0)
        .fill(0xff, 0, head.length)
        .fill(0, clock, clock + CLOCK_LENGTH);
      return number;
    },
  };
}
