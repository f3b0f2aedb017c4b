// The statements of the log's tables, each inside a transaction of one team (`Database.tenant`).
import type { TransactionSql } from 'postgres';
import type { TreeNode } from '@nd7/tlog';
import type { TreeHead } from '../signer/signer.js';
import { list } from './nodes.js';

/** What the log's code needs of the vault's Database. */
export interface TenantDatabase {
  tenant<T>(team: string, work: (tx: TransactionSql) => Promise<T>): Promise<T>;
}

/** Where a log stands, read by one statement. */
export interface LogState {
  /** Newest term of leadership, 0 before the first. */
  epoch: number;
  /** Newest checkpoint, signed or not; undefined for an empty log. */
  tip: (TreeHead & { prior: number }) | undefined;
  /** Size of the newest published checkpoint, 0 before the first. */
  published: number;
  /** Leaf ids up to this one are settled (`floor.ts`). */
  floor: number;
  /** The largest leaf id given out so far, in any team. */
  given: number;
  /** All transactions with a smaller number have ended. */
  running: bigint;
}

export async function readLogState(tx: TransactionSql, team: string): Promise<LogState> {
  const [row] = await tx<
    {
      epoch: string;
      size: string | null;
      prior_size: string | null;
      root: Uint8Array | null;
      queue_floor: string | null;
      published: string;
      given: string;
      running: string;
    }[]
  >`
    select (select coalesce(max(epoch), 0) from nd7.log_epoch where team = ${team})::text as epoch,
           tip.size::text, tip.prior_size::text, tip.root, tip.queue_floor::text,
           (select coalesce(max(size), 0) from nd7.log_publication where team = ${team})::text as published,
           (select case when is_called then last_value else 0 end from nd7.log_queue_leaf_id_seq)::text as given,
           pg_snapshot_xmin(pg_current_snapshot())::text as running,
           set_config('jit', 'off', true)
    from (values (1)) as one
    left join lateral (
      select size, prior_size, root, queue_floor from nd7.log_checkpoint where team = ${team} order by size desc limit 1
    ) as tip on true`;
  if (row === undefined) throw new Error('a select without a row');
  const tip =
    row.size === null || row.root === null
      ? undefined
      : { size: Number(row.size), prior: Number(row.prior_size), root: row.root };
  return {
    epoch: Number(row.epoch),
    tip,
    published: Number(row.published),
    floor: Number(row.queue_floor ?? 0),
    given: Number(row.given),
    running: BigInt(row.running),
  };
}

export interface QueuedLeaf {
  id: string;
  statement: string;
}

/**
 * Statements without an index, oldest id first; those up to `floor` all have one. Written for what lies above the floor to be all that is read: the floor
 * is a value (behind row-level security a subquery is no index condition), the look for an index is a subquery a row and no anti-join (the planner
 * would join the whole log), and nothing is compiled for it (`readLogState` has turned that off).
 */
export async function readQueue(tx: TransactionSql, team: string, floor: number, limit: number): Promise<QueuedLeaf[]> {
  return tx<QueuedLeaf[]>`
    select q.leaf_id::text as id, q.statement from nd7.log_queue q
    where q.team = ${team} and q.leaf_id > ${String(floor)}::bigint
      and (select l.leaf_index from nd7.log_leaf l where l.team = q.team and l.leaf_id = q.leaf_id) is null
    order by q.leaf_id limit ${limit}`;
}

export async function insertLeaves(
  tx: TransactionSql,
  team: string,
  start: number,
  leaves: readonly { id: string; hash: Uint8Array }[],
): Promise<void> {
  await tx`
    insert into nd7.log_leaf (team, leaf_index, leaf_id, hash)
    select ${team}, ${String(start)}::bigint + place - 1, id, decode(hash, 'hex')
    from unnest(string_to_array(${list(leaves.map(({ id }) => id))}, ',')::bigint[], string_to_array(${list(leaves.map(({ hash }) => hex(hash)))}, ',')) with ordinality as given (id, hash, place)`;
}

export async function insertNodes(tx: TransactionSql, team: string, nodes: readonly TreeNode[]): Promise<void> {
  if (nodes.length === 0) return;
  await tx`
    insert into nd7.log_node (team, level, node_index, hash)
    select ${team}, level, node_index, decode(hash, 'hex')
    from unnest(string_to_array(${list(nodes.map(({ level }) => level))}, ',')::smallint[], string_to_array(${list(nodes.map(({ index }) => index))}, ',')::bigint[],
                string_to_array(${list(nodes.map(({ hash }) => hex(hash)))}, ',')) as given (level, node_index, hash)`;
}

/** The compare-and-set. Returns the number of this transaction (`floor.ts`). */
export async function insertCheckpoint(
  tx: TransactionSql,
  team: string,
  checkpoint: TreeHead & { prior: number; epoch: number; floor: number },
): Promise<bigint> {
  const [row] = await tx<{ xact: string }[]>`
    insert into nd7.log_checkpoint (team, size, prior_size, root, epoch, queue_floor)
    values (${team}, ${String(checkpoint.size)}::bigint, ${String(checkpoint.prior)}::bigint, ${Buffer.from(checkpoint.root)}, ${String(checkpoint.epoch)}::bigint, ${String(checkpoint.floor)}::bigint)
    returning pg_current_xact_id()::text as xact`;
  return BigInt(row?.xact ?? 0);
}

/** Signature lines and the publication in one go; refused by the guards when it is published already. */
export async function insertPublication(
  tx: TransactionSql,
  team: string,
  size: number,
  first: number,
  lines: readonly string[],
): Promise<void> {
  await tx`
    insert into nd7.log_signature (team, size, position, line)
    select ${team}, ${String(size)}::bigint, place - 1, line from unnest(string_to_array(${lines.join('\n')}, E'\n')) with ordinality as given (line, place)`;
  await tx`insert into nd7.log_publication (team, size, first_index, lines) values (${team}, ${String(size)}::bigint, ${String(first)}::bigint, ${lines.length})`;
}

export interface StoredLeaf {
  index: number;
  hash: Uint8Array;
  statement: string;
}

export async function readLeaves(tx: TransactionSql, team: string, from: number, to: number): Promise<StoredLeaf[]> {
  const rows = await tx<{ index: string; hash: Uint8Array; statement: string }[]>`
    select l.leaf_index::text as index, l.hash, q.statement
    from nd7.log_leaf l join nd7.log_queue q on q.team = l.team and q.leaf_id = l.leaf_id
    where l.team = ${team} and l.leaf_index >= ${String(from)}::bigint and l.leaf_index < ${String(to)}::bigint order by l.leaf_index`;
  return rows.map((row) => ({ ...row, index: Number(row.index) }));
}

export async function readVkeys(tx: TransactionSql, team: string): Promise<string[]> {
  const rows = await tx<{ vkey: string }[]>`select vkey from nd7.log_key where team = ${team} order by position`;
  return rows.map(({ vkey }) => vkey);
}

/** The origin the log was made with, undefined where the team has none. */
export async function readOrigin(tx: TransactionSql, team: string): Promise<string | undefined> {
  const [row] = await tx<{ origin: string }[]>`select origin from nd7.log where team = ${team}`;
  return row?.origin;
}

/** Whether the database holds exactly this head, as it must for everything that was signed. */
export async function holdsHead(tx: TransactionSql, team: string, head: TreeHead): Promise<boolean> {
  if (head.size === 0) return true;
  const rows =
    await tx`select from nd7.log_checkpoint where team = ${team} and size = ${String(head.size)}::bigint and root = ${Buffer.from(head.root)}`;
  return rows.length > 0;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
