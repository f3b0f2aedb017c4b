import type { Head, LogReason, WalkResult } from '@nd7/chain';
import type { ReceiptVerdict } from './receipts.js';
import type { SessionReport } from './report.js';
import { authentic, complete, fresh, integrity, type Facts, type Findings } from './verdicts.js';
import { entriesOf, grouped, LENGTH_ON_NOTHING, LOCAL_HEAD_ONLY, REASONS } from './words.js';

/** Puts what was found into a report. */
export function assemble(found: Findings): SessionReport {
  const facts = gather(found);
  const { walk, receipts, classes } = found;
  const completeness = complete(facts);
  return {
    report: 'nd7/report/v1',
    session: found.session,
    ...facts.verdict,
    lines: walk.lines,
    bytes: walk.bytes,
    integrity: integrity(facts),
    completeness,
    authenticity: authentic(facts),
    freshness: fresh(facts),
    receipts: receipts.reports,
    seals: facts.seals,
    classes,
    rests_on: facts.verdict.verdict === 'intact' ? restsOn(facts) : facts.byReceipt,
    not_checked: notChecked(facts),
  };
}

function gather(found: Findings): Facts {
  const { walk, receipts, head } = found;
  const verdict = join(walk, receipts);
  const [best] = receipts.holding;
  const covered = Math.min(best?.report.to ?? 0, verdict.entries);
  const byReceipt: string[] = [];
  if (best !== undefined) {
    const { origin, index, size, received } = best.report;
    const of = `leaf ${String(index)} of ${String(size)}`;
    byReceipt.push(
      `a receipt of ${String(origin)} up to ${entriesOf(best.report.to ?? 0)}, received ${String(received)}, ${of}`,
    );
    byReceipt.push(...best.keys.map((key) => `your pinned vault key ${key}`));
    const quorum = found.trust?.policy?.quorum;
    if (quorum !== undefined && quorum !== 'none') byReceipt.push(`your witness policy, quorum ${quorum}`);
  }
  const tail = verdict.entries - covered;
  const byHead = tail > 0 || best === undefined ? localGround(head, verdict.entries) : [];
  return { ...found, verdict, covered, best, seals: sealsOf(found, verdict.entries), byReceipt, tail, byHead };
}

/** What entries rest on that no receipt covers. */
function localGround(head: Head | undefined, entries: number): string[] {
  if (head === undefined) return [LENGTH_ON_NOTHING];
  const later = entries - head.entries;
  return later > 0
    ? [LOCAL_HEAD_ONLY, `nothing at all for the last ${entriesOf(later)}: they came after the head`]
    : [LOCAL_HEAD_ONLY];
}

const ORDER = Object.keys(REASONS) as LogReason[];

/** The first entry that does not check out, by the chain and by the receipts together. */
function join(walk: WalkResult, receipts: ReceiptVerdict): Facts['verdict'] {
  const { verdict, entries, head, bad_entry, reason } = walk;
  const other = receipts.broken;
  if (other !== undefined) {
    const isFirst =
      bad_entry === undefined ||
      reason === undefined ||
      other.bad_entry < bad_entry ||
      (other.bad_entry === bad_entry && ORDER.indexOf(other.reason) < ORDER.indexOf(reason));
    if (isFirst) {
      return { verdict: 'broken', entries: other.bad_entry, head: walk.marks.get(other.bad_entry) ?? head, ...other };
    }
  }
  return { verdict, entries, head, ...(bad_entry !== undefined && { bad_entry }), ...(reason && { reason }) };
}

function sealsOf({ walk, receipts }: Findings, entries: number): SessionReport['seals'] {
  const { firstKey, machine, sealedTo, seals } = walk.seals;
  const last = sealedTo !== null && sealedTo < entries ? sealedTo : null;
  const pin = receipts.holding.at(-1)?.report;
  const isPinned = firstKey !== undefined && pin !== undefined;
  return {
    sealed_to: last,
    tail: last === null ? entries : entries - last - 1,
    seals,
    first_key: firstKey === undefined ? 'none' : isPinned ? 'pinned' : 'not-pinned',
    ...(isPinned && { pinned_by: `leaf ${String(pin.index)} of ${String(pin.origin)}` }),
    ...(machine !== undefined && { machine }),
  };
}

/** What the entries rest on, the firmest ground first. */
function restsOn({ byReceipt, byHead, seals, covered, tail }: Facts): string[] {
  if (byReceipt.length === 0 || tail === 0) return [...byReceipt, ...byHead];
  const sealed = seals.first_key === 'pinned' && seals.sealed_to !== null && seals.sealed_to >= covered;
  const bySeals = sealed ? [`seals by the pinned key from there to entry ${grouped(seals.sealed_to ?? 0)}`] : [];
  return [...byReceipt, ...bySeals, ...byHead];
}

function notChecked(facts: Facts): string[] {
  const { verdict, receipts, classes, trust, best, ended } = facts;
  const list: string[] = [];
  if (verdict.bad_entry !== undefined)
    list.push(
      `what follows entry ${grouped(verdict.bad_entry)}: reading stops at the first entry that does not check out`,
    );
  const unread = receipts.reports.filter(({ result }) => result === 'not-checked').length;
  if (unread > 0) list.push(`${grouped(unread)} ${unread === 1 ? 'receipt' : 'receipts'}: no vault key is pinned`);
  else if (receipts.reports.length === 0)
    list.push('receipts: none was given, so a log rewritten as a whole looks the same');
  if (best !== undefined) {
    const quorum = trust?.policy?.quorum;
    if (quorum === undefined || quorum === 'none')
      list.push('witnesses: none is asked for, so that the vault shows everybody the same log is its own word');
    if (receipts.holding.length > 1) list.push('that the checkpoints of these receipts extend one another');
    list.push('whether the vault revoked the machine key since');
  }
  if (!ended && verdict.verdict === 'intact') list.push('what came later: the session had not ended');
  if (classes.intent > 0)
    list.push(
      `whether what was said is true: ${entriesOf(classes.intent)} ${classes.intent === 1 ? 'is' : 'are'} intent`,
    );
  list.push('detached values: the chain holds their salted hashes, their bytes were not looked at');
  return list;
}
