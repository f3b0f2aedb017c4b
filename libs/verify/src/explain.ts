import { sealSentences } from './verdicts.js';
import type { SessionReport, Verdict } from './report.js';
import { entriesOf, grouped, REASONS, RECEIPT_REASONS } from './words.js';

/** The sentences that a person reads, the same in the terminal and in the browser. The first is the verdict. */
export function explainReport(r: SessionReport): string[] {
  const lines = [headline(r)];
  for (const name of ['integrity', 'completeness', 'authenticity', 'freshness'] as const) {
    const { verdict, text }: Verdict = r[name];
    lines.push(`${name}: ${verdict}. ${text}`);
  }
  lines.push(...sealSentences(r.seals));
  for (const receipt of r.receipts) {
    const range =
      receipt.to === undefined
        ? 'a receipt'
        : `receipt for entries ${grouped(receipt.from ?? 0)} to ${grouped(receipt.to - 1)}`;
    if (receipt.result === 'holds') {
      lines.push(
        `${range}: holds (${String(receipt.origin)}, leaf ${String(receipt.index)}, received ${String(receipt.received)})`,
      );
    } else lines.push(`${range}: ${receipt.result}: ${RECEIPT_REASONS[receipt.result]}`);
  }
  lines.push(...r.rests_on.map((text) => `rests on ${text}`.replace(/^rests on the length rests/, 'the length rests')));
  lines.push(...r.not_checked.map((text) => `not checked: ${text}`));
  return lines;
}

function headline(r: SessionReport): string {
  if (r.verdict === 'intact') return `intact: ${entriesOf(r.entries)}, head ${r.head}`;
  const { bad_entry = 0, reason = 'bad-json' } = r;
  return `broken at entry ${grouped(bad_entry)}: ${reason}: ${REASONS[reason]}`;
}
