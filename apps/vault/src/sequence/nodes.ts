// The tree's hashes as they are stored: leaves in log_leaf, complete subtrees above them in log_node.
import type { HashReader, TreeNode } from '@nd7/tlog';
import type { TransactionSql } from 'postgres';
import { LogError } from './log-error.js';

/**
 * Reads nodes inside a transaction. Nodes asked for in one turn of the event loop are fetched by one statement (a proof asks for all of
 * its nodes at once), and each is fetched once. A node that is not stored is a LogError `corrupt`.
 */
export function nodeReader(tx: TransactionSql, team: string): HashReader {
  const known = new Map<string, Promise<Uint8Array>>();
  let waiting: { level: number; index: number; done: (hash: Uint8Array) => void; failed: (error: unknown) => void }[] =
    [];

  const fetch = async (): Promise<void> => {
    const asked = waiting;
    waiting = [];
    try {
      const found = await readNodes(tx, team, asked);
      for (const { level, index, done, failed } of asked) {
        const hash = found.get(nodeName(level, index));
        if (hash === undefined)
          failed(new LogError('corrupt', `log ${team}: node ${nodeName(level, index)} is not stored`));
        else done(hash);
      }
    } catch (error) {
      for (const { failed } of asked) failed(error);
    }
  };

  return (level, index) => {
    const name = nodeName(level, index);
    const before = known.get(name);
    if (before !== undefined) return before;
    const node = new Promise<Uint8Array>((done, failed) => {
      if (waiting.length === 0) queueMicrotask(() => void fetch());
      waiting.push({ level, index, done, failed });
    });
    known.set(name, node);
    return node;
  };
}

/** The complete subtrees a tree of `size` leaves consists of, largest first: all that appending to it and its root need. */
export function rightEdge(size: number): { level: number; index: number }[] {
  const nodes: { level: number; index: number }[] = [];
  let [rest, start] = [size, 0];
  for (let level = 52; level >= 0; level -= 1) {
    const width = 2 ** level;
    if (rest < width) continue;
    nodes.push({ level, index: start / width });
    [rest, start] = [rest - width, start + width];
  }
  return nodes;
}

/** A reader over nodes at hand, and behind them another. */
export function readerOf(nodes: Iterable<TreeNode>, behind?: HashReader): HashReader {
  const held = new Map<string, Uint8Array>();
  for (const { level, index, hash } of nodes) held.set(nodeName(level, index), hash);
  return (level, index) => {
    const hash = held.get(nodeName(level, index));
    if (hash !== undefined) return hash;
    if (behind === undefined) throw new LogError('corrupt', `node ${nodeName(level, index)} is not there`);
    return behind(level, index);
  };
}

export function nodeName(level: number, index: number): string {
  return `${String(level)}/${String(index)}`;
}

/** Lists go to the database as one text each, which needs no knowledge of array types in the driver. */
export function list(values: readonly (number | bigint | string)[]): string {
  return values.join(',');
}

async function readNodes(
  tx: TransactionSql,
  team: string,
  nodes: readonly { level: number; index: number }[],
): Promise<Map<string, Uint8Array>> {
  const leaves = nodes.filter(({ level }) => level === 0).map(({ index }) => index);
  const above = nodes.filter(({ level }) => level > 0);
  const rows = await tx<{ level: number; index: number; hash: Uint8Array }[]>`
    select 0 as level, leaf_index as index, hash from nd7.log_leaf
      where team = ${team} and leaf_index = any (string_to_array(${list(leaves)}, ',')::bigint[])
    union all
    select n.level, n.node_index, n.hash
      from unnest(string_to_array(${list(above.map(({ level }) => level))}, ',')::smallint[], string_to_array(${list(above.map(({ index }) => index))}, ',')::bigint[]) as asked (level, node_index)
      join nd7.log_node n on n.team = ${team} and n.level = asked.level and n.node_index = asked.node_index`;
  return new Map(rows.map(({ level, index, hash }) => [nodeName(Number(level), Number(index)), hash]));
}
