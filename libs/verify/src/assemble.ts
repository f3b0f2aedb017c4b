import type { Head, LogReason, WalkResult } from '@nd7/chain';
import type { Trust } from '@nd7/receipt';
import type { ClassCounts } from './classes.js';
import type { ReceiptVerdict } from './receipts.js';
import type { SessionReport, Verdict } from './report.js';
import { entriesOf, grouped, LENGTH_ON_NOTHING, LOCAL_HEAD_ONLY, REASONS, short, span } from './words.js';

/** Older than this a receipt is called stale (the dashboard's trust bar uses the same). */
const STALE_AFTER = 5 * 60_000;

export interface Findings {
  session: string;
  walk: WalkResult;
  receipts: ReceiptVerdict;
  classes: ClassCounts;
  /** Whether the last entry that is no seal ends the session. */
  ended: boolean;
  head: Head | undefined;
  trust: Trust | undefined;
  now: number | undefined;
}

/** What the four verdicts have in common. */
interface Facts extends Findings {
  verdict: Pick<SessionReport, 'verdict' | 'entries' | 'head' | 'bad_entry' | 'reason'>;
  /** How many entries a receipt that holds covers. */
  covered: number;
  best: ReceiptVerdict['holding'][number] | undefined;
  seals: SessionReport['seals'];
  byReceipt: string[];
  /** Entries beyond the last receipt, and what they rest on. */
  tail: number;
  byHead: string[];
}

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
  const byHead = tail > 0 || best === undefined ? [head === undefined ? LENGTH_ON_NOTHING : LOCAL_HEAD_ONLY] : [];
  return { ...found, verdict, covered, best, seals: sealsOf(found, verdict.entries), byReceipt, tail, byHead };
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

/** The sentences on seals that docs/format.md prescribes. */
export function sealSentences(seals: SessionReport['seals']): string[] {
  if (seals.first_key === 'none') return ['unsealed'];
  const tail = `unsealed tail: ${String(seals.tail)} entries`;
  if (seals.first_key === 'not-pinned') return ['sealed, first key not pinned: rests on the machine key', tail];
  if (seals.sealed_to === null) return [`no seal yet, first key pinned by receipt ${String(seals.pinned_by)}`, tail];
  return [`sealed to entry ${String(seals.sealed_to)}, first key pinned by receipt ${String(seals.pinned_by)}`, tail];
}

function integrity({ verdict, walk, seals, covered, tail, byReceipt, byHead }: Facts): Verdict {
  const { entries, bad_entry, reason } = verdict;
  const links = `${entriesOf(entries)}, each with the hash of the one before.`;
  if (reason !== undefined && bad_entry !== undefined && reason !== 'truncated') {
    const text = `Entry ${grouped(bad_entry)}: ${reason}: ${REASONS[reason]}. ${before(bad_entry)}`;
    return { state: 'bad', verdict: `Changed at entry ${grouped(bad_entry)}`, text, rests_on: byReceipt };
  }
  const sealed =
    walk.seals.seals === 0
      ? ''
      : ` ${grouped(seals.seals)} ${seals.seals === 1 ? 'seal follows' : 'seals follow each other'}.`;
  const isSealed = seals.first_key === 'pinned' && seals.sealed_to !== null;
  const firm = Math.max(covered, isSealed ? (seals.sealed_to ?? -1) + 1 : 0);
  if (firm >= entries && (tail === 0 || isSealed) && byReceipt.length > 0) {
    return { state: 'good', verdict: 'Unchanged', text: links + sealed, rests_on: byReceipt };
  }
  const loose = ` ${entriesOf(entries - firm)}${firm > 0 ? ' at the end' : ''}: nothing but the chain itself and, where given, the local head.`;
  return { state: 'part', verdict: 'Unchanged', text: links + sealed + loose, rests_on: [...byReceipt, ...byHead] };
}

function before(bad: number): string {
  return bad === 0 ? 'No entry before it.' : `The ${entriesOf(bad)} before it check out; what follows was not read.`;
}

function complete(facts: Facts): Verdict {
  const { verdict, receipts, head, covered, tail, byReceipt, byHead } = facts;
  const { entries, reason } = verdict;
  const counted = Math.max(receipts.counted, head?.entries ?? 0);
  if (reason === 'truncated') {
    const missing = counted - entries;
    const by = receipts.counted > entries ? 'A receipt of the vault counts' : 'The local head counts';
    const text = `${by} ${entriesOf(counted)}; there are ${grouped(entries)}.`;
    return { state: 'bad', verdict: `${grouped(missing)} missing`, text, rests_on: byReceipt };
  }
  if (reason !== undefined) {
    const text = `How long the log was meant to be is not judged beyond entry ${grouped(entries)}, where it breaks.`;
    if (covered === 0) return { state: 'unchecked', verdict: 'Not checked', text, rests_on: [] };
    return { state: 'part', verdict: `Complete to ${grouped(covered)}`, text, rests_on: byReceipt };
  }
  if (covered > 0 && tail === 0) {
    if (facts.ended) {
      return {
        state: 'good',
        verdict: 'Complete',
        text: 'A receipt covers every entry, and the session ended.',
        rests_on: byReceipt,
      };
    }
    const text = 'A receipt covers every entry here. The session had not ended: later entries may exist.';
    return { state: 'good', verdict: `Complete to ${grouped(covered)}`, text, rests_on: byReceipt };
  }
  if (covered > 0) {
    const rest = head === undefined ? 'nothing' : 'the local head only';
    const text = `${entriesOf(tail)} after the last receipt: whether more were there rests on ${rest}.`;
    return { state: 'part', verdict: `Complete to ${grouped(covered)}`, text, rests_on: [...byReceipt, ...byHead] };
  }
  if (head === undefined)
    return { state: 'unchecked', verdict: 'Not checked', text: sentence(LENGTH_ON_NOTHING), rests_on: [] };
  const later =
    entries > head.entries ? ` ${entriesOf(entries - head.entries)} came after it and are counted by nothing.` : '';
  const text = `The local head counts ${entriesOf(head.entries)}, and they are there.${later}`;
  return { state: 'part', verdict: `Complete to ${grouped(head.entries)}`, text, rests_on: byHead };
}

function authentic({ verdict, receipts, best, covered, seals, byReceipt }: Facts): Verdict {
  if (best !== undefined) {
    const { machine, origin } = best.report;
    const by = receipts.holding.every(({ report }) => report.machine === machine)
      ? short(machine ?? '')
      : 'several machines';
    const count = receipts.holding.length;
    const signed = `${grouped(count)} ${count === 1 ? 'statement' : 'statements'} by its key, to entry ${grouped(covered)}, taken by ${String(origin)}.`;
    const text = `${signed} ${sentence(sealSentences(seals).join('; '))}`;
    const isWhole = verdict.verdict === 'intact' && receipts.reports.every(({ result }) => result === 'holds');
    return { state: isWhole ? 'good' : 'part', verdict: `Signed by ${by}`, text, rests_on: byReceipt };
  }
  const failed = receipts.reports.find(({ result }) => result !== 'not-checked');
  const why = failed === undefined ? '' : ` The receipt given does not hold: ${failed.result}.`;
  const text = sentence(sealSentences(seals).join('; ')) + why;
  const rests_on = seals.first_key === 'none' ? [] : ['the machine key, which nobody vouches for here'];
  return {
    state: failed === undefined ? 'unchecked' : 'bad',
    verdict: 'Not signed by a key you pinned',
    text,
    rests_on,
  };
}

function fresh({ receipts, now, byReceipt }: Facts): Verdict {
  const times = receipts.holding.map(({ report }) => report.received ?? '').sort();
  const newest = times.at(-1);
  if (newest === undefined) {
    return {
      state: 'unchecked',
      verdict: 'Not checked',
      text: 'No receipt dates this log: its times are its own machine’s word.',
      rests_on: [],
    };
  }
  const text = `The newest receipt was taken ${newest} by the vault’s clock.`;
  if (now === undefined)
    return {
      state: 'unchecked',
      verdict: 'Not checked',
      text: `${text} No time was given to compare it with.`,
      rests_on: byReceipt,
    };
  const age = now - Date.parse(newest);
  if (age <= STALE_AFTER) return { state: 'good', verdict: `${span(age)} old`, text, rests_on: byReceipt };
  return { state: 'part', verdict: `Stale, ${span(age)}`, text, rests_on: byReceipt };
}

function restsOn({ byReceipt, byHead, seals, best, tail }: Facts): string[] {
  const rest = [...byReceipt];
  if (best !== undefined && tail > 0) {
    const isSealed = seals.sealed_to !== null && seals.first_key === 'pinned';
    const what =
      isSealed && seals.tail < tail
        ? `${entriesOf(tail)} after it: seals to entry ${grouped(seals.sealed_to ?? 0)}, then `
        : `${entriesOf(tail)} after it: `;
    rest.push(what + (byHead[0] ?? ''));
  } else rest.push(...byHead);
  return rest;
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

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}
