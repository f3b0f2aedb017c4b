// What the supervisor of a session is told, and what it tells: each decision about a name is recorded once, counted afterwards, and summed up at the end.
import { basename } from 'node:path';
import type { Ruleset, Source } from '@nd7/policy';
import { safeLine } from '../show/safe.js';
import { judgeChange } from './judge.js';

/** A call that a rule about names speaks of. */
export interface Observed {
  call: string;
  /** Which of the ruleset's leaves or masks, or the id of a grant; undefined where none of them decided. */
  rule: { kind: 'leaf' | 'mask' | 'grant'; index: number } | undefined;
  path: string;
  pid: number;
  /** Name of the program as the kernel has it. */
  program: string;
}

export interface ObservedEvent extends Observed {
  verdict: 'refused' | 'recorded' | 'masked';
}

export type Verdict = 'deny' | 'allow' | 'hold' | 'record' | 'mask';

const VERDICTS: Readonly<Record<ObservedEvent['verdict'], Verdict>> = {
  refused: 'deny',
  recorded: 'record',
  masked: 'mask',
};
const SOURCE = 'decision:names';
/** What the self-test tries to make: native/launch/src/selftest.c. */
const SELF_TEST = '.nd7~self-test';
/** So many different decisions are recorded one by one; what a program does in a loop after that is only counted. */
const MOST_ENTRIES = 1_000;
/** What was done all the same is told of by so many paths a rule: `npx` writes a thousand files where each is recorded. */
const MOST_DONE = 50;
/** Rules that are told of in one summary. */
const MOST_RULES = 50;
const MOST_KEYS = 50;

/** One rule's part in a session. */
export interface Tally {
  verdict: Verdict;
  /** The rule as its author wrote it; null where none decided. */
  rule: string | null;
  policy: string | null;
  count: number;
  /** The first path that it was about, and how many different ones are known. */
  path: string;
  paths: number;
}

type Note = (kind: string, data: Record<string, unknown>, what: string, source: string) => Promise<void>;

/** The front of a session's supervisor. */
export class Mediation {
  readonly #seen = new Map<string, number>();
  readonly #tallies = new Map<string, Tally>();
  #dropped = 0;
  #isTested = false;
  #unrecorded = 0;
  #writing: Promise<void> = Promise.resolve();
  #failure: unknown;

  /** `note` writes an entry and throws where the policy requires a record and it cannot be; `end` then ends the session. */
  constructor(
    private readonly ruleset: Ruleset,
    private readonly note: Note,
    private readonly end: () => void,
  ) {}

  /** Whether a mediated name may get a content. The answer is on the disk before it takes effect. */
  async judge(
    question: Observed & { before: Uint8Array | undefined; after: Uint8Array },
  ): Promise<{ allow: boolean; content?: Uint8Array }> {
    const { path, before, after, rule } = question;
    const leaf = rule?.kind === 'leaf' ? this.ruleset.leaves[rule.index] : undefined;
    const { allow, content, changed, held } = judgeChange(this.ruleset, { leaf, path, before, after });
    const verdict = !allow ? 'deny' : held.length > 0 ? 'hold' : 'allow';
    await this.#decided(verdict, question, changed, held);
    if (this.#failure !== undefined) return { allow: false };
    return content === undefined ? { allow } : { allow, content };
  }

  heard(event: ObservedEvent): void {
    // The first of them is the launcher's own attempt.
    if (!this.#isTested && basename(event.path) === SELF_TEST) {
      this.#isTested = true;
      return;
    }
    void this.#decided(VERDICTS[event.verdict], event, [], []);
  }

  dropped(count: number): void {
    this.#dropped += count;
  }

  /** What was decided, the most frequent first. */
  get tallies(): Tally[] {
    return [...this.#tallies.values()].sort((a, b) => b.count - a.count);
  }

  /** Writes the summary, once the program has ended. Throws what recording threw meanwhile. */
  async finish(): Promise<void> {
    await this.#writing;
    const { tallies } = this;
    if (this.#failure === undefined && tallies.some(({ count }) => count > 1)) {
      const rules = tallies.slice(0, MOST_RULES);
      const data = {
        rules,
        more: tallies.length - rules.length,
        unrecorded: this.#unrecorded,
        dropped: this.#dropped,
      };
      await this.note('file.summary', data, 'the sum of what was decided of names', SOURCE);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #decided(
    verdict: Verdict,
    observed: Observed,
    changed: readonly string[],
    held: readonly string[],
  ): Promise<void> {
    const { call, path, program, pid } = observed;
    const source = this.#sourceOf(observed.rule);
    const rule = source?.text ?? null;
    const key = JSON.stringify([verdict, call, path, rule, held]);
    const times = this.#seen.get(key) ?? 0;
    const isNew = times === 0 && this.#seen.size < MOST_ENTRIES && !this.#isToldOf(verdict, source);
    this.#count(verdict, source, path, isNew);
    if (times === 0 && !isNew) {
      this.#unrecorded++;
      return;
    }
    this.#seen.set(key, times + 1);
    if (times > 0) return;
    const data = {
      verdict,
      call,
      path,
      program,
      pid,
      source,
      ...(observed.rule?.kind === 'grant' ? { grant: observed.rule.index } : {}),
      ...(changed.length === 0 ? {} : { changed: changed.slice(0, MOST_KEYS) }),
      ...(held.length === 0 ? {} : { held: held.slice(0, MOST_KEYS) }),
    };
    this.#writing = this.#writing.then(() => this.#write(data));
    await this.#writing;
  }

  async #write(data: Record<string, unknown>): Promise<void> {
    if (this.#failure !== undefined) return;
    try {
      await this.note('file', data, 'a decision about a name', SOURCE);
    } catch (error) {
      this.#failure = error;
      this.end();
    }
  }

  #sourceOf(rule: Observed['rule']): Source | null {
    if (rule === undefined || rule.kind === 'grant') return null;
    return this.ruleset[rule.kind === 'leaf' ? 'leaves' : 'masks'][rule.index]?.source ?? null;
  }

  #isToldOf(verdict: Verdict, source: Source | null): boolean {
    const isDone = verdict === 'record' || verdict === 'mask';
    return isDone && (this.#tallies.get(tallyKey(verdict, source))?.paths ?? 0) >= MOST_DONE;
  }

  #count(verdict: Verdict, source: Source | null, path: string, isNew: boolean): void {
    const rule = source?.text ?? null;
    const key = tallyKey(verdict, source);
    const tally = this.#tallies.get(key) ?? { verdict, rule, policy: source?.policy ?? null, count: 0, path, paths: 0 };
    tally.count++;
    if (isNew) tally.paths++;
    this.#tallies.set(key, tally);
  }
}

function tallyKey(verdict: Verdict, source: Source | null): string {
  return JSON.stringify([verdict, source?.text, source?.policy]);
}

const DONE: Partial<Record<Verdict, string>> = { deny: 'refused', hold: 'held back in part', mask: 'masked' };

/** For the person at the terminal: which rules stood in the way, how often, and how to find the way that is open. */
export function summary(tallies: readonly Tally[], most = 5): string[] {
  const told = tallies.filter(({ verdict }) => DONE[verdict] !== undefined);
  const lines = told.slice(0, most).map(({ verdict, rule, count, path, paths }) => {
    const where = `${path}${paths > 1 ? ` and ${paths - 1} more` : ''}`;
    return `${DONE[verdict] ?? ''} ${count} time${count === 1 ? '' : 's'}: ${where}, by ${rule ?? 'the boundary'} (nd7 why ${quoted(path)})`;
  });
  const more = told.length - lines.length;
  return [...lines, ...(more > 0 ? [`${more} more rules stood in the way: nd7 show`] : [])].map((line) =>
    safeLine(line),
  );
}

function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
