// One thread of `verifyFile`: walks its part of the log and sends what it found.
import { parentPort, workerData } from 'node:worker_threads';
import { createKernel } from '@nd7/blake3';
import { verifySignatures } from '@nd7/signing';
import { runPart } from '@nd7/verify';
import type { WorkerMessage, WorkerTask } from './pool.js';
import { openLog, readRange } from './read.js';

/** Progress is sent once for so many bytes. */
const STEP = 16 << 20;

const { path, from, to, job } = workerData as WorkerTask;
const send = (message: WorkerMessage) => parentPort?.postMessage(message);
let sent = 0;
const file = await openLog(path);
const report = await runPart(job, readRange(file, from, to), {
  kernel: createKernel(),
  verify: verifySignatures,
  onProgress(done) {
    if (done - sent < STEP) return;
    sent = done;
    send({ done });
  },
});
await file.close();
send({ report });
