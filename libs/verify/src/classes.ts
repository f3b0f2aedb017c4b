import { Members, type LineAt } from '@nd7/chain';
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

/**
 * What stands before a line's data is nearly the same in many lines: entries of one session have a handful of sources and kinds, and times of one day.
 * Comparing it with the last few answers nearly always, without reading anything.
 */
class Heads {
  /** `raw` is a copy: the line is the walk's. `clock` is where its time of day stands in it. */
  readonly #known: { raw: Uint8Array; clock: number; label: Label }[] = [];

  /** The label of a line whose rest begins at `at`. */
  of(bytes: Uint8Array, at: number, end: number): Label {
    for (const { raw, clock, label } of this.#known) if (isHead(bytes, at, raw, clock)) return label;
    const members = new Members(bytes, at - 1, end);
    const { label, clock } = read(members);
    // Good labels only: of these it is known that nothing behind the opening brace of the data decides.
    const length = members.valueStart + 1 - at;
    if (label.class !== 'unclassified' && clock > 0 && length <= LONGEST) {
      this.#known.unshift({ raw: new Uint8Array(bytes.subarray(at, at + length)), clock: clock - at, label });
      if (this.#known.length > 24) this.#known.pop();
    }
    return label;
  }
}

/** No head that is remembered is longer. */
const LONGEST = 400;

const ascii = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const CLOCK = ascii('00:00:00.000Z"');
/** The highest digit at each place of the clock; 0 where no digit stands. Hours above 23 are looked at besides. */
const HIGHEST = ascii('29 59 59 999  ').map((c) => (c === 0x20 ? 0 : c));

/** Whether `raw` stands at `at`, but for another time of the same day. */
function isHead(bytes: Uint8Array, at: number, raw: Uint8Array, clock: number): boolean {
  const after = clock + CLOCK.length;
  for (let i = raw.length - 1; i >= after; i--) if (bytes[at + i] !== raw[i]) return false;
  for (let i = 0; i < clock; i++) if (bytes[at + i] !== raw[i]) return false;
  if (bytes[at + clock] === 0x32 && (bytes[at + clock + 1] as number) > 0x33) return false;
  for (let i = 0; i < CLOCK.length; i++) {
    const c = bytes[at + clock + i] as number;
    const highest = HIGHEST[i] as number;
    if (highest === 0 ? c !== CLOCK[i] : c < 0x30 || c > highest) return false;
  }
  return true;
}

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
      if (members.valueEnd - members.valueStart === WRITTEN) clock = members.valueEnd - CLOCK.length;
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

const heads = new Heads();

/**
 * The class of a line: what `readEntry` of @nd7/entry says, for less. An entry with a member missing or not of its form is
 * `unclassified`, never one of the four.
 */
export function classOf(line: Uint8Array): keyof ClassCounts {
  return heads.of(line, 1, line.length).class;
}

/** Counts the entries of a log, or a part of one, as the walk hands them over. */
export class Tally {
  readonly counts = noEntries();
  /** Whether the session had ended after the last of them; undefined where they are seals only, or none. */
  ended: boolean | undefined;

  add(line: LineAt): void {
    const label = heads.of(line.bytes, line.rest, line.end);
    this.counts[label.class]++;
    if (label.source !== 'recorder:nd7') this.ended = false;
    else if (label.kind !== 'seal') this.ended = label.kind === 'session.end';
  }
}
