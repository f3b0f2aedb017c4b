import type { Head, WalkResult } from '@nd7/chain';
import type { Trust } from '@nd7/receipt';
import type { ClassCounts } from './classes.js';
import type { ReceiptVerdict } from './receipts.js';
import type { SessionReport, Verdict } from './report.js';
import { entriesOf, grouped, LENGTH_ON_NOTHING, REASONS, short, span } from './words.js';

/** Older than this a receipt is called stale (the dashboard's trust bar uses the same). */
const STALE_AFTER = 5 * 60_000;
/** A receipt from further in the future says that a clock is wrong, not that the log is fresh. The same as a request's time may be off. */
const CLOCKS_AGREE = 5 * 60_000;

/** What was found out about a log, before it is put into words. */
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
export interface Facts extends Findings {
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

/** The sentences on seals, in the words that docs/format.md prescribes. */
export function sealSentences(seals: SessionReport['seals']): string[] {
  if (seals.first_key === 'none') return ['unsealed'];
  const tail = `unsealed tail: ${String(seals.tail)} entries`;
  const isPinned = seals.first_key === 'pinned';
  const pin = `first key pinned by receipt ${String(seals.pinned_by)}`;
  if (seals.sealed_to === null) return ['unsealed', isPinned ? pin : 'first key not pinned: rests on the machine key'];
  if (!isPinned) return ['sealed, first key not pinned: rests on the machine key', tail];
  return [`sealed to entry ${String(seals.sealed_to)}, ${pin}`, tail];
}

export function integrity({ verdict, walk, seals, covered, tail, byReceipt, byHead }: Facts): Verdict {
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
  const last = firm > 0 ? ` the last ${grouped(entries - firm)} of` : '';
  const loose = entries === 0 ? '' : ` Nothing outside this machine speaks for${last} them.`;
  return { state: 'part', verdict: 'Unchanged', text: links + sealed + loose, rests_on: [...byReceipt, ...byHead] };
}

function before(bad: number): string {
  return bad === 0 ? 'No entry before it.' : `The ${entriesOf(bad)} before it check out; what follows was not read.`;
}

export function complete(facts: Facts): Verdict {
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

export function authentic({ verdict, receipts, best, covered, seals, byReceipt }: Facts): Verdict {
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
  const failed = receipts.reports.map(({ result }) => result).filter((result) => result !== 'not-checked');
  const which =
    failed.length === 1
      ? 'The receipt given does not hold'
      : `None of the ${grouped(failed.length)} receipts given holds`;
  const why = failed.length === 0 ? '' : ` ${which}: ${[...new Set(failed)].join(', ')}.`;
  const text = sentence(sealSentences(seals).join('; ')) + why;
  const rests_on = seals.first_key === 'none' ? [] : ['the machine key, which nobody vouches for here'];
  return {
    state: failed.length === 0 ? 'unchecked' : 'bad',
    verdict: 'Not signed by a key you pinned',
    text,
    rests_on,
  };
}

export function fresh({ receipts, now, byReceipt }: Facts): Verdict {
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
  if (age < -CLOCKS_AGREE)
    return {
      state: 'unchecked',
      verdict: 'Not checked',
      text: `${text} That is ${span(-age)} ahead of the clock here: one of the two is wrong.`,
      rests_on: byReceipt,
    };
  if (age <= STALE_AFTER) return { state: 'good', verdict: `${span(age)} old`, text, rests_on: byReceipt };
  return { state: 'part', verdict: `Stale, ${span(age)}`, text, rests_on: byReceipt };
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}
