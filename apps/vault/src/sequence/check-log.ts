import { utf8 } from '@nd7/entry';
import { checkReceiptItself, parseReceipt, parseStatement } from '@nd7/receipt';
import { verifySignatures } from '@nd7/signing';
import {
  formatCheckpoint,
  formatNote,
  leafHash,
  newNodes,
  parseNote,
  parseVkey,
  treeRoot,
  verifyNote,
  type TreeNode,
  type VerifierKey,
} from '@nd7/tlog';
import type { TransactionSql } from 'postgres';
import { ReceiptReader } from '../receipts/receipt-reader.js';
import { describeHead, type CheckpointSigner } from '../signer/signer.js';
import { list, nodeName, nodeReader, readerOf, rightEdge } from './nodes.js';
import { holdsHead, readLeaves, readLogState, readOrigin, type TenantDatabase } from './tables.js';

/** What was found. `fault` is the first disagreement, in the order of the leaves; undefined: everything agrees. */
export interface LogCheck {
  team: string;
  origin: string | undefined;
  /** Leaves in the newest checkpoint. */
  size: number;
  checkpoints: number;
  published: number;
  /** Statements that have no index yet. */
  waiting: number;
  /** Receipts that were rebuilt and checked. */
  receipts: number;
  fault?: { at: string; what: string };
}

/** Thrown and caught here only: the first disagreement ends the check. */
class Fault extends Error {
  constructor(
    readonly at: string,
    readonly what: string,
  ) {
    super(what);
  }
}

const PAGE = 2048;

/**
 * Makes a team's log again from its statements and compares everything that is stored: leaf hashes, nodes, roots, the line of checkpoints, the
 * signatures as they were published, and receipts. It reads what a published tree covers, so it may run while the log grows. With a signer it
 * also compares what was signed last. It believes no column that it can compute.
 *
 * `receipts`: how many of them to rebuild, spread over the log (the proofs' hashes are all compared anyway).
 */
export async function checkLog(
  db: TenantDatabase,
  team: string,
  options: { signer?: Pick<CheckpointSigner, 'state'>; receipts?: number } = {},
): Promise<LogCheck> {
  const check: LogCheck = { team, origin: undefined, size: 0, checkpoints: 0, published: 0, waiting: 0, receipts: 0 };
  try {
    const { origin, keys } = await readKeys(db, team);
    check.origin = origin;
    // The signer first: what it has signed was committed before.
    const signed = await options.signer?.state(origin);
    const { tip } = await db.tenant(team, (tx) => readLogState(tx, team));
    check.size = tip?.size ?? 0;
    await checkTree(db, team, origin, keys, check);
    await checkExtent(db, team, check);
    await checkReceipts(db, team, keys, check, options.receipts ?? 64);
    if (signed !== undefined) {
      if (!signed.ok) throw new Fault('signer', signed.message);
      if (!(await db.tenant(team, (tx) => holdsHead(tx, team, signed.last))))
        throw new Fault(
          `checkpoint ${String(signed.last.size)}`,
          `the signer has signed ${describeHead(signed.last)}, which is not in the database`,
        );
      if (!signed.vkeys.includes(keys.at(-1)?.text ?? ''))
        throw new Fault('key', `the signer does not sign with the log's newest key ${keys.at(-1)?.text ?? ''}`);
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    check.fault = { at: error.at, what: error.what };
  }
  return check;
}

async function readKeys(db: TenantDatabase, team: string): Promise<{ origin: string; keys: VerifierKey[] }> {
  const { origin, rows } = await db.tenant(team, async (tx) => ({
    origin: await readOrigin(tx, team),
    rows: await tx<
      { position: number; vkey: string; public_key: Uint8Array }[]
    >`select position, vkey, public_key from nd7.log_key where team = ${team} order by position`,
  }));
  if (origin === undefined) throw new Fault('log', `team ${team} has no log`);
  if (rows.length === 0) throw new Fault('key', `log ${origin} has no verifier key`);
  const keys = rows.map(({ position, vkey, public_key }, i) => {
    const key = parseVkey(vkey);
    if (key?.type !== 1 || key.name !== origin || position !== i || Buffer.compare(key.key, public_key) !== 0)
      throw new Fault(`key ${String(position)}`, `${vkey} is no verifier key of ${origin}`);
    return key;
  });
  return { origin, keys };
}

/** Leaf by leaf from the left, page by page; each checkpoint where the tree has its size. */
async function checkTree(
  db: TenantDatabase,
  team: string,
  origin: string,
  keys: readonly VerifierKey[],
  check: LogCheck,
): Promise<void> {
  const line = { size: 0, published: 0 };
  let edge: TreeNode[] = [];
  for (let start = 0; start < check.size; start += PAGE) {
    const end = Math.min(start + PAGE, check.size);
    const page = await db.tenant(team, async (tx) => {
      const hashes = await checkLeaves(tx, team, origin, start, end);
      const nodes = await newNodes(start, hashes, readerOf(edge));
      await checkNodes(tx, team, nodes);
      return { nodes, checkpoints: await readCheckpoints(tx, team, start, end) };
    });
    const known = readerOf([...edge, ...page.nodes]);
    for (const checkpoint of page.checkpoints)
      await checkCheckpoint(origin, checkpoint, await treeRoot(checkpoint.size, known), line, keys, check);
    edge = await Promise.all(rightEdge(end).map(async (at) => ({ ...at, hash: await known(at.level, at.index) })));
  }
  if (line.size !== check.size)
    throw new Fault(
      `checkpoint ${String(check.size)}`,
      'is the newest, but the line of checkpoints does not lead to it',
    );
}

async function checkLeaves(
  tx: TransactionSql,
  team: string,
  origin: string,
  start: number,
  end: number,
): Promise<Uint8Array[]> {
  const leaves = await readLeaves(tx, team, start, end);
  const hashes: Uint8Array[] = [];
  for (let index = start; index < end; index += 1) {
    const leaf = leaves[index - start];
    const at = `leaf ${String(index)}`;
    if (leaf?.index !== index) throw new Fault(at, 'is missing');
    const hash = leafHash(utf8(leaf.statement));
    if (Buffer.compare(hash, leaf.hash) !== 0) throw new Fault(at, 'its stored hash is not that of its statement');
    const statement = parseStatement(leaf.statement);
    if (statement === undefined || (statement.type !== 'unknown' && statement.origin !== origin))
      throw new Fault(at, `is no statement of ${origin}`);
    hashes.push(hash);
  }
  return hashes;
}

async function checkNodes(tx: TransactionSql, team: string, nodes: readonly TreeNode[]): Promise<void> {
  const above = nodes.filter(({ level }) => level > 0);
  const stored = nodeReader(tx, team);
  await Promise.all(
    above.map(async ({ level, index, hash }) => {
      const at = `node ${nodeName(level, index)}`;
      const found = await Promise.resolve(stored(level, index)).catch(() => undefined);
      if (found === undefined) throw new Fault(at, 'is missing');
      if (Buffer.compare(found, hash) !== 0) throw new Fault(at, 'is not the hash that its leaves give');
    }),
  );
}

interface StoredCheckpoint {
  size: number;
  prior: number;
  root: Uint8Array;
  /** First leaf whose receipt is against it; undefined: not published. */
  first: number | undefined;
  lines: string[];
  count: number;
}

/** Checkpoints of more than `from` and at most `to` leaves. */
async function readCheckpoints(
  tx: TransactionSql,
  team: string,
  from: number,
  to: number,
): Promise<StoredCheckpoint[]> {
  const rows = await tx<
    {
      size: string;
      prior: string;
      root: Uint8Array;
      first: string | null;
      count: number | null;
      lines: string | null;
    }[]
  >`
    select c.size::text, c.prior_size::text as prior, c.root, p.first_index::text as first, p.lines::int as count,
      (select string_agg(line, E'\n' order by position) from nd7.log_signature g where g.team = c.team and g.size = c.size) as lines
    from nd7.log_checkpoint c left join nd7.log_publication p on p.team = c.team and p.size = c.size
    where c.team = ${team} and c.size > ${String(from)}::bigint and c.size <= ${String(to)}::bigint order by c.size`;
  return rows.map((row) => ({
    size: Number(row.size),
    prior: Number(row.prior),
    root: row.root,
    first: row.first === null ? undefined : Number(row.first),
    lines: row.lines?.split('\n') ?? [],
    count: row.count ?? 0,
  }));
}

async function checkCheckpoint(
  origin: string,
  checkpoint: StoredCheckpoint,
  root: Uint8Array,
  line: { size: number; published: number },
  keys: readonly VerifierKey[],
  check: LogCheck,
): Promise<void> {
  const { size, lines } = checkpoint;
  const at = `checkpoint ${String(size)}`;
  if (checkpoint.prior !== line.size)
    throw new Fault(at, `follows ${String(checkpoint.prior)}, but the one before it has ${String(line.size)} leaves`);
  if (Buffer.compare(checkpoint.root, root) !== 0)
    throw new Fault(
      at,
      `its root is ${Buffer.from(checkpoint.root).toString('base64')}, its leaves give ${Buffer.from(root).toString('base64')}`,
    );
  line.size = size;
  check.checkpoints += 1;
  if (checkpoint.first === undefined) {
    if (size !== check.size) throw new Fault(at, 'is not published, and one after it is there');
    return;
  }
  if (checkpoint.first !== line.published)
    throw new Fault(
      at,
      `was published for the leaves from ${String(checkpoint.first)}, but the one before it ended at ${String(line.published)}`,
    );
  if (lines.length !== checkpoint.count)
    throw new Fault(
      at,
      `was published with ${String(checkpoint.count)} signature lines, ${String(lines.length)} are stored`,
    );
  const note = parseNote(formatNote(formatCheckpoint({ origin, size, root }), lines));
  const { good, bad } = note === undefined ? { good: [], bad: [] } : await verifyNote(note, keys, verifySignatures);
  if (good.length === 0 || bad.length > 0) throw new Fault(at, 'does not carry a good signature by a key of the log');
  line.published = size;
  check.published = size;
}

/** Nothing stands beyond the tree, and no statement was lost on the way into it. One statement is one snapshot. */
async function checkExtent(db: TenantDatabase, team: string, check: LogCheck): Promise<void> {
  await db.tenant(team, async (tx) => {
    const [row] = await tx<{ size: string; leaves: string; nodes: string; waiting: string; below: string }[]>`
      select coalesce((select max(size) from nd7.log_checkpoint where team = ${team}), 0)::text as size,
        (select count(*) from nd7.log_leaf where team = ${team})::text as leaves,
        (select count(*) from nd7.log_node where team = ${team})::text as nodes,
        (select count(*) from nd7.log_queue q where q.team = ${team} and not exists (select from nd7.log_leaf l where l.team = q.team and l.leaf_id = q.leaf_id))::text as waiting,
        (select count(*) from nd7.log_queue q where q.team = ${team} and not exists (select from nd7.log_leaf l where l.team = q.team and l.leaf_id = q.leaf_id)
          and q.leaf_id <= coalesce((select queue_floor from nd7.log_checkpoint where team = ${team} order by size desc limit 1), 0))::text as below`;
    const size = Number(row?.size);
    check.waiting = Number(row?.waiting);
    if (Number(row?.leaves) !== size)
      throw new Fault(
        `leaf ${String(size)}`,
        `${String(row?.leaves)} leaves are stored, the newest checkpoint has ${String(size)}`,
      );
    let nodes = 0;
    for (let width = 2; width <= size; width *= 2) nodes += Math.floor(size / width);
    if (Number(row?.nodes) !== nodes)
      throw new Fault(
        'nodes',
        `${String(row?.nodes)} are stored, a tree of ${String(size)} leaves has ${String(nodes)}`,
      );
    if (Number(row?.below) !== 0)
      throw new Fault('queue', `${String(row?.below)} statements were passed over by the sequencer`);
  });
}

async function checkReceipts(
  db: TenantDatabase,
  team: string,
  keys: readonly VerifierKey[],
  check: LogCheck,
  wanted: number,
): Promise<void> {
  const reader = new ReceiptReader(db);
  const count = Math.min(wanted, check.published);
  const places = Array.from({ length: count }, (_, i) =>
    Math.floor((i * (check.published - 1)) / Math.max(1, count - 1)),
  );
  for (let from = 0; from < places.length; from += 256) {
    const some = places.slice(from, from + 256);
    const ids = await db.tenant(
      team,
      (tx) => tx<{ id: string; index: string }[]>`
        select leaf_id::text as id, leaf_index::text as index from nd7.log_leaf where team = ${team} and leaf_index = any (string_to_array(${list(some)}, ',')::bigint[])`,
    );
    const receipts = await reader.receipts(
      team,
      ids.map(({ id }) => BigInt(id)),
    );
    for (const { id, index } of ids) {
      const text = receipts.get(BigInt(id));
      if (text === undefined) throw new Fault(`receipt ${index}`, 'cannot be made, though its leaf is published');
      await checkReceipt(text, Number(index), keys);
      check.receipts += 1;
    }
  }
}

async function checkReceipt(text: string, index: number, keys: readonly VerifierKey[]): Promise<void> {
  const at = `receipt ${String(index)}`;
  const verdict = await checkReceiptItself(text, { keys }, verifySignatures, { anyType: true });
  if (!verdict.ok) throw new Fault(at, verdict.reason);
  if (parseReceipt(text, { anyType: true })?.index !== index) throw new Fault(at, 'speaks of another leaf');
}
