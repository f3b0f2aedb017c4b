import type { SessionReport } from '@nd7/verify';
import { coveredBy } from './proofs.js';

const grouped = (count: number) => count.toLocaleString('en');
const entries = (count: number) => `${grouped(count)} ${count === 1 ? 'entry' : 'entries'}`;

/**
 * The verdict as a sentence: what a person should know who reads nothing else. It says only what the report says, the worst first.
 * `isOpen`: the session goes on by the vault's word, so that what is covered may be not all there will be.
 */
export function headline(report: SessionReport, isOpen: boolean): string {
  if (report.integrity.state === 'bad')
    return `${report.integrity.verdict}${report.reason === undefined ? '' : `: ${report.reason}`}`;
  if (report.completeness.state === 'bad')
    return `${report.completeness.verdict}: a receipt counts more entries than are here`;
  if (report.entries === 0) return 'No entry yet: there is nothing to check';
  const covered = coveredBy(report);
  if (report.authenticity.state === 'bad')
    return `Unchanged by its own links, but ${report.authenticity.verdict.toLowerCase()}`;
  if (covered === 0)
    return `Unchanged by its own links; no signature you pinned stands behind ${entries(report.entries)}`;
  const rest = report.entries - covered;
  if (rest > 0)
    return `Unchanged and signed: the first ${entries(covered)}; ${isOpen ? 'still open, so ' : ''}${grouped(rest)} later ${rest === 1 ? 'entry is' : 'entries are'} not covered`;
  if (report.completeness.verdict === 'Complete') return `Unchanged, complete and signed: all ${entries(covered)}`;
  return `Unchanged and signed: all ${entries(covered)}${isOpen ? ' so far; still open' : '; its end was not recorded'}`;
}
