// One thread of `verifyFile`: walks the parts of the log it is given and sends what it found.
import { parentPort } from 'node:worker_threads';
import { createKernel } from '@nd7/blake3';
import { verifySignatures } from '@nd7/signing';
import { runPart } from '@nd7/verify';
import type { WorkerMessage, WorkerTask } from './pool.js';
import { openLog, readRange } from './read.js';

/** Progress is sent once for so many bytes. */
const STEP = 8 << 20;

const kernel = createKernel();
const send = (message: WorkerMessage) => parentPort?.postMessage(message);

async function walk({ path, from, to, job }: WorkerTask): Promise<void> {
  const file = await openLog(path);
  try {
    let sent = 0;
    const report = await runPart(job, readRange(file, from, to), {
      kernel,
      verify: verifySignatures,
      onProgress(done) {
        if (done - sent < STEP) return;
        sent = done;
        send({ done });
      },
    });
    send({ report });
  } finally {
    await file.close();
  }
}

// A part that cannot be read ends the thread with its error, which its owner hears.
parentPort?.on('message', (task: WorkerTask) => void walk(task));
