import { fromHex } from '@nd7/entry';
import type { SignatureVerifier } from '@nd7/tlog';
import type { Head } from './head.js';
import { genesis, type LogReason } from './link.js';
import type { PartResult, PartStart } from './part.js';
import { sealItem, type SealState } from './seal.js';

/** What the walk over a log says. */
export interface WalkResult {
  verdict: 'intact' | 'broken';
  /** Good entries, and the hash after them (of none: the genesis link). */
  entries: number;
  head: string;
  bad_entry?: number;
  reason?: LogReason;
  /** How far the chain itself holds, the given head left aside: what a receipt is held against. */
  intactTo: number;
  /** All lines ended by "\n", to the end even after the first bad one. */
  lines: number;
  bytes: number;
  /** After the last entry of the chain (`intactTo`). */
  seals: SealState;
  /** The hash after each wanted count that the chain reaches. */
  marks: Map<number, string>;
  /** Where entry 0 by itself passes up to its link; `machine` is its `data.machine`, null where that is no string. */
  entry0?: { machine: string | null | undefined };
}

export interface StitchOptions {
  session: string;
  verify: SignatureVerifier;
  /** Where the first part begins; absent: at entry 0. */
  start?: PartStart;
  head?: Head;
}

/** The counts whose hash must be known to hold a log against its head: pass them as marks to every part. */
export function headMarks(head: Head | undefined): number[] {
  return head === undefined ? [] : head.entries === 0 ? [0] : [head.entries - 1, head.entries];
}

/**
 * Joins what the parts of one log say, in the log's order, to the verdict that a single walk gives: the link and the first seal
 * of each part are checked here, against the parts before it. All but the first must have been walked with `start: 'unknown'`.
 */
export async function stitchParts(parts: readonly PartResult[], o: StitchOptions): Promise<WalkResult> {
  const start = o.start ?? { entries: 0, head: genesis(o.session), key: null };
  const chain: Chain = {
    entries: start.entries,
    hash: start.head,
    fault: undefined,
    seals: { key: start.key, sealedTo: null, seals: 0 },
    marks: new Map(),
  };
  let lines = 0;
  let bytes = 0;
  for (const [i, part] of parts.entries()) {
    lines += part.lines;
    bytes += part.bytes;
    if (chain.fault === undefined) await join(chain, part, i > 0, o);
  }
  const entry0 = parts[0]?.entry0;
  return {
    ...judge(chain, o.head, start.entries),
    intactTo: chain.entries,
    lines,
    bytes,
    seals: chain.seals,
    marks: chain.marks,
    ...(entry0 && { entry0 }),
  };
}

interface Chain {
  entries: number;
  hash: string;
  fault: LogReason | undefined;
  seals: SealState;
  marks: Map<number, string>;
}

async function join(chain: Chain, part: PartResult, unknown: boolean, o: StitchOptions): Promise<void> {
  const base = chain.entries;
  if (unknown && part.first !== undefined) {
    if (part.first.seq !== String(base)) chain.fault = 'wrong-seq';
    else if (part.first.prev !== chain.hash) chain.fault = base === 0 ? 'wrong-genesis' : 'wrong-prev';
    if (chain.fault !== undefined) return;
  }
  const { deferred } = part;
  const holds = deferred === undefined || (await signedBy(chain.seals.key, deferred, o));
  const good = holds ? part.good : deferred.index;
  for (const [count, hash] of part.marks) if (count <= base + good) chain.marks.set(count, hash);
  chain.entries = base + good;
  if (!holds) {
    chain.fault = 'bad-seal';
    chain.hash = deferred.link.prev;
    return;
  }
  chain.fault = part.fault;
  if (part.good > 0) chain.hash = part.last as string;
  const { seals } = part;
  chain.seals = {
    ...chain.seals,
    ...(!unknown && seals),
    key: unknown && seals.seals === 0 ? chain.seals.key : seals.key,
    sealedTo: seals.sealedTo === null ? chain.seals.sealedTo : base + seals.sealedTo,
    seals: chain.seals.seals + seals.seals,
  };
}

/** Whether the first seal of a part is signed by the key that the parts before it leave in force. */
async function signedBy(
  key: string | null,
  seal: NonNullable<PartResult['deferred']>,
  o: StitchOptions,
): Promise<boolean> {
  if (key === null || fromHex(key) === undefined) return false;
  const item = sealItem(o.session, seal.link.seq, seal.link.prev, seal, key);
  return item !== undefined && (await o.verify([item]))[0] === true;
}

/** The chain held against its head: the head's own entry is judged before any later one. */
function judge(
  chain: Chain,
  head: Head | undefined,
  from: number,
): Pick<WalkResult, 'verdict' | 'entries' | 'head' | 'bad_entry' | 'reason'> {
  const { entries, hash, fault } = chain;
  if (head !== undefined && head.entries >= from && head.entries <= entries) {
    const there = head.entries === entries ? hash : chain.marks.get(head.entries);
    if (there !== head.hash) {
      const good = Math.max(head.entries - 1, 0);
      const before = chain.marks.get(good) ?? there ?? hash;
      return { verdict: 'broken', entries: good, head: before, bad_entry: good, reason: 'head-mismatch' };
    }
  }
  if (fault !== undefined) return { verdict: 'broken', entries, head: hash, bad_entry: entries, reason: fault };
  if (head !== undefined && head.entries > entries) {
    return { verdict: 'broken', entries, head: hash, bad_entry: entries, reason: 'truncated' };
  }
  return { verdict: 'intact', entries, head: hash };
}
