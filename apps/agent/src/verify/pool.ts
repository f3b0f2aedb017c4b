// Verifies a log file: a small one here, a large one cut into parts, each walked by the thread that is free next.
import { Worker } from 'node:worker_threads';
import { availableParallelism } from 'node:os';
import { createKernel, type LineKernel } from '@nd7/blake3';
import { verifySignatures } from '@nd7/signing';
import { runPart, verifyParts, type Against, type PartJob, type PartReport, type SessionReport } from '@nd7/verify';
import { cutAtLines, type Range } from './cut.js';
import { openLog, readRange, settledSize } from './read.js';

/** Below this a second thread costs more than it gives. */
const WORTH_A_THREAD = 32 << 20;
/** A thread needs about 30 MB. */
const MOST_THREADS = 4;
/** With several threads a part is no longer than this: one that starts late or is held up leaves more of them to the others. */
const PART_SIZE = 32 << 20;

export interface FileOptions extends Omit<Against, 'verify'> {
  /** A recorder may be writing: bytes after the last newline are given a moment to become an entry. */
  isLive?: boolean;
  /** How many threads walk; absent: as many as the file is worth and the machine has. */
  threads?: number;
  /** Longest part, in bytes, where several threads walk (32 MB). */
  partSize?: number;
  /** Bytes done and bytes in all. */
  onProgress?: (done: number, total: number) => void;
  /** Each good entry in order; only one thread then walks. */
  onEntry?: (seq: number, line: Uint8Array) => void;
}

/** What a worker is given, one part after the other, and what it sends. */
export interface WorkerTask extends Range {
  path: string;
  job: PartJob;
}
export type WorkerMessage = { done: number } | { report: PartReport };

/** Walks one part. */
type Runner = (range: Range, job: PartJob, onProgress: (bytes: number) => void) => Promise<PartReport>;

/** One for this thread: a walk is done with a kernel's answer before it waits for anything. */
let kernel: LineKernel | undefined;

/** Verifies the log at `path`. Throws only where the file cannot be read. */
export async function verifyFile(path: string, options: FileOptions): Promise<SessionReport> {
  const { isLive = false, onEntry, partSize = PART_SIZE } = options;
  const own = (kernel ??= createKernel());
  const file = await openLog(path);
  try {
    const size = await settledSize(file, isLive);
    const worth = Math.min(availableParallelism(), MOST_THREADS, Math.floor(size / WORTH_A_THREAD));
    const threads = onEntry === undefined ? Math.max(1, options.threads ?? worth) : 1;
    const ranges = await cutAtLines(file, size, threads === 1 ? 1 : Math.max(threads, Math.ceil(size / partSize)));
    const done = ranges.map(() => 0);
    const progress = (i: number, bytes: number) => {
      done[i] = bytes;
      options.onProgress?.(
        done.reduce((a, b) => a + b, 0),
        size,
      );
    };
    const here: Runner = (range, job, onProgress) =>
      runPart(job, readRange(file, range.from, range.to), {
        kernel: own,
        verify: verifySignatures,
        onProgress,
        ...(onEntry && { onEntry }),
      });
    const workers = Array.from({ length: Math.min(threads, ranges.length) - 1 }, () => new PartWorker(path));
    const run = whicheverIsFree([...workers.map((worker) => worker.run), here]);
    try {
      const parts = ranges.map((range, i) => (job: PartJob) => run(range, job, (bytes) => progress(i, bytes)));
      return await verifyParts(parts, { ...options, verify: verifySignatures });
    } finally {
      await Promise.all(workers.map((worker) => worker.end()));
    }
  } finally {
    await file.close();
  }
}

/** Gives each part to the runner that is free next, in order. */
function whicheverIsFree(runners: readonly Runner[]): Runner {
  const free = [...runners];
  const waiting: ((runner: Runner) => void)[] = [];
  return async (...part) => {
    const runner = free.pop() ?? (await new Promise<Runner>((resolve) => waiting.push(resolve)));
    const report = await runner(...part);
    const next = waiting.shift();
    if (next === undefined) free.push(runner);
    else next(runner);
    return report;
  };
}

/** A thread of its own, which walks one part at a time. */
class PartWorker {
  readonly #path: string;
  readonly #worker = new Worker(new URL('./worker.js', import.meta.url));

  constructor(path: string) {
    this.#path = path;
    this.#worker.on('error', () => undefined); // seen by whoever waits for a part
  }

  readonly run: Runner = (range, job, onProgress) =>
    new Promise((resolve, reject) => {
      const worker = this.#worker;
      const over = (): void => {
        worker.off('message', take).off('error', fail).off('exit', gone);
      };
      const take = (message: WorkerMessage): void => {
        if ('done' in message) return onProgress(message.done);
        over();
        resolve(message.report);
      };
      const fail = (error: Error): void => {
        over();
        reject(error);
      };
      const gone = (code: number): void => fail(new Error(`a verifying thread ended with code ${String(code)}`));
      worker.on('message', take).on('error', fail).on('exit', gone);
      worker.postMessage({ ...range, path: this.#path, job } satisfies WorkerTask);
    });

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}
