// Denials that explain themselves: what the model is told when a call met the boundary, by the rules that refused it.
import { posix } from 'node:path';
import { why, type Answer, type Ruleset, type Source } from '@nd7/policy';
import type { EgressDecision } from '@nd7/egress';
import { safeLine } from '../show/safe.js';
import type { Request } from './entry.js';
import { actsFor, unreached, type Extent } from './extent.js';
import { questionFor, shellWord, wantedText, type Wanted } from './wanted.js';

/** A client cuts more than some thousand characters away. */
const MOST_TEXT = 1_900;
const MOST_TOLD = 5;
/** So many different refusals are remembered, so that each is told once. */
const MOST_KNOWN = 2_000;

/** The rule, the nearest way that is open, and how to ask, where that can be granted: behind the outcome of `why`. */
export function explainLines(
  { outcome, source, instead }: Answer,
  wanted: Wanted | undefined,
  extent: Extent,
): string[] {
  if (outcome !== 'denied') return source === null ? [] : [`rule: ${ruleOf(source)}`];
  const open = instead.filter(({ kind }) => kind === 'use').map(({ text }) => text);
  return [
    ...(source === null ? [] : [`rule: ${ruleOf(source)}`]),
    ...(open.length === 0 ? [] : [`instead: ${open.slice(0, 2).join('; ')}`]),
    ...(wanted === undefined ? [] : [askLine(wanted, extent)]),
  ];
}

function askLine(wanted: Wanted, extent: Extent): string {
  const useless = unreached(wanted, extent);
  if (useless !== undefined) return `no grant would help while this session lives: ${useless}`;
  const acts = actsFor(wanted, extent);
  const ask = `${extent.ask} ask ${wantedText(wanted)} --reason '…'`;
  return acts === undefined ? `to ask the person: ${ask}` : `to ask the person (it then reaches ${acts}): ${ask}`;
}

function ruleOf({ layer, policy, text }: Source): string {
  return `${text} (${layer} ${policy})`;
}

const HEAD =
  'nd7: this call met the boundary of the session (the kernel holds it; retrying or looking for a way round does not help):';

interface Told {
  text: string;
  /** What a person could grant; undefined for what nobody does. */
  wanted: Wanted | undefined;
  answer: Answer | undefined;
}

/** What was refused and has not been told yet; each once. */
export class Refusals {
  readonly #known = new Set<string>();
  #waiting: Told[] = [];
  #decided: string[] = [];
  #more = 0;

  /** `rules` and `extent`: those of the moment. */
  constructor(
    private readonly rules: () => Ruleset,
    private readonly extent: () => Extent,
  ) {}

  /** What a person has said to a request for whose answer nobody waits. */
  decided({ id, wanted, state }: Request): void {
    this.#decided.push(safeLine(`nd7: ${id} (${wantedText(wanted)}) was ${state} by the person`));
  }

  /** An answer of the proxy, or of the session’s name server, to which no port is said. */
  host({ verdict, via, host, port, reason, source }: EgressDecision): void {
    if (verdict !== 'deny' || host === '' || (port === null && via !== 'dns')) return;
    const authority = `${host.includes(':') ? `[${host}]` : host}:${port ?? 443}`;
    const rule = source === null ? '' : `, by ${ruleOf(source)}`;
    const who = port === null ? `the name server refused ${host}` : `the proxy refused ${authority}`;
    this.#add(`${who} (${reason ?? 'refused'}${rule})`, { right: 'net', what: authority, below: false, raw: false });
  }

  /** A call that the supervisor refused by its table of names. */
  name(path: string, call: string, source: Source | null): void {
    const rule = source === null ? '' : `, by ${ruleOf(source)}`;
    this.#add(`the supervisor’s table of names refused ${call} of ${path}${rule}`, {
      right: 'write',
      what: path,
      below: false,
      raw: false,
    });
  }

  /** Paths that a call’s output names beside an error of the file system, where the rules do deny them: nobody hears of these refusals otherwise. */
  output(text: string): void {
    for (const { path, rights } of deniedPaths(text)) {
      const wanted = rights
        .map((right): Wanted => ({ right, what: path, below: false, raw: false }))
        .find((one) => this.#why(one)?.outcome === 'denied');
      if (wanted !== undefined) this.#add(`${this.extent().refuser} refuses to ${wanted.right} ${path}`, wanted);
      else this.#program(path);
    }
  }

  /** The text for the model, of all that waits; undefined for none. */
  take(): string | undefined {
    const decided = this.#decided.splice(0, MOST_TOLD);
    const told = this.#waiting.splice(0);
    if (told.length + decided.length === 0) return undefined;
    const more = this.#more + Math.max(0, told.length - MOST_TOLD);
    this.#more = 0;
    const lines = told
      .slice(0, MOST_TOLD)
      .map(({ text, wanted, answer }) =>
        [`- ${text}`, ...(answer === undefined ? [] : explainLines(answer, wanted, this.extent()))]
          .map((line) => safeLine(line))
          .join('\n  '),
      );
    const rest = more > 0 ? [`and ${more} more: ${this.extent().ask} why ${shellWord('PATH')}`] : [];
    return cut([...decided, ...(told.length === 0 ? [] : [HEAD, ...lines, ...rest])].join('\n'));
  }

  /** What may be read and written and is not run, such as a program in the session's own temporary folder. */
  #program(path: string): void {
    const answer = whyRun(this.rules(), path);
    const key = `run ${path}`;
    if (answer === undefined || this.#isKnown(key)) return;
    this.#waiting.push({ text: `the boundary does not run ${path}`, wanted: undefined, answer });
  }

  #why(wanted: Wanted): Answer | undefined {
    const question = questionFor(wanted);
    return question && why(this.rules(), question);
  }

  #add(text: string, wanted: Wanted): void {
    if (this.#isKnown(wantedText(wanted))) return;
    const answer = this.#why(wanted);
    // The proxy’s own reasons (a malformed request, an address) are no denial of the rules.
    this.#waiting.push({ text, wanted, answer: answer?.outcome === 'denied' ? answer : undefined });
  }

  /** Whether it was told before, or is one too many; from now on it was. */
  #isKnown(key: string): boolean {
    if (this.#known.has(key)) return true;
    if (this.#known.size >= MOST_KNOWN) {
      this.#more++;
      return true;
    }
    this.#known.add(key);
    return false;
  }

  /** From now on all are told again: what was granted has ended. */
  forget(): void {
    this.#known.clear();
  }
}

/** Why a path is not run; undefined where it is. */
export function whyRun(ruleset: Ruleset, path: string): Answer | undefined {
  const answer = why(ruleset, { about: 'exec', path });
  return answer.outcome === 'denied' ? answer : undefined;
}

function cut(text: string): string {
  return text.length <= MOST_TEXT ? text : `${text.slice(0, MOST_TEXT)}…`;
}

const REFUSED = /read-only file system|permission denied|\bEROFS\b|\bEACCES\b/i;
const MOST_LINES = 20;
const MOST_SCANNED = 64 << 10;

/** Absolute paths in the lines of an output that speak of a refusal, and what was probably attempted, the likelier first. */
function deniedPaths(text: string): { path: string; rights: ('read' | 'write')[] }[] {
  const lines = text
    .slice(0, MOST_SCANNED)
    .split('\n')
    .filter((line) => line.length < 2_000 && REFUSED.test(line))
    .slice(0, MOST_LINES);
  return lines.flatMap((line) => {
    const isWrite = /read-only file system|\bEROFS\b/i.test(line);
    const paths = line.match(/(?<![\w/.])\/[^\s'"‘’`:;,()<>|]+/g) ?? [];
    return paths.slice(0, 3).map((path) => ({
      path: posix.normalize(path).replace(/(?<=.)\/+$/, ''),
      rights: isWrite ? (['write'] as const).slice() : (['read', 'write'] as const).slice(),
    }));
  });
}

/** Whether an output may speak of a refusal; cheap, for every call. */
export function speaksOfRefusal(payload: Buffer): boolean {
  return MARKS.some((mark) => payload.includes(mark));
}

const MARKS = ['ead-only file system', 'ermission denied', 'EROFS', 'EACCES'];
