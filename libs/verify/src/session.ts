import type { LineKernel } from '@nd7/blake3';
import { runPart, verifyParts, type Against } from './parts.js';
import type { SessionReport } from './report.js';

export interface VerifyInput extends Against {
  /** The log's bytes, whole or as they come; chunks of about 1 MiB are quickest. */
  bytes: AsyncIterable<Uint8Array> | Uint8Array;
  kernel: LineKernel;
  /** After each chunk: bytes and entries so far. */
  onProgress?: (bytes: number, entries: number) => void;
  /** Each entry that checks out, in order; `line` is valid during the call only. */
  onEntry?: (seq: number, line: Uint8Array) => void;
}

/**
 * Verifies one session: its log, held against its head and its receipts, in one pass. Answers for any bytes; throws only where
 * reading fails or the session id is none.
 */
export async function verifySession(input: VerifyInput): Promise<SessionReport> {
  const { bytes, kernel, verify, onProgress, onEntry } = input;
  const tools = { kernel, verify, ...(onProgress && { onProgress }), ...(onEntry && { onEntry }) };
  return verifyParts([(job) => runPart(job, bytes, tools)], input);
}
