import { Members } from '@nd7/chain';
import { isKind, isTime, parseSource, type EvidenceClass } from '@nd7/entry';

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

/**
 * Gathers, while the chain is walked, what the vault needs of each entry besides its hash. The lines have passed the strict check, so members are
 * found by a cursor and nothing is parsed that is not needed: parsing whole lines took longer than hashing and checking them.
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

  /** `line` has passed the strict check and stands in the chain. */
  add(seq: number, bytes: Uint8Array): void {
    let time: string | null = null;
    let source: string | null = null;
    let kind: string | null = null;
    let data = -1;
    let left = 4;
    const members = new Members(bytes, 0, bytes.length);
    // No key stands twice: after the fourth nothing is looked for, and what was said is not even walked over.
    for (; left > 0 && members.next(); left -= 1) {
      if (members.keyIs('time')) time = members.text(32);
      else if (members.keyIs('source')) source = members.text(128);
      else if (members.keyIs('kind')) kind = members.text(64);
      else if (members.keyIs('data')) data = members.isObject() ? members.valueStart : -1;
      else left += 1;
    }
    const parts = source === null ? undefined : parseSource(source);
    const problem =
      time === null || !isTime(time)
        ? 'time'
        : parts === undefined
          ? 'source'
          : kind === null || !isKind(kind)
            ? 'kind'
            : data < 0
              ? 'data'
              : undefined;
    if (problem !== undefined) this.problems.push({ seq, member: problem });
    else if (parts !== undefined) {
      this.times.push(Date.parse(time as string));
      const { class: evidence, producer } = parts; // spelled out: spreading costs more here than all the rest
      this.note({ class: evidence, producer, source: source as string, kind: kind as string, data, bytes });
    }
  }

  finish(): ClearIndex {
    return { times: this.times, label: this.label, labels: this.labels, counts: this.counts, agent: this.agent };
  }

  private note(line: Line): void {
    const facts = factsOf(line);
    if (facts.next !== '') this.nextKeys.push(facts.next);
    if (facts.agent !== '') this.agent ??= facts.agent;
    const place = CLASSES.indexOf(line.class);
    this.counts[place as 0] += 1;
    const tuple = [line.class, line.kind, facts.agent, facts.tool, facts.verdict];
    const name = tuple.join('\n');
    let number = this.numbers.get(name);
    if (number === undefined) {
      this.labels.push(...tuple);
      number = this.labels.length / 5;
      this.numbers.set(name, number);
    }
    this.label.push(number);
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
function factsOf(line: Line): Facts {
  const { class: evidence, kind } = line;
  const own = line.source === 'recorder:nd7';
  return {
    agent:
      evidence === 'intent'
        ? line.producer
        : own && kind.startsWith('session.')
          ? firstText(line, ['agent'], NAME)
          : '',
    tool: HAS_TOOL.test(kind) ? firstText(line, ['tool_name', 'tool'], TOOL) : '',
    verdict: verdictOf(line),
    next: own && kind === 'seal' ? firstText(line, ['next'], HEX64) : '',
  };
}

/** What a rule, a person or the agent's own permission system decided. */
function verdictOf(line: Line): string {
  if (line.kind === 'rule.allow') return 'allow';
  if (line.kind === 'rule.deny' || line.kind === 'permission.denied') return 'deny';
  return line.class === 'decision' ? firstText(line, ['verdict', 'decision'], VERDICT) : '';
}

/** The first member of `data` under one of the keys, if it is a string of the form; else empty. */
function firstText(line: Line, keys: readonly string[], form: RegExp): string {
  const members = new Members(line.bytes, line.data, line.bytes.length);
  while (members.next()) {
    for (const key of keys) {
      if (!members.keyIs(key)) continue;
      const text = members.text(128);
      return text !== null && form.test(text) ? text : '';
    }
  }
  return '';
}
