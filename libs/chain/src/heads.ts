import { CLOCK_LENGTH, MAX_HEAD, type LineKernel } from '@nd7/blake3';
import { isKind, isTime, parseSource, type EvidenceClass } from '@nd7/entry';
import { Members } from './members.js';
import { OWN } from './seal.js';

/** What a line says of itself in the members that decide its class; null where one is not of its form. */
export interface Label {
  class: EvidenceClass | 'unclassified';
  source: string | null;
  kind: string | null;
}

/**
 * What stands before a line's data is nearly the same in many lines: entries of one session have a handful of sources and kinds, and times of one day. A
 * kernel that has learned such a head answers for all lines with it, and nobody reads them. Seals are never learned: each is to be looked at.
 */
export class Heads {
  static readonly #of = new WeakMap<LineKernel, Heads>();
  /** By the kernel's numbers. What a head says is the same in every session, so that all who share a kernel share this. */
  readonly #labels: Label[] = [];

  private constructor(readonly kernel: LineKernel) {}

  /** What this kernel has learned. */
  static of(kernel: LineKernel): Heads {
    let heads = Heads.#of.get(kernel);
    if (heads === undefined) Heads.#of.set(kernel, (heads = new Heads(kernel)));
    return heads;
  }

  /** The label of the lines whose head has this number. */
  label(head: number): Label {
    return this.#labels[head] as Label;
  }

  /** Reads the label of a line that the walk found good and whose rest begins at `at`; learns its head where the kernel was asked and did not know it. */
  read(bytes: Uint8Array, at: number, end: number, learn: boolean): Label {
    const members = new Members(bytes, at - 1, end);
    const { label, clock } = read(members);
    // Good labels only: of these it is known that nothing behind the opening brace of the data decides.
    const length = members.valueStart + 1 - at;
    const isSeal = label.source === OWN && label.kind === 'seal';
    if (learn && label.class !== 'unclassified' && clock > 0 && length <= MAX_HEAD && !isSeal)
      this.#labels[this.kernel.learn(bytes.subarray(at, at + length), clock - at)] = label;
    return label;
  }
}

/** The longest text that one of the members read here may have. */
const LIMIT = 80;

/**
 * Reads the label of a line that the chain's walk found good, without looking at what stands in `data`. `clock` is where its time of day begins, where
 * that is written plainly, else 0; the cursor stands on the last member that decides.
 */
function read(members: Members): { label: Label; clock: number } {
  let source: string | null = null;
  let kind: string | null = null;
  let [time, data, isLast] = [false, false, false];
  let clock = 0;
  let left = 4;
  while (left > 0 && members.next()) {
    left--;
    isLast = false;
    if (members.keyIs('source')) source = members.text(LIMIT);
    else if (members.keyIs('kind')) kind = members.text(LIMIT);
    else if (members.keyIs('time')) {
      time = isTime(members.text(LIMIT) ?? '');
      if (members.valueEnd - members.valueStart === WRITTEN) clock = members.valueEnd - CLOCK_LENGTH;
    } else if (members.keyIs('data')) {
      data = members.isObject();
      isLast = true;
    } else left++;
  }
  const found = isKind(kind ?? '') && time && data ? parseSource(source ?? '')?.class : undefined;
  return { label: { class: found ?? 'unclassified', source, kind }, clock: isLast ? clock : 0 };
}

/** A time and its quotes; with an escape it is longer than what it says. */
const WRITTEN = '"2026-01-01T00:00:00.000Z"'.length;
