import type { LogReason, WalkResult } from '@nd7/chain';
import { checkReceiptAgainst, checkReceiptItself, indexOf, type Receipt, type Trust } from '@nd7/receipt';
import { sizeOf, type SignatureVerifier, type VerifierKey } from '@nd7/tlog';
import type { ReceiptReport } from './report.js';

/** A receipt after the checks that need no log. */
export interface ReadReceipt {
  report: ReceiptReport;
  /** Present where the receipt by itself is good. */
  receipt?: Receipt;
  /** The trusted keys that signed the checkpoint, as `name+id`. */
  keys: string[];
}

/** What the receipts say about a log: their reports, and the first entry at which a genuine one contradicts it. */
export interface ReceiptVerdict {
  reports: ReceiptReport[];
  /** Receipts that hold, the one that reaches farthest first. */
  holding: ReadReceipt[];
  broken?: { bad_entry: number; reason: Extract<LogReason, 'truncated' | 'receipt-mismatch'> };
  /** The largest count that a genuine receipt of this log speaks of. */
  counted: number;
}

/** Reads receipts and checks each by itself. Without trusted keys nothing is checked, and the report says so. */
export async function readReceipts(
  texts: readonly (Uint8Array | string)[],
  trust: Trust | undefined,
  verify: SignatureVerifier,
): Promise<ReadReceipt[]> {
  const all: ReadReceipt[] = [];
  for (const text of texts) {
    if (trust === undefined || trust.keys.length === 0) {
      all.push({ report: { result: 'not-checked' }, keys: [] });
      continue;
    }
    const checked = await checkReceiptItself(text, trust, verify);
    if (checked.ok)
      all.push({
        report: describe(checked.receipt),
        receipt: checked.receipt,
        keys: signers(checked.receipt, trust.keys),
      });
    else all.push({ report: { result: checked.reason }, keys: [] });
  }
  return all;
}

/** The counts whose hash must be known to hold a log against these receipts and to name the entry where one differs. */
export function receiptMarks(receipts: readonly ReadReceipt[]): number[] {
  return receipts.flatMap(({ receipt }) => {
    if (receipt === undefined) return [];
    const { from, to } = receipt.statement;
    return [from - 1, from, to - 1, to].filter((count) => count >= 0);
  });
}

/** Holds a walked log against its receipts. */
export function holdAgainst(receipts: readonly ReadReceipt[], session: string, walk: WalkResult): ReceiptVerdict {
  const verdict: ReceiptVerdict = { reports: [], holding: [], counted: 0 };
  for (const read of receipts) {
    const { report, receipt } = read;
    verdict.reports.push(report);
    if (receipt === undefined) continue;
    const { statement } = receipt;
    const result = checkReceiptAgainst(receipt, {
      session,
      ...(walk.entry0 && { entry0: walk.entry0 }),
      lines: walk.lines,
      intactTo: walk.intactTo,
      hashAt: (count) => walk.marks.get(count),
    });
    report.result = result.ok ? 'holds' : result.reason;
    const machine = walk.entry0?.machine;
    if (statement.session !== session) continue; // a receipt of another log says nothing about this one
    if (result.ok) verdict.holding.push(read);
    const isSameMachine = machine === undefined || machine === statement.machine;
    if (isSameMachine) verdict.counted = Math.max(verdict.counted, statement.to);
    const broken = isSameMachine
      ? contradiction(statement, walk)
      : { bad_entry: 0, reason: 'receipt-mismatch' as const };
    if (broken && (verdict.broken === undefined || broken.bad_entry < verdict.broken.bad_entry))
      verdict.broken = broken;
  }
  verdict.holding.sort((a, b) => (b.report.to ?? 0) - (a.report.to ?? 0));
  return verdict;
}

/** Where a genuine receipt of this log first says otherwise; undefined where the chain itself breaks before that. */
function contradiction(
  statement: { from: number; to: number; prev: string; head: string },
  walk: WalkResult,
): ReceiptVerdict['broken'] {
  const { from, to } = statement;
  if (from <= walk.intactTo && walk.marks.get(from) !== statement.prev) {
    return { bad_entry: Math.max(from - 1, 0), reason: 'receipt-mismatch' };
  }
  if (to <= walk.intactTo && walk.marks.get(to) !== statement.head)
    return { bad_entry: to - 1, reason: 'receipt-mismatch' };
  return walk.lines < to ? { bad_entry: walk.lines, reason: 'truncated' } : undefined;
}

function describe(receipt: Receipt): ReceiptReport {
  const { from, to, received, machine } = receipt.statement;
  const { origin } = receipt.checkpoint;
  return {
    from,
    to,
    result: 'not-checked',
    origin,
    index: exact(indexOf(receipt)),
    size: exact(sizeOf(receipt.checkpoint)),
    received,
    machine,
  };
}

/** A count as JSON can carry it. */
function exact(count: number | bigint): number | string {
  return typeof count === 'bigint' || !Number.isSafeInteger(count) ? count.toString() : count;
}

function signers(receipt: Receipt, keys: readonly VerifierKey[]): string[] {
  const named = keys.filter((key) => receipt.note.signatures.some((s) => s.name === key.name && s.id === key.id));
  return named.map((key) => key.text.split('+').slice(0, 2).join('+'));
}
