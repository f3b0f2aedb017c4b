// Verifies a log file: a small one here, a large one cut into parts that several threads take one after the other.
import type { FileHandle } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { availableParallelism } from 'node:os';
import { createKernel, type LineKernel } from '@nd7/blake3';
import { verifySignatures } from '@nd7/signing';
import { runPart, verifyParts, type Against, type PartJob, type PartReport, type SessionReport } from '@nd7/verify';
import { cutAtLines, placesOf, type Range } from './cut.js';
import { openLog, readRange, settledSize } from './read.js';

/** Below this a second thread costs more than it gives. */
const WORTH_A_THREAD = 32 << 20;
/** A thread needs about 30 MB. */
const MOST_THREADS = 4;
export interface FileOptions extends Omit<Against, 'verify'> {
  /** A recorder may be writing: bytes after the last newline are given a moment to become an entry. */
  isLive?: boolean;
  /** How many threads walk; absent: as many as the file is worth and the machine has. */
  threads?: number;
  /** Bytes done and bytes in all. */
  onProgress?: (done: number, total: number) => void;
  /** Each good entry in order; only one thread then walks. */
  onEntry?: (seq: number, line: Uint8Array) => void;
}

/** What a worker is started with, and what it sends. */
export interface WorkerTask {
  path: string;
  ranges: readonly Range[];
  /** Of all parts but the first. */
  job: PartJob;
  /** The number of the next part that nobody has taken: whoever counts it up has it. */
  turn: Int32Array;
}
export type WorkerMessage = { part: number } & ({ done: number } | { report: PartReport });

/** One for this thread: a walk is done with a kernel's answer before it waits for anything. */
let kernel: LineKernel | undefined;

/** Verifies the log at `path`. Throws only where the file cannot be read. */
export async function verifyFile(path: string, options: FileOptions): Promise<SessionReport> {
  const { isLive = false, onEntry } = options;
  const own = (kernel ??= createKernel());
  const file = await openLog(path);
  try {
    const size = await settledSize(file, isLive);
    const worth = Math.min(availableParallelism(), MOST_THREADS, Math.floor(size / WORTH_A_THREAD));
    const threads = onEntry === undefined ? Math.max(1, options.threads ?? worth) : 1;
    const ranges = await cutAtLines(file, size, threads === 1 ? [] : placesOf(size, threads));
    const done = ranges.map(() => 0);
    const onProgress = (part: number, bytes: number) => {
      done[part] = bytes;
      options.onProgress?.(
        done.reduce((a, b) => a + b, 0),
        size,
      );
    };
    const walkers = new Walkers({ path, file, ranges, threads, kernel: own, onProgress, ...(onEntry && { onEntry }) });
    const runs = ranges.map(() => (job: PartJob) => walkers.report(job));
    try {
      return await verifyParts(runs, { ...options, verify: verifySignatures });
    } finally {
      await walkers.ended;
    }
  } finally {
    await file.close();
  }
}

interface Walk {
  path: string;
  file: FileHandle;
  ranges: readonly Range[];
  threads: number;
  kernel: LineKernel;
  onProgress: (part: number, bytes: number) => void;
  onEntry?: (seq: number, line: Uint8Array) => void;
}

/** What a part is walked for, and who waits for what it says. */
interface Part {
  job: PartJob;
  resolve: (report: PartReport) => void;
  reject: (error: unknown) => void;
}

/** The threads that walk one log, this one among them: each takes the next part that nobody has taken until there is none. */
class Walkers {
  readonly #parts: Part[] = [];
  /** The first part is this thread's. */
  readonly #turn = new Int32Array(new SharedArrayBuffer(4)).fill(1);
  /** When this thread takes no more; never rejects. */
  ended: Promise<void> | undefined;

  constructor(readonly walk: Walk) {}

  /** What the next part says. Walking begins when all have been asked for. */
  report(job: PartJob): Promise<PartReport> {
    return new Promise((resolve, reject) => {
      this.#parts.push({ job, resolve, reject });
      if (this.#parts.length === this.walk.ranges.length) this.#begin();
    });
  }

  #begin(): void {
    const { threads, ranges } = this.walk;
    const later = this.#parts[1]?.job;
    for (let i = 1; i < Math.min(threads, ranges.length) && later !== undefined; i++) this.#start(later);
    this.ended = this.#walkHere().catch((error: unknown) => this.#fail(error));
  }

  async #walkHere(): Promise<void> {
    const { file, ranges, kernel, onEntry } = this.walk;
    for (let i = 0; i < ranges.length; i = Atomics.add(this.#turn, 0, 1)) {
      const { from, to } = ranges[i] as Range;
      const { job, resolve } = this.#parts[i] as Part;
      const onProgress = (bytes: number) => this.walk.onProgress(i, bytes);
      const tools = { kernel, verify: verifySignatures, onProgress, ...(onEntry && { onEntry }) };
      resolve(await runPart(job, readRange(file, from, to), tools));
    }
  }

  #start(job: PartJob): void {
    const { path, ranges } = this.walk;
    const workerData: WorkerTask = { path, ranges, job, turn: this.#turn };
    const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData });
    worker.on('message', (message: WorkerMessage) => {
      if ('report' in message) this.#parts[message.part]?.resolve(message.report);
      else this.walk.onProgress(message.part, message.done);
    });
    worker.on('error', (error) => this.#fail(error));
    worker.on('exit', (code) => {
      if (code !== 0) this.#fail(new Error(`a verifying thread ended with code ${String(code)}`));
    });
  }

  /** Nobody takes another part, and whoever waits is told. */
  #fail(error: unknown): void {
    Atomics.store(this.#turn, 0, this.walk.ranges.length);
    for (const { reject } of this.#parts) reject(error);
  }
}
