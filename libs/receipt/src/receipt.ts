import { fromBase64, toBase64 } from '@nd7/entry';
import type { Checkpoint, Count, Note } from '@nd7/tlog';
import { parseCheckpoint, parseNote } from '@nd7/tlog';
import { MAX_LEAF, textOf } from './lines.js';
import type { HeadStatement, Statement } from './statement.js';
import { parseStatement } from './statement-text.js';

/** A receipt, taken apart and NOT checked: a leaf, the way from it to a tree head, and that head with its signatures. */
export interface Receipt<S extends Statement = HeadStatement> {
  /** The leaf's exact bytes. */
  leaf: Uint8Array;
  statement: S;
  /** The leaf's place in the log. Above 2^53 - 1 the nearest double: see `exactIndex`. */
  index: number;
  /** There only where `index` cannot be exact. */
  exactIndex?: bigint;
  /** Sibling hashes, leaf to root. */
  proof: Uint8Array[];
  checkpoint: Checkpoint;
  note: Note;
  /** The receipt as it was handed in. */
  text: string;
}

/** The first line of every receipt (C2SP tlog-proof). */
const FIRST = 'c2sp.org/tlog-proof@v1';

/** A path has at most as many hashes as a 63-level tree. */
const MAX_PROOF = 63;

/**
 * Reads a receipt strictly; undefined for anything else. By itself it takes segments' receipts only (`nd7/head/v1`); with `anyType` those
 * of every known leaf type.
 */
export function parseReceipt(text: Uint8Array | string): Receipt | undefined;
export function parseReceipt(text: Uint8Array | string, options: { anyType: true }): Receipt<Statement> | undefined;
export function parseReceipt(input: Uint8Array | string, options?: { anyType: true }): Receipt<Statement> | undefined {
  const text = textOf(input);
  const cut = text?.indexOf('\n\n') ?? -1;
  if (text === undefined || cut < 0) return undefined;
  const [first, extra, place, ...siblings] = text.slice(0, cut).split('\n', MAX_PROOF + 4);
  const [, encoded] = /^extra ([A-Za-z0-9+/]+={0,2})$/.exec(extra ?? '') ?? [];
  const [, indexText] = /^index (0|[1-9][0-9]{0,15})$/.exec(place ?? '') ?? [];
  if (first !== FIRST || encoded === undefined || indexText === undefined || siblings.length > MAX_PROOF)
    return undefined;
  const leaf = encoded.length > 2 * MAX_LEAF ? undefined : fromBase64(encoded);
  const statement = leaf === undefined ? undefined : parseStatement(leaf);
  const proof = siblings.map((line) => (line.length === 44 ? fromBase64(line) : undefined));
  const note = parseNote(text.slice(cut + 2));
  const checkpoint = note === undefined ? undefined : parseCheckpoint(note.text);
  if (
    leaf === undefined ||
    statement === undefined ||
    statement.type === 'unknown' ||
    note === undefined ||
    checkpoint === undefined
  )
    return undefined;
  if (!areHashes(proof) || (statement.type !== 'head' && options?.anyType !== true)) return undefined;
  const index = Number(indexText);
  const exact = Number.isSafeInteger(index) ? {} : { exactIndex: BigInt(indexText) };
  return { leaf, statement, index, ...exact, proof, checkpoint, note, text };
}

/** The receipt's text. `checkpointNote` is the whole signed checkpoint, verbatim. Throws a RangeError where no receipt comes of it. */
export function formatReceipt(
  leaf: Uint8Array,
  index: Count,
  proof: readonly Uint8Array[],
  checkpointNote: string,
): string {
  const siblings = proof.map((hash) => `${toBase64(hash)}\n`).join('');
  const text = `${FIRST}\nextra ${toBase64(leaf)}\nindex ${String(index)}\n${siblings}\n${checkpointNote}`;
  if (parseReceipt(text, { anyType: true }) === undefined)
    throw new RangeError(`not a receipt: ${JSON.stringify(text)}`);
  return text;
}

/** The leaf's place, exact whatever it is. */
export function indexOf(receipt: Receipt<Statement>): Count {
  return receipt.exactIndex ?? receipt.index;
}

function areHashes(hashes: readonly (Uint8Array | undefined)[]): hashes is Uint8Array[] {
  return hashes.every((hash) => hash?.length === 32);
}
