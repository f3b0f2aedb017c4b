// One thread of `verifyFile`: takes part after part of the log, walks it and sends what it found.
import { parentPort, workerData } from 'node:worker_threads';
import { createKernel } from '@nd7/blake3';
import { verifySignatures } from '@nd7/signing';
import { runPart } from '@nd7/verify';
import type { Range } from './cut.js';
import type { WorkerMessage, WorkerTask } from './pool.js';
import { openLog, readRange } from './read.js';

/** Progress is sent once for so many bytes. */
const STEP = 16 << 20;

const { path, ranges, job, turn } = workerData as WorkerTask;
const send = (message: WorkerMessage) => parentPort?.postMessage(message);
const tools = { kernel: createKernel(), verify: verifySignatures };
const file = await openLog(path);
for (let part = Atomics.add(turn, 0, 1); part < ranges.length; part = Atomics.add(turn, 0, 1)) {
  const { from, to } = ranges[part] as Range;
  let sent = 0;
  const onProgress = (done: number) => {
    if (done - sent < STEP && done < to - from) return;
    sent = done;
    send({ part, done });
  };
  send({ part, report: await runPart(job, readRange(file, from, to), { ...tools, onProgress }) });
}
await file.close();
