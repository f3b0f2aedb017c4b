import { fromBase64, fromHex, utf8 } from '@nd7/entry';
import { SEGMENT_LABEL } from '@nd7/segment';
import type { SignatureVerifier, SignedItem, VerifierKey, WitnessPolicy } from '@nd7/tlog';
import { hasQuorum, leafHash, sizeOf, verifyCosignatures, verifyInclusion, verifyNote } from '@nd7/tlog';
import { textOf } from './lines.js';
import type { Receipt } from './receipt.js';
import { indexOf, parseReceipt } from './receipt.js';
import type { Statement } from './statement.js';
import { statementItems } from './statement-text.js';

/** Why a receipt does not hold: the first check of docs/receipt.md's table that fails. */
export type ReceiptReason =
  | 'bad-receipt'
  | 'bad-signature'
  | 'wrong-origin'
  | 'bad-inclusion'
  | 'bad-machine-signature'
  | 'no-quorum'
  | 'receipt-mismatch'
  | 'truncated';

/** Whom the reader believes: the vault's keys (type 1), and where a policy is given the witnesses' quorum besides. */
export interface Trust {
  keys: readonly VerifierKey[];
  policy?: WitnessPolicy;
}

/** What the table's last rows ask of a local log; `@nd7/chain`'s walk knows it. */
export interface LogFacts {
  session: string;
  /**
   * There where entry 0 by itself passes the checks up to its link. `machine` is its `data.machine`: undefined where it has none, null where
   * that is null or no text.
   */
  entry0?: { machine: string | null | undefined };
  /** Lines ended by "\n". */
  lines: number;
  /** Entries up to which the chain is intact. */
  intactTo: number;
  /** The chain's hash after `count` entries (the genesis link for 0); undefined where it is not known. */
  hashAt(count: number): string | undefined;
}

/** A receipt that holds by itself, or the first reason why not. */
export type ReceiptVerdict<S extends Statement = Receipt['statement']> =
  { ok: true; receipt: Receipt<S> } | { ok: false; reason: ReceiptReason };

/**
 * The table's rows 1 to 6: everything that can be said of a receipt without the log. It is the vault's word only when this is ok; that it speaks of a
 * given log is `checkReceiptAgainst`. With `anyType` receipts of enrol, open, close … leaves too, by the same rows and their own signatures.
 */
export function checkReceiptItself(
  text: Uint8Array | string,
  trust: Trust,
  verify: SignatureVerifier,
): Promise<ReceiptVerdict>;
export function checkReceiptItself(
  text: Uint8Array | string,
  trust: Trust,
  verify: SignatureVerifier,
  options: { anyType: true },
): Promise<ReceiptVerdict<Statement>>;
export async function checkReceiptItself(
  text: Uint8Array | string,
  trust: Trust,
  verify: SignatureVerifier,
  options?: { anyType: true },
): Promise<ReceiptVerdict<Statement>> {
  const receipt = options === undefined ? parseReceipt(text) : parseReceipt(text, options);
  if (receipt === undefined) return { ok: false, reason: 'bad-receipt' };
  const { note, checkpoint, statement } = receipt;
  const { good, bad } = await verifyNote(note, trust.keys, verify);
  if (bad.length > 0 || !good.some(({ name }) => name === checkpoint.origin))
    return { ok: false, reason: 'bad-signature' };
  if (statement.origin !== checkpoint.origin) return { ok: false, reason: 'wrong-origin' };
  if (!verifyInclusion(leafHash(receipt.leaf), indexOf(receipt), sizeOf(checkpoint), receipt.proof, checkpoint.root)) {
    return { ok: false, reason: 'bad-inclusion' };
  }
  if (!(await verify(signatures(receipt))).every((isGood) => isGood))
    return { ok: false, reason: 'bad-machine-signature' };
  if (trust.policy !== undefined) {
    const cosigned = await verifyCosignatures(
      note,
      trust.policy.witnesses.map(({ key }) => key),
      verify,
    );
    const by = cosigned.map((cosignature) => cosignature.by);
    if (!hasQuorum(trust.policy, by)) return { ok: false, reason: 'no-quorum' };
  }
  return { ok: true, receipt };
}

/**
 * The table's last rows: whether a receipt that holds by itself speaks of this log. `bad_entry` is the entry it speaks of and disagrees on,
 * or the first one missing.
 */
export function checkReceiptAgainst(
  receipt: Receipt,
  log: LogFacts,
): { ok: true } | { ok: false; reason: ReceiptReason; bad_entry?: number } {
  const { session, machine, from, to, prev, head } = receipt.statement;
  if (session !== log.session) return { ok: false, reason: 'receipt-mismatch' };
  const named = log.entry0?.machine;
  if (named !== undefined && named !== machine) return { ok: false, reason: 'receipt-mismatch', bad_entry: 0 };
  if (log.lines < to) return { ok: false, reason: 'truncated', bad_entry: log.lines };
  if (log.intactTo < to) return { ok: false, reason: 'receipt-mismatch', bad_entry: to - 1 };
  if (log.hashAt(from) !== prev) return { ok: false, reason: 'receipt-mismatch', bad_entry: Math.max(0, from - 1) };
  if (log.hashAt(to) !== head) return { ok: false, reason: 'receipt-mismatch', bad_entry: to - 1 };
  return { ok: true };
}

function signatures({ leaf, statement }: Receipt<Statement>): SignedItem[] {
  if (statement.type !== 'head') return statementItems(statement);
  // From the leaf's own bytes: its counts may be longer than a number holds.
  const text = textOf(leaf) ?? '';
  const lines = text.slice(text.indexOf('\n') + 1, text.lastIndexOf('\nreceived ') + 1);
  const nothing = new Uint8Array(0);
  return [
    {
      key: fromHex(statement.machine) ?? nothing,
      message: utf8(SEGMENT_LABEL + lines),
      signature: fromBase64(statement.signature) ?? nothing,
    },
  ];
}
