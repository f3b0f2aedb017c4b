import type { Proof } from '../../check/proofs.js';
import { verifyInWorker } from '../../check/worker-client.js';
import type { SessionResult } from '../../worker/protocol.js';

/** Checks a log that lies on this machine. It is read piece by piece and goes to the worker, nowhere else. */
export async function verifyFiles(
  input: { log: File; head?: File | undefined; receipts: readonly File[]; session: string; vkeys: readonly string[] },
  progress: (bytes: number) => void,
  signal: AbortSignal,
): Promise<{ result: Proof<SessionResult>; receipts: Uint8Array[] }> {
  const receipts = await Promise.all(input.receipts.map(bytesOf));
  const head = input.head === undefined ? undefined : await bytesOf(input.head);
  const feed = verifyInWorker(
    { session: input.session, head, receipts, vkeys: input.vkeys, now: Date.now() },
    progress,
  );
  feed.result.catch(() => undefined);
  signal.addEventListener('abort', () => {
    feed.stop();
  });
  const reader = input.log.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    signal.throwIfAborted();
    await feed.push(value);
  }
  feed.end();
  return { result: await feed.result, receipts };
}

async function bytesOf(file: File): Promise<Uint8Array> {
  return new Uint8Array(await file.arrayBuffer());
}
