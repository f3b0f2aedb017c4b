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

/**
 * A text that stands in many lines, read once: entries of one session have a handful of sources and kinds, so that comparing bytes
 * with the last few answers nearly always, without making a string.
 */
class Remembered<T> {
  /** Copies: the line is the walk's, and a Buffer's `slice` would only look into it. */
  readonly #known: { raw: Uint8Array; value: T }[] = [];

  constructor(readonly read: (text: string | null) => T) {}

  /** What `read` says of the value under the cursor. */
  of(members: Members): T {
    const { bytes, valueStart, valueEnd } = members;
    for (const { raw, value } of this.#known) if (isAt(bytes, valueStart, valueEnd, raw)) return value;
    const value = this.read(members.text(LIMIT));
    if (valueEnd - valueStart <= LIMIT + 2) {
      this.#known.unshift({ raw: new Uint8Array(bytes.subarray(valueStart, valueEnd)), value });
      if (this.#known.length > 24) this.#known.pop();
    }
    return value;
  }
}

const sources = new Remembered((source) => ({ source, class: parseSource(source ?? '')?.class }));
const kinds = new Remembered((kind) => ({ kind, isKind: isKind(kind ?? '') }));

const ascii = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));
/** Opening quote, date and `T` of the last good time: most lines are of the same day. */
let day = ascii('"2026-01-01T');
const CLOCK = ascii('00:00:00.000Z"');
/** The highest digit at each place of the clock; 0 where no digit stands. Hours above 23 are looked at besides. */
const HIGHEST = ascii('29 59 59 999  ').map((c) => (c === 0x20 ? 0 : c));

/** `isTime` of the value under the cursor, for less where only the clock differs from the line before. */
function isTimeAt(members: Members): boolean {
  const { bytes, valueStart, valueEnd } = members;
  if (valueEnd - valueStart === day.length + CLOCK.length && isAt(bytes, valueStart, valueStart + day.length, day)) {
    const clock = valueStart + day.length;
    let good = bytes[clock] !== 0x32 || (bytes[clock + 1] as number) <= 0x33;
    for (let i = 0; good && i < CLOCK.length; i++) {
      const c = bytes[clock + i] as number;
      const highest = HIGHEST[i] as number;
      good = highest === 0 ? c === CLOCK[i] : c >= 0x30 && c <= highest;
    }
    if (good) return true;
  }
  if (!isTime(members.text(LIMIT) ?? '')) return false;
  // An escape makes the raw text longer than what it says, so these bytes are the date as it is written.
  if (valueEnd - valueStart === day.length + CLOCK.length)
    day = new Uint8Array(bytes.subarray(valueStart, valueStart + day.length));
  return true;
}

function isAt(bytes: Uint8Array, start: number, end: number, raw: Uint8Array): boolean {
  if (end - start !== raw.length) return false;
  for (let i = 0; i < raw.length; i++) if (bytes[start + i] !== raw[i]) return false;
  return true;
}

/** Reads the label of a line that the chain's walk found good, without looking at what stands in `data`. */
function labelOf(line: Uint8Array): Label {
  const members = new Members(line, 0, line.length);
  let time = false;
  let data = false;
  let source: ReturnType<typeof sources.read> | undefined;
  let kind: ReturnType<typeof kinds.read> | undefined;
  let left = 4;
  while (left > 0 && members.next()) {
    left--;
    if (members.keyIs('source')) source = sources.of(members);
    else if (members.keyIs('kind')) kind = kinds.of(members);
    else if (members.keyIs('time')) time = isTimeAt(members);
    else if (members.keyIs('data')) data = members.isObject();
    else left++;
  }
  const found = kind?.isKind === true && time && data ? source?.class : undefined;
  return { class: found ?? 'unclassified', source: source?.source ?? null, kind: kind?.kind ?? null };
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
