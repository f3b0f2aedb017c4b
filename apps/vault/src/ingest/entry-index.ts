import { readEntry, type EntryView } from '@nd7/entry';

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

const CLASSES = ['intent', 'effect', 'decision', 'recorder', 'unclassified'] as const;

/** A tool's name as agents give them; what is no name is no tool. */
const TOOL = /^[A-Za-z0-9_.:/-]{1,128}$/;
const VERDICT = /^[a-z][a-z-]{0,31}$/;
const HEX64 = /^[0-9a-f]{64}$/;
const NAME = /^[a-z0-9][a-z0-9.-]{0,63}$/;

/** Gathers, while the chain is walked, what the vault needs of each entry besides its hash. */
export class EntryIndex {
  /** Entries whose members are not of their form, in order. */
  readonly problems: { seq: number; member: string }[] = [];
  /** Session keys that the seals name. */
  readonly nextKeys: string[] = [];
  private readonly times: number[] = [];
  private readonly label: number[] = [];
  private readonly labels: string[] = [];
  private readonly numbers = new Map<string, number>();
  private readonly counts: ClearIndex['counts'] = [0, 0, 0, 0, 0];
  private agent: string | null = null;

  constructor(readonly from: number) {}

  /** `line` has passed the strict check and stands in the chain. */
  add(seq: number, line: Uint8Array): void {
    const view = readEntry(line);
    if (view.problem !== undefined) {
      this.problems.push({ seq, member: view.problem });
      return;
    }
    this.times.push(Date.parse(view.time as string));
    const facts = factsOf(view);
    if (facts.next !== undefined) this.nextKeys.push(facts.next);
    this.agent ??= facts.agent === '' ? null : facts.agent;
    const place = CLASSES.indexOf(view.class);
    this.counts[place as 0] += 1;
    const tuple = [view.class, view.kind as string, facts.agent, facts.tool, facts.verdict];
    const name = tuple.join('\n');
    let number = this.numbers.get(name);
    if (number === undefined) {
      this.labels.push(...tuple);
      number = this.labels.length / 5;
      this.numbers.set(name, number);
    }
    this.label.push(number);
  }

  finish(): ClearIndex {
    return { times: this.times, label: this.label, labels: this.labels, counts: this.counts, agent: this.agent };
  }
}

interface Facts {
  agent: string;
  tool: string;
  verdict: string;
  /** A seal's next key. */
  next?: string;
}

function factsOf(view: EntryView): Facts {
  const data = JSON.parse(view.data as string) as Record<string, unknown>;
  const text = (key: string, form: RegExp): string => {
    const value = data[key];
    return typeof value === 'string' && form.test(value) ? value : '';
  };
  const facts: Facts = {
    agent: view.class === 'intent' ? (view.producer as string) : view.class === 'recorder' ? text('agent', NAME) : '',
    tool: text('tool_name', TOOL) || text('tool', TOOL),
    verdict: verdictOf(view, text),
  };
  if (view.source === 'recorder:nd7' && view.kind === 'seal') {
    const next = text('next', HEX64);
    if (next !== '') facts.next = next;
  }
  return facts;
}

/** What a rule, a person or the agent's own permission system decided. */
function verdictOf(view: EntryView, text: (key: string, form: RegExp) => string): string {
  if (view.kind === 'rule.allow') return 'allow';
  if (view.kind === 'rule.deny' || view.kind === 'permission.denied') return 'deny';
  return view.class === 'decision' ? text('verdict', VERDICT) || text('decision', VERDICT) : '';
}
