import { Members } from '@nd7/chain';
import { isKind, parseSource, type EvidenceClass } from '@nd7/entry';
import { Repeated, TimeReader } from './repeated.js';

/** What of a segment's entries may stand in clear: times and, by number, tuples of class, kind, agent, tool and verdict. */
export interface ClearIndex {
  /** Milliseconds since 1970, one per entry. */
  times: number[];
  /** From 1; one per entry. */
  label: number[];
  /** Five per tuple; the empty string where there is none. */
  labels: string[];
  /** intent, effect, decision, recorder, unclassified. */
  counts: [number, number, number, number, number];
  /** The first agent that speaks, if one does. */
  agent: string | null;
}

const CLASSES: readonly EvidenceClass[] = ['intent', 'effect', 'decision', 'recorder'];

/** A tool's name as agents give them; what is no name is no tool. */
const TOOL = /^[A-Za-z0-9_.:/-]{1,128}$/;
/** Kinds that speak of a tool. */
const HAS_TOOL = /^(tool|permission|rule|grant|exec)([.-]|$)/;
const VERDICT = /^[a-z][a-z-]{0,31}$/;
const HEX64 = /^[0-9a-f]{64}$/;
const NAME = /^[a-z0-9][a-z0-9.-]{0,63}$/;

/** The members of one line that the vault looks at. */
interface Line {
  class: EvidenceClass;
  source: string;
  producer: string;
  kind: string;
  /** Where `data` begins. */
  data: number;
  bytes: Uint8Array;
}

/** Before the number of a line, and after it up to the fourth member (docs/format.md, "An entry"): `{"v":1,"seq":` and `,"prev":"<64 hex>",`. */
const PREFIX = 13 + 9 + 64 + 2;

/**
 * Gathers, while the chain is walked, what the vault needs of each entry besides its hash. The lines have passed the strict check, so members are
 * found by a cursor and nothing is parsed that is not needed: parsing whole lines took longer than hashing and checking them. What lines say again
 * and again (source, kind, tool, the minute) is compared with what the line before said.
 */
export class EntryIndex {
  /** Entries whose members are not of their form, in order. */
  readonly problems: { seq: number; member: 'time' | 'source' | 'kind' | 'data' }[] = [];
  /** Session keys that the seals name. */
  readonly nextKeys: string[] = [];
  private readonly times: number[] = [];
  private readonly label: number[] = [];
  private readonly labels: string[] = [];
  private readonly numbers = new Map<string, number>();
  private readonly counts: ClearIndex['counts'] = [0, 0, 0, 0, 0];
  private agent: string | null = null;
  private readonly time = new TimeReader();
  private readonly said = new Repeated();
  private readonly sources = new Map<string, ReturnType<typeof parseSource>>();
  private readonly kinds = new Map<string, boolean>();
  private last: { facts: Facts; class: EvidenceClass; kind: string; number: number } | undefined;

  /** `bytes` is a line that has passed the strict check and stands in the chain as number `seq`. */
  add(seq: number, bytes: Uint8Array): void {
    let time = NaN;
    let source: string | null = null;
    let kind: string | null = null;
    let data = -1;
    // The walk has compared version, number and link with what they must be.
    const members = new Members(bytes, PREFIX + digits(seq) - 1, bytes.length);
    // No key stands twice: after the fourth nothing is looked for, and what was said is not even walked over.
    for (let left = 4; left > 0 && members.next(); left -= 1) {
      if (members.keyIs('time')) time = this.time.read(members);
      else if (members.keyIs('source')) source = this.said.text(members, 128);
      else if (members.keyIs('kind')) kind = this.said.text(members, 64);
      else if (members.keyIs('data')) data = members.isObject() ? members.valueStart : -1;
      else left += 1;
    }
    const parts = source === null ? undefined : kept(this.sources, source, parseSource);
    const problem = Number.isNaN(time)
      ? 'time'
      : parts === undefined
        ? 'source'
        : kind === null || !kept(this.kinds, kind, isKind)
          ? 'kind'
          : data < 0
            ? 'data'
            : undefined;
    if (problem !== undefined) this.problems.push({ seq, member: problem });
    else if (parts !== undefined) {
      this.times.push(time);
      const { class: evidence, producer } = parts; // spelled out: spreading costs more here than all the rest
      this.note({ class: evidence, producer, source: source as string, kind: kind as string, data, bytes });
    }
  }

  finish(): ClearIndex {
    return { times: this.times, label: this.label, labels: this.labels, counts: this.counts, agent: this.agent };
  }

  private note(line: Line): void {
    const facts = factsOf(line, this.said);
    if (facts.next !== '') this.nextKeys.push(facts.next);
    if (facts.agent !== '') this.agent ??= facts.agent;
    const place = CLASSES.indexOf(line.class);
    this.counts[place as 0] += 1;
    const { last } = this;
    if (
      last?.kind === line.kind &&
      last.class === line.class &&
      last.facts.agent === facts.agent &&
      last.facts.tool === facts.tool &&
      last.facts.verdict === facts.verdict
    ) {
      this.label.push(last.number);
      return;
    }
    const tuple = [line.class, line.kind, facts.agent, facts.tool, facts.verdict];
    const name = tuple.join('\n');
    let number = this.numbers.get(name);
    if (number === undefined) {
      this.labels.push(...tuple);
      number = this.labels.length / 5;
      this.numbers.set(name, number);
    }
    this.label.push(number);
    this.last = { facts, class: line.class, kind: line.kind, number };
  }
}

interface Facts {
  agent: string;
  tool: string;
  verdict: string;
  /** A seal's next key. */
  next: string;
}

/** Only what a kind can hold is looked for: `data` may be large, and most of it is what was said. */
function factsOf(line: Line, said: Repeated): Facts {
  const { class: evidence, kind } = line;
  const own = line.source === 'recorder:nd7';
  return {
    agent:
      evidence === 'intent'
        ? line.producer
        : own && kind.startsWith('session.')
          ? firstText(line, said, ['agent'], NAME)
          : '',
    tool: HAS_TOOL.test(kind) ? firstText(line, said, ['tool_name', 'tool'], TOOL) : '',
    verdict: verdictOf(line, said),
    next: own && kind === 'seal' ? firstText(line, said, ['next'], HEX64) : '',
  };
}

/** What a rule, a person or the agent's own permission system decided. */
function verdictOf(line: Line, said: Repeated): string {
  if (line.kind === 'rule.allow') return 'allow';
  if (line.kind === 'rule.deny' || line.kind === 'permission.denied') return 'deny';
  return line.class === 'decision' ? firstText(line, said, ['verdict', 'decision'], VERDICT) : '';
}

/** The first member of `data` under one of the keys, if it is a string of the form; else empty. */
function firstText(line: Line, said: Repeated, keys: readonly string[], form: RegExp): string {
  const members = new Members(line.bytes, line.data, line.bytes.length);
  while (members.next()) {
    for (const key of keys) {
      if (!members.keyIs(key)) continue;
      const text = said.text(members, 128);
      return text !== null && form.test(text) ? text : '';
    }
  }
  return '';
}

/** What a function says of a text, asked once a text. Few differ within a segment; those of a hostile one are at most as many as its entries. */
function kept<T>(known: Map<string, T>, text: string, read: (text: string) => T): T {
  let value = known.get(text);
  if (value === undefined && !known.has(text)) {
    value = read(text);
    known.set(text, value);
  }
  return value as T;
}

function digits(seq: number): number {
  let [count, rest] = [1, seq];
  for (; rest >= 10; rest /= 10) count += 1;
  return count;
}
