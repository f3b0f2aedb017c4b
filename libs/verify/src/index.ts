/**
 * The only place that says "verified": bytes, head, receipts and pinned keys in, a report out that says what a success rests on and
 * what was not checked (`nd7/report/v1`, versioned data).
 *
 * Promises: the verdict of docs/format.md and docs/receipt.md for any bytes; one pass; memory as the chain's walk; the same report from one
 * thread and from parts walked apart; the same code and the same sentences in the terminal, the vault and the browser.
 * Does not promise: that what was said is true, nor anything that stands under `not_checked`. Reads no file, knows no network, has no clock.
 * Called by `nd7 verify`, by the vault's check and by the dashboard's worker.
 */
export { verifySession, type VerifyInput } from './session.js';
export { runPart, verifyParts, type Against, type PartJob, type PartReport, type PartTools } from './parts.js';
export { explainReport } from './explain.js';
export type { ClassCounts } from './classes.js';
export type { ReceiptReport, SessionReport, Standing, Verdict } from './report.js';
