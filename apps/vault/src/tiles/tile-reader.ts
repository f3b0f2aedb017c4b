import { utf8 } from '@nd7/entry';
import { encodeEntryBundle, TILE_WIDTH, tileWidth, type TileAddress } from '@nd7/tlog';
import type { TransactionSql } from 'postgres';
import { readPublished } from '../receipts/receipt-reader.js';
import { readLeaves, type TenantDatabase } from '../sequence/tables.js';

/**
 * A log as the transparency-log world reads it (C2SP tlog-tiles), straight from the rows that receipts are made of. Only what a published
 * checkpoint covers is served: whatever is read here stays true.
 */
export class TileReader {
  constructor(private readonly db: TenantDatabase) {}

  /** The newest checkpoint as a signed note; undefined before the first. */
  checkpoint(team: string): Promise<string | undefined> {
    return this.db.tenant(team, async (tx) => (await readPublished(tx, team))?.note);
  }

  /** The tile's hashes one after the other, or the entry bundle; undefined where the published tree has no such tile, or not so wide. */
  tile(team: string, { level, n, width }: TileAddress): Promise<Uint8Array | undefined> {
    return this.db.tenant(team, async (tx) => {
      const published = await readPublished(tx, team);
      if (published === undefined || tileWidth(level, n, published.size) < width) return undefined;
      const first = n * TILE_WIDTH;
      if (level === 'entries') {
        const leaves = await readLeaves(tx, team, first, first + width);
        return encodeEntryBundle(leaves.map(({ statement }) => utf8(statement)));
      }
      const hashes = await readRow(tx, team, level * 8, first, first + width);
      return Buffer.concat(hashes);
    });
  }
}

/** Hashes [from, to) of one level of the tree. A tile of level L holds hashes of subtrees of 256^L leaves, that is of tree level 8·L. */
async function readRow(
  tx: TransactionSql,
  team: string,
  level: number,
  from: number,
  to: number,
): Promise<Uint8Array[]> {
  const rows =
    level === 0
      ? await tx<{ hash: Uint8Array }[]>`
          select hash from nd7.log_leaf where team = ${team} and leaf_index >= ${String(from)}::bigint and leaf_index < ${String(to)}::bigint order by leaf_index`
      : await tx<{ hash: Uint8Array }[]>`
          select hash from nd7.log_node where team = ${team} and level = ${level} and node_index >= ${String(from)}::bigint and node_index < ${String(to)}::bigint order by node_index`;
  return rows.map(({ hash }) => hash);
}
