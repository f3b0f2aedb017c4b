import { utf8 } from '@nd7/entry';
import { verifySignatures } from '@nd7/signing';
import {
  consistencyProof,
  emptyRoot,
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
import { describeHead, type CheckpointSigner, type SignAnswer, type TreeHead } from '../signer/signer.js';
import { QueueFloor } from './floor.js';
import { isOvertaken, LogError } from './log-error.js';
import { nodeName, nodeReader, readerOf, rightEdge } from './nodes.js';
import {
  holdsHead,
  insertCheckpoint,
  insertLeaves,
  insertNodes,
  insertPublication,
  readLeaves,
  readLogState,
  readQueue,
  readVkeys,
  type TenantDatabase,
} from './tables.js';

/** Leaves in one batch at most. */
export const BATCH = 256;

/**
 * What a round came to:
 * - `idle`: nothing waits, everything is published;
 * - `published`: up to `size`, `leaves` of them new in this round; `full`: more may wait;
 * - `deposed`: somebody else leads this log;
 * - `read-only`: the database does not hold what was signed, or holds other than was written; a person has to decide;
 * - `held`: the signer cannot sign now; the same round is tried again.
 */
export type Round =
  | { what: 'idle' }
  | { what: 'published'; size: number; leaves: number; full: boolean }
  | { what: 'deposed'; message: string }
  | { what: 'read-only'; message: string; signed?: TreeHead; stored?: TreeHead }
  | { what: 'held'; message: string };

/** The moments between two of which a process may die; README.md says what each leaves. */
export type Step = 'inserted' | 'committed' | 'read-back' | 'signed' | 'publishing' | 'published';

export interface TeamSequencerOptions {
  db: TenantDatabase;
  signer: CheckpointSigner;
  team: string;
  origin: string;
  batch?: number;
  /** Called at each step; the metrics and the fault tests hang here. */
  onStep?: (step: Step, detail: { size: number; leaves: number }) => void | Promise<void>;
}

/**
 * Sequences one team's log: gives waiting statements their index, integrates them into the tree, has the signer sign and publishes.
 *
 * Rounds run one after the other. Everything a round needs is read from the database and the signer, so that a round after a crash, a
 * failover or a pause goes on from facts: a committed checkpoint without a publication is first signed and published as it stands, because
 * it is the only root its size will ever have. Holding the term (`epoch`) is what makes a round worth trying, not what makes it safe.
 */
export class TeamSequencer {
  private readonly floor = new QueueFloor();

  constructor(private readonly options: TeamSequencerOptions) {}

  async round(epoch: number): Promise<Round> {
    const { db, signer, team, origin } = this.options;
    // Before the database is read: what was signed by now was committed earlier still.
    const signed = await signer.state(origin);
    if (!signed.ok) return { what: signed.refusal === 'no-state' ? 'read-only' : 'held', message: signed.message };
    try {
      const step = await db.tenant(team, (tx) => this.integrate(tx, epoch, signed.last));
      if ('what' in step) return step;
      if (step.leaves > 0) await this.step('committed', step);
      return await this.publish(step, signed.last);
    } catch (error) {
      if (isOvertaken(error)) return { what: 'deposed', message: (error as Error).message };
      if (error instanceof LogError && error.code === 'deposed') return { what: 'deposed', message: error.message };
      if (error instanceof LogError && error.code === 'corrupt') return { what: 'read-only', message: error.message };
      throw error;
    }
  }

  /** One transaction: the next checkpoint and all it rests on, or the one that is committed and still unpublished. */
  private async integrate(tx: TransactionSql, epoch: number, signed: TreeHead): Promise<Round | Committed> {
    const { team, origin, batch = BATCH } = this.options;
    const [state, holds] = await Promise.all([readLogState(tx, team), holdsHead(tx, team, signed)]);
    const stored = state.tip ?? { size: 0, prior: 0, root: emptyRoot };
    if (!holds) {
      const message = `log ${origin} is read-only: the signer has signed ${describeHead(signed)}, the database holds ${describeHead(stored)}`;
      return { what: 'read-only', message, signed, stored };
    }
    if (state.epoch !== epoch)
      return {
        what: 'deposed',
        message: `log ${origin}: term ${String(epoch)} is over, term ${String(state.epoch)} leads`,
      };
    if (stored.size > state.published)
      return {
        size: stored.size,
        root: stored.root,
        published: state.published,
        start: stored.prior,
        leaves: 0,
        full: true,
      };

    // After `running` was read: what has ended by then is seen here (floor.ts).
    const queue = await readQueue(tx, team, state.floor, batch);
    if (queue.length === 0) return { what: 'idle' };
    const leaves = queue.map(({ id, statement }) => ({ id, hash: leafHash(utf8(statement)) }));
    const size = stored.size + leaves.length;
    const edge = await readEdge(tx, team, stored.size);
    const { nodes, root } = await grow(
      edge,
      stored.size,
      leaves.map(({ hash }) => hash),
    );
    // The batch holds every waiting id up to its last; a batch that is not full holds all there are.
    const reach = queue.length < batch ? Infinity : Number(queue.at(-1)?.id ?? 0);
    const floor = Math.max(state.floor, Math.min(this.floor.settled(state.running), reach));
    const above = nodes.filter(({ level }) => level > 0);
    const [xact] = await Promise.all([
      insertCheckpoint(tx, team, { size, root, prior: stored.size, epoch, floor }),
      insertLeaves(tx, team, stored.size, leaves),
      insertNodes(tx, team, above),
    ]);
    this.floor.note(state.given, xact, state.running);
    const committed = {
      size,
      root,
      published: state.published,
      start: stored.size,
      leaves: leaves.length,
      full: queue.length === batch,
    };
    await this.step('inserted', committed);
    return committed;
  }

  /** Reads back, has it signed, publishes. */
  private async publish(head: Committed, signed: TreeHead): Promise<Round> {
    const { db, team, origin } = this.options;
    const [vkeys, proof] = await db.tenant(team, (tx) =>
      Promise.all([readVkeys(tx, team), proofFrom(tx, team, signed, head), readBack(tx, team, head)]),
    );
    await this.step('read-back', head);
    const answer = await this.sign(head, signed, proof);
    if (!answer.ok) {
      // Behind: the next leader has had this one and more signed since. Any other refusal is a person's to look at.
      if (answer.refusal === 'behind') return { what: 'deposed', message: answer.message };
      const isContradiction =
        answer.refusal === 'fork' || answer.refusal === 'not-consistent' || answer.refusal === 'no-state';
      return {
        what: isContradiction ? 'read-only' : 'held',
        message: answer.message,
        ...(answer.last === undefined ? {} : { signed: answer.last, stored: head }),
      };
    }
    const lines = await goodLines(origin, head, answer.lines, vkeys);
    if (lines.length === 0)
      return {
        what: 'held',
        message: `log ${origin}: the signer signs with keys the log does not know: finish \`nd7-vault key rotate\`, or give it the log's key`,
      };
    await this.step('signed', head);
    await db.tenant(team, async (tx) => {
      await Promise.all([
        insertPublication(tx, team, head.size, head.published, lines),
        tx`select pg_notify('nd7_log', ${team})`,
      ]);
      await this.step('publishing', head);
    });
    await this.step('published', head);
    return { what: 'published', size: head.size, leaves: head.leaves, full: head.full };
  }

  /** Asks for the signature with the proof from what was signed last, which another sequencer may have moved since it was read. */
  private async sign(head: Committed, signed: TreeHead, proof: readonly Uint8Array[]): Promise<SignAnswer> {
    const { db, signer, team, origin } = this.options;
    for (let last = signed; ;) {
      const answer = await signer.sign({ origin, size: head.size, root: head.root, proof });
      if (answer.ok || answer.refusal !== 'not-consistent') return answer;
      const moved = answer.last;
      if (moved === undefined || moved.size <= last.size) return answer;
      proof = await db.tenant(team, (tx) => proofFrom(tx, team, moved, head));
      last = moved;
    }
  }

  private async step(step: Step, { size, leaves }: { size: number; leaves: number }): Promise<void> {
    await this.options.onStep?.(step, { size, leaves });
  }
}

/** A committed checkpoint that is to be published: leaves [start, size) are its own, everything up to `published` is out. */
interface Committed extends TreeHead {
  published: number;
  start: number;
  /** New leaves of this round, 0 when an earlier one is finished. */
  leaves: number;
  full: boolean;
}

/** The stored subtrees that a tree of `size` leaves consists of. */
function readEdge(tx: TransactionSql, team: string, size: number): Promise<TreeNode[]> {
  const stored = nodeReader(tx, team);
  return Promise.all(rightEdge(size).map(async (at) => ({ ...at, hash: await stored(at.level, at.index) })));
}

/** The nodes that appending adds to a tree with this edge, and the new root. */
async function grow(
  edge: readonly TreeNode[],
  size: number,
  hashes: readonly Uint8Array[],
): Promise<{ nodes: TreeNode[]; root: Uint8Array }> {
  const nodes = await newNodes(size, hashes, readerOf(edge));
  return { nodes, root: await treeRoot(size + hashes.length, readerOf([...edge, ...nodes])) };
}

/** Consistency from what was signed to `head`; what lies behind it has no proof, and the signer says so. */
function proofFrom(tx: TransactionSql, team: string, signed: TreeHead, head: TreeHead): Promise<Uint8Array[]> {
  return consistencyProof(Math.min(signed.size, head.size), head.size, nodeReader(tx, team));
}

/**
 * What is stored is what will be signed: the leaves' hashes are made again from the statements, the nodes above them again from those, and
 * the root from the nodes. A flipped bit between hashing and the disk is found here, before the signature makes it everybody's.
 */
async function readBack(tx: TransactionSql, team: string, head: Committed): Promise<void> {
  const [leaves, edge, holds] = await Promise.all([
    readLeaves(tx, team, head.start, head.size),
    readEdge(tx, team, head.start),
    holdsHead(tx, team, head),
  ]);
  const hashes = leaves.map(({ statement }) => leafHash(utf8(statement)));
  if (leaves.length !== head.size - head.start)
    throw new LogError(
      'corrupt',
      `log ${team}: ${String(leaves.length)} leaves are stored from ${String(head.start)} to ${String(head.size)}`,
    );
  const { nodes, root } = await grow(edge, head.start, hashes);
  const stored = nodeReader(tx, team);
  await Promise.all(
    nodes.map(async ({ level, index, hash }) => {
      if (Buffer.compare(await stored(level, index), hash) !== 0)
        throw new LogError('corrupt', `log ${team}: node ${nodeName(level, index)} is not what its leaves give`);
    }),
  );
  if (Buffer.compare(root, head.root) !== 0 || !holds)
    throw new LogError(
      'corrupt',
      `log ${team}: the leaves give the root ${Buffer.from(root).toString('base64')} for size ${String(head.size)}, the checkpoint has another`,
    );
}

/** The lines by keys of this log, each checked: a bad signature is never published. */
async function goodLines(
  origin: string,
  head: TreeHead,
  lines: readonly string[],
  vkeys: readonly string[],
): Promise<string[]> {
  if (lines.length === 0) return [];
  const note = parseNote(formatNote(formatCheckpoint({ origin, size: head.size, root: head.root }), lines));
  if (note === undefined) throw new LogError('corrupt', `log ${origin}: the signer's answer is no signature`);
  const keys = vkeys.map(parseVkey).filter((key): key is VerifierKey => key?.name === origin && key.type === 1);
  const { good, bad } = await verifyNote(note, keys, verifySignatures);
  if (bad.length > 0)
    throw new LogError(
      'corrupt',
      `log ${origin}: the signer's signature by ${bad.map(({ text }) => text).join(', ')} is bad`,
    );
  return note.signatures
    .filter(({ name, id }) => good.some((key) => key.name === name && key.id === id))
    .map(({ line }) => line);
}
