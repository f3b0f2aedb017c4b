import { vault } from '../api/client.js';
import { checkpointInWorker } from '../check/worker-client.js';
import type { Proof } from '../check/proofs.js';
import { useQuery } from '../ui/query.js';
import type { CheckpointResult } from '../worker/protocol.js';
import { keepSeen, readSeen } from './seen.js';

/** Older than this, the last checkpoint that was checked is called old. */
export const OLD = 5 * 60_000;

export interface Judged {
  result: Proof<CheckpointResult>;
  /** When this browser judged it. */
  at: number;
}

/** Fetches the log's checkpoint and judges it by the pinned key and by what this browser saw before. */
async function judge(team: string, origin: string, vkey: string, signal: AbortSignal): Promise<Judged> {
  const note = await vault.checkpoint(team, signal);
  const before = readSeen(origin);
  const result = await checkpointInWorker(
    { note, vkey, before: before && { size: before.size, root: before.root } },
    (path) => vault.tile(team, path),
  );
  const at = Date.now();
  if (result.ok && result.size !== undefined && result.root !== undefined && result.against !== 'unproved') {
    keepSeen(origin, { size: result.size, root: result.root, note, at });
  }
  return { result, at };
}

/** The checkpoint as the trust bar shows it, judged anew every half minute while the page is looked at. */
export function useCheckpoint(team: string | undefined, origin: string | undefined, vkey: string | undefined) {
  return useQuery({
    queryKey: ['checkpoint', team, origin, vkey],
    queryFn: ({ signal }) => judge(team ?? '', origin ?? '', vkey ?? '', signal),
    enabled: team !== undefined && origin !== undefined && vkey !== undefined,
    refetchInterval: 30_000,
  });
}
