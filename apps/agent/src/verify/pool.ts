// Verifies a log file: a small one here, a large one cut into parts that are walked side by side.
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
export interface WorkerTask extends Range {
  path: string;
  job: PartJob;
}
export type WorkerMessage = { done: number } | { report: PartReport };

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
    const ranges = await cutAtLines(file, size, threads);
    const done = ranges.map(() => 0);
    const progress = (i: number, bytes: number) => {
      done[i] = bytes;
      options.onProgress?.(
        done.reduce((a, b) => a + b, 0),
        size,
      );
    };
    const parts = ranges.map((range, i) => {
      if (i > 0) return (job: PartJob) => inWorker({ ...range, path, job }, (bytes) => progress(i, bytes));
      const tools = {
        kernel: own,
        verify: verifySignatures,
        onProgress: (bytes: number) => progress(0, bytes),
      };
      return (job: PartJob) =>
        runPart(job, readRange(file, range.from, range.to), { ...tools, ...(onEntry && { onEntry }) });
    });
    return await verifyParts(parts, { ...options, verify: verifySignatures });
  } finally {
    await file.close();
  }
}

function inWorker(task: WorkerTask, onProgress: (bytes: number) => void): Promise<PartReport> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: task });
    let report: PartReport | undefined;
    worker.on('message', (message: WorkerMessage) => {
      if ('report' in message) report = message.report;
      else onProgress(message.done);
    });
    worker.on('error', reject);
    worker.on('exit', (code) => {
      if (report !== undefined) resolve(report);
      else reject(new Error(`a verifying thread ended with code ${code}`));
    });
  });
}
