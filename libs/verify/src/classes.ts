import type { Label } from '@nd7/chain';
import type { EvidenceClass } from '@nd7/entry';

/** How many entries there are of each evidence class. */
export type ClassCounts = Record<EvidenceClass | 'unclassified', number>;

export function noEntries(): ClassCounts {
  return { intent: 0, effect: 0, decision: 0, recorder: 0, unclassified: 0 };
}

/** Adds `more` to `counts`. */
export function addCounts(counts: ClassCounts, more: ClassCounts): void {
  for (const name of Object.keys(counts) as (keyof ClassCounts)[]) counts[name] += more[name];
}

/**
 * Counts the entries of a log, or a part of one, by the labels that the walk hands over. A class is what `readEntry` of @nd7/entry says, for less: an
 * entry with a member missing or not of its form is `unclassified`, never one of the four.
 */
export class Tally {
  readonly counts = noEntries();
  /** Whether the session had ended after the last of them; undefined where they are seals only, or none. */
  ended: boolean | undefined;

  add(label: Label, count: number): void {
    this.counts[label.class] += count;
    if (label.source !== 'recorder:nd7') this.ended = false;
    else if (label.kind !== 'seal') this.ended = label.kind === 'session.end';
  }
}
