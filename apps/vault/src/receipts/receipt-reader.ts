import { utf8 } from '@nd7/entry';
import { formatReceipt } from '@nd7/receipt';
import { formatCheckpoint, formatNote, inclusionProof } from '@nd7/tlog';
import type { TransactionSql } from 'postgres';
import { list, nodeReader } from '../sequence/nodes.js';
import type { TenantDatabase } from '../sequence/tables.js';

/** Which checkpoint a receipt is made against: the first that was published with the leaf in it (for ever the same), or the newest. */
export type Against = 'first' | 'newest';

interface ReceiptFacts {
  id: string;
  index: string;
  statement: string;
  origin: string;
  size: string;
  root: Uint8Array;
  lines: string;
}

/**
 * Builds receipts from stored facts only: a leaf's statement and index, a published checkpoint with the signature lines it was published
 * with, and nodes of the tree that are complete and so never change. There is no clock, key or cache in it, which is why the same leaf has
 * the same receipt, byte for byte, whoever asks, whenever.
 */
export class ReceiptReader {
  constructor(private readonly db: TenantDatabase) {}

  /** Receipts by leaf id; a leaf that is not published yet is left out. */
  receipts(team: string, leafIds: readonly bigint[], against: Against = 'first'): Promise<Map<bigint, string>> {
    return this.db.tenant(team, async (tx) => {
      const rows = await readFacts(tx, team, leafIds, against);
      const read = nodeReader(tx, team);
      // All proofs at once, so that the reader fetches their nodes together.
      const receipts = await Promise.all(
        rows.map(async (row): Promise<[bigint, string]> => {
          const [index, size] = [Number(row.index), Number(row.size)];
          const note = formatNote(
            formatCheckpoint({ origin: row.origin, size, root: row.root }),
            row.lines.split('\n'),
          );
          return [
            BigInt(row.id),
            formatReceipt(utf8(row.statement), index, await inclusionProof(index, size, read), note),
          ];
        }),
      );
      return new Map(receipts);
    });
  }

  async receipt(team: string, leafId: bigint, against: Against = 'first'): Promise<string | undefined> {
    return (await this.receipts(team, [leafId], against)).get(leafId);
  }
}

function readFacts(
  tx: TransactionSql,
  team: string,
  leafIds: readonly bigint[],
  against: Against,
): Promise<ReceiptFacts[]> {
  const direction = against === 'newest' ? tx`desc` : tx`asc`;
  return tx<ReceiptFacts[]>`
    select l.leaf_id::text as id, l.leaf_index::text as index, q.statement, log.origin, c.size::text, c.root, s.lines
    from nd7.log_leaf l
    join nd7.log_queue q on q.team = l.team and q.leaf_id = l.leaf_id
    join nd7.log on log.team = l.team
    join lateral (
      select p.size, p.lines from nd7.log_publication p where p.team = l.team and p.size > l.leaf_index
      order by p.size ${direction} limit 1
    ) as p on true
    join nd7.log_checkpoint c on c.team = l.team and c.size = p.size
    join lateral (
      select string_agg(line, E'\n' order by position) as lines from nd7.log_signature g
      where g.team = l.team and g.size = p.size and g.position < p.lines
    ) as s on true
    where l.team = ${team} and l.leaf_id = any (string_to_array(${list(leafIds)}, ',')::bigint[])`;
}

/** The newest published checkpoint as a signed note, with its time; undefined before the first. */
export interface PublishedHead {
  size: number;
  note: string;
  /** Milliseconds since the epoch, by the database's clock. */
  at: number;
}

export async function readPublished(tx: TransactionSql, team: string): Promise<PublishedHead | undefined> {
  const [row] = await tx<{ origin: string; size: string; root: Uint8Array; lines: string; at: number }[]>`
    select log.origin, c.size::text, c.root, (extract(epoch from p.made) * 1000)::float8 as at,
      (select string_agg(line, E'\n' order by position) from nd7.log_signature g where g.team = p.team and g.size = p.size and g.position < p.lines) as lines
    from nd7.log_publication p
    join nd7.log_checkpoint c on c.team = p.team and c.size = p.size
    join nd7.log on log.team = p.team
    where p.team = ${team} order by p.size desc limit 1`;
  if (row === undefined) return undefined;
  const size = Number(row.size);
  return {
    size,
    note: formatNote(formatCheckpoint({ origin: row.origin, size, root: row.root }), row.lines.split('\n')),
    at: Math.floor(Number(row.at)),
  };
}
