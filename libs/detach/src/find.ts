import { findEnv, type EnvScope } from './env-file.js';
import type { Range, SecretMemory } from './memory.js';
import { findNamed, isSecretValue, nameWeight } from './named.js';
import { isWord, Runs } from './runs.js';
import { findShapes } from './shapes.js';

/** Where a string stands, as far as it says something about its secrets. */
export interface StringContext {
  /** The key of the member it is the value of. */
  key?: string;
  env?: EnvScope['kind'];
  /** Texts that a policy holds back: literal, or with `*` at the end for the rest of the word. */
  patterns?: readonly string[];
  memory: SecretMemory;
}

export interface Findings {
  /** Secret parts, in order, not overlapping. */
  ranges: Range[];
  /** Whether any of them is a secret; false: all are a policy's. */
  secret: boolean;
  /** Characters looked at, for the test of linear cost. */
  steps: number;
}

/** Strings this short hold no secret that any rule would find. */
const SHORTEST = 4;

/** Finds the secret parts of a string, remembers them, and finds those remembered. Linear in the text. */
export function findSecrets(text: string, context: StringContext): Findings {
  const none: Findings = { ranges: [], secret: false, steps: 0 };
  if (text.length < SHORTEST && context.env === undefined) return none;
  const runs = new Runs(text);
  const sure = [...findShapes(runs), ...findNamed(runs)];
  if (context.key !== undefined && isSecretMember(context.key, text)) sure.push({ start: 0, end: text.length });
  for (const range of sure) context.memory.add(text.slice(range.start, range.end));
  const env = context.env === undefined ? [] : findEnv(runs, context.env);
  for (const range of env) {
    const value = text.slice(range.start, range.end);
    // `development` is a value of an env file too; only what looks like a secret is looked for elsewhere.
    if (isSecretValue(value, 'weak')) context.memory.add(value);
  }
  const secrets = [...sure, ...env, ...context.memory.find(text)];
  const held = findPatterns(runs, context.patterns ?? []);
  return { ranges: merge([...secrets, ...held]), secret: secrets.length > 0, steps: runs.steps };
}

function isSecretMember(key: string, text: string): boolean {
  const weight = nameWeight(key);
  return weight !== 'none' && text.length <= 4096 && !/\s/.test(text) && isSecretValue(text, weight);
}

function findPatterns(runs: Runs, patterns: readonly string[]): Range[] {
  const { text } = runs;
  const found: Range[] = [];
  for (const pattern of patterns) {
    const open = pattern.endsWith('*');
    const literal = open ? pattern.slice(0, -1) : pattern;
    if (literal === '') continue;
    for (let at = text.indexOf(literal); at >= 0;) {
      const end = open ? runs.end('solid', at + literal.length) : at + literal.length;
      if (!open || at === 0 || !isWord(text.charCodeAt(at - 1))) found.push({ start: at, end });
      at = text.indexOf(literal, end);
    }
  }
  return found;
}

/** Sorts ranges and joins those that touch or overlap. */
function merge(ranges: Range[]): Range[] {
  const sorted = ranges.sort((a, b) => a.start - b.start || b.end - a.end);
  const merged: Range[] = [];
  for (const { start, end } of sorted) {
    const last = merged[merged.length - 1];
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else if (end > start) merged.push({ start, end });
  }
  return merged;
}

/** The text with its secret parts as `[secret]`. */
export function redact(text: string, ranges: readonly Range[]): string {
  let shown = '';
  let at = 0;
  for (const { start, end } of ranges) {
    shown += `${text.slice(at, start)}[secret]`;
    at = end;
  }
  return shown + text.slice(at);
}
