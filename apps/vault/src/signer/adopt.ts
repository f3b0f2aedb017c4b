import { toBase64 } from '@nd7/entry';
import { formatStatement } from '@nd7/receipt';
import { emptyRoot } from '@nd7/tlog';
import { holdsHead, readLogState, type TenantDatabase } from '../sequence/tables.js';
import type { EmbeddedSigner } from './embedded.js';
import type { TreeHead } from './signer.js';

export interface Adoption {
  /** What the signer signed last, undefined when it has lost it. */
  old: TreeHead | undefined;
  /** What the database holds. */
  new: TreeHead;
  /** False when the database holds what was signed: then nothing is decided. */
  isNeeded: boolean;
  decided: boolean;
}

/**
 * A person's decision that the log goes on from what the database holds. First the `signer` leaf is queued, then the signer's state is
 * replaced: a crash between the two leaves a decision on record that was not carried out, never one carried out and not on record. The leaf
 * names what the signer had signed; a lost state is written as size 0 with the empty root.
 */
export async function adopt(decision: {
  db: TenantDatabase;
  signer: EmbeddedSigner;
  vaultName: string;
  team: string;
  by: string;
  received: string;
  /** False: only say what would be decided. */
  decide: boolean;
}): Promise<Adoption> {
  const { db, signer, vaultName, team, by, received, decide } = decision;
  const origin = `${vaultName}/${team}`;
  const old = await signer.lastOf(origin);
  const { tip, holds } = await db.tenant(team, async (tx) => ({
    ...(await readLogState(tx, team)),
    holds: old !== undefined && (await holdsHead(tx, team, old)),
  }));
  const next: TreeHead = tip === undefined ? { size: 0, root: emptyRoot } : { size: tip.size, root: tip.root };
  if (holds || !decide) return { old, new: next, isNeeded: !holds, decided: false };
  const before = old ?? { size: 0, root: emptyRoot };
  const statement = formatStatement({
    type: 'signer',
    origin,
    old: { size: before.size, root: toBase64(before.root) },
    new: { size: next.size, root: toBase64(next.root) },
    by,
    received,
  });
  // Past the check of enqueue: it is this leaf that the check waits for.
  await db.tenant(team, (tx) => tx`select nd7.log_enqueue(${team}, ${statement}, 0, ${Buffer.from(emptyRoot)})`);
  await signer.adopt(origin, old, next);
  return { old, new: next, isNeeded: true, decided: true };
}
