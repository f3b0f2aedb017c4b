import { sealSentences } from './verdicts.js';
import type { ReceiptReport, SessionReport, Verdict } from './report.js';
import { entriesOf, grouped, REASONS, RECEIPT_REASONS } from './words.js';

/** The sentences that a person reads, the same in the terminal and in the browser. The first is the verdict. */
export function explainReport(r: SessionReport): string[] {
  const lines = [headline(r)];
  for (const name of ['integrity', 'completeness', 'authenticity', 'freshness'] as const) {
    const { verdict, text }: Verdict = r[name];
    lines.push(`${name}: ${verdict}. ${text}`);
  }
  lines.push(...sealSentences(r.seals));
  lines.push(...receiptLines(r.receipts));
  lines.push(...r.rests_on.map((text) => `rests on ${text}`.replace(/^rests on the length rests/, 'the length rests')));
  lines.push(...r.not_checked.map((text) => `not checked: ${text}`));
  return lines;
}

/** So many receipts that hold are told one by one. */
const FEW = 3;

function receiptLines(receipts: readonly ReceiptReport[]): string[] {
  const holding = receipts.filter(({ result }) => result === 'holds');
  const told = holding.length > FEW ? receipts.filter(({ result }) => result !== 'holds') : receipts;
  const lines = told.map((receipt) => {
    const range =
      receipt.to === undefined
        ? 'a receipt'
        : `receipt for entries ${grouped(receipt.from ?? 0)} to ${grouped(receipt.to - 1)}`;
    if (receipt.result !== 'holds') return `${range}: ${receipt.result}: ${RECEIPT_REASONS[receipt.result]}`;
    return `${range}: holds (${String(receipt.origin)}, leaf ${String(receipt.index)}, received ${String(receipt.received)})`;
  });
  if (holding.length > FEW) lines.unshift(`${grouped(holding.length)} receipts hold, for ${spans(holding)}`);
  return lines;
}

/** The entries that receipts cover: `entries 0 to 1,023 and 1,100 to 1,199`. */
function spans(receipts: readonly ReceiptReport[]): string {
  const joined: [number, number][] = [];
  for (const { from = 0, to = 0 } of receipts.toSorted((a, b) => (a.from ?? 0) - (b.from ?? 0))) {
    const last = joined.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return `entries ${joined.map(([from, to]) => `${grouped(from)} to ${grouped(to - 1)}`).join(' and ')}`;
}

function headline(r: SessionReport): string {
  if (r.verdict === 'intact') return `intact: ${entriesOf(r.entries)}, head ${r.head}`;
  const { bad_entry = 0, reason = 'bad-json' } = r;
  return `broken at entry ${grouped(bad_entry)}: ${reason}: ${REASONS[reason]}`;
}
