// One thread of `Checkers`: checks the segments it is sent, and says of each what it found.
import { parentPort } from 'node:worker_threads';
import type { ProblemCode, ProblemExtra } from '@nd7/vault-api';
import { Problem } from '../http/problem.js';
import { checkSegment, type CheckJob, type Found } from './check.js';
import { Kernel } from './kernel.js';

/** What comes in, and what goes out: an error keeps its class no further than its thread. */
export interface CheckRequest {
  id: number;
  job: CheckJob;
}
export type CheckAnswer = { id: number } & (
  { found: Found } | { problem: { code: ProblemCode; detail: string; extra: ProblemExtra } } | { failed: string }
);

const kernel = new Kernel();

async function answerTo({ id, job }: CheckRequest): Promise<CheckAnswer> {
  try {
    return { id, found: await checkSegment(job, (work) => kernel.use(work)) };
  } catch (error) {
    if (!(error instanceof Problem)) return { id, failed: error instanceof Error ? error.message : String(error) };
    const { code, detail, extra } = error;
    return { id, problem: { code, detail, extra } };
  }
}

parentPort?.on('message', (request: CheckRequest) => {
  void answerTo(request).then((answer) => parentPort?.postMessage(answer));
});
