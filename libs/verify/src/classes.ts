import { Members } from '@nd7/chain';
import { isKind, isTime, parseSource, type EvidenceClass } from '@nd7/entry';

/** How many entries there are of each evidence class. */
export type ClassCounts = Record<EvidenceClass | 'unclassified', number>;

export function noEntries(): ClassCounts {
  return { intent: 0, effect: 0, decision: 0, recorder: 0, unclassified: 0 };
}

/** Adds `more` to `counts`. */
export function addCounts(counts: ClassCounts, more: ClassCounts): void {
  for (const name of Object.keys(counts) as (keyof ClassCounts)[]) counts[name] += more[name];
}

/** The longest text that one of the members read here may have. */
const LIMIT = 80;

/** What a line says of itself in the members that decide its class; null where one is not of its form. */
interface Label {
  class: keyof ClassCounts;
  source: string | null;
  kind: string | null;
}

/** Reads the label of a line that the chain's walk found good, without looking at what stands in `data`. */
function labelOf(line: Uint8Array): Label {
  const members = new Members(line, 0, line.length);
  let time = false;
  let data = false;
  let source: string | null = null;
  let kind: string | null = null;
  let left = 4;
  while (left > 0 && members.next()) {
    left--;
    if (members.keyIs('source')) source = members.text(LIMIT);
    else if (members.keyIs('kind')) kind = members.text(LIMIT);
    else if (members.keyIs('time')) time = isTime(members.text(LIMIT) ?? '');
    else if (members.keyIs('data')) data = members.isObject();
    else left++;
  }
  const parsed = source === null ? undefined : parseSource(source);
  const isClassified = parsed !== undefined && kind !== null && isKind(kind) && time && data;
  return { class: isClassified ? parsed.class : 'unclassified', source, kind };
}

/**
 * The class of a line: what `readEntry` of @nd7/entry says, for less. An entry with a member missing or not of its form is
 * `unclassified`, never one of the four.
 */
export function classOf(line: Uint8Array): keyof ClassCounts {
  return labelOf(line).class;
}

/** Counts the entries of a log, or a part of one, as the walk hands them over. */
export class Tally {
  readonly counts = noEntries();
  /** Whether the session had ended after the last of them; undefined where they are seals only, or none. */
  ended: boolean | undefined;

  add(line: Uint8Array): void {
    const label = labelOf(line);
    this.counts[label.class]++;
    if (label.source !== 'recorder:nd7') this.ended = false;
    else if (label.kind !== 'seal') this.ended = label.kind === 'session.end';
  }
}
