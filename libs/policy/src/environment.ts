import { outranks } from './files.js';
import { PolicyError } from './failure.js';
import type { Part, Parts } from './parts.js';
import { expandPath } from './path.js';
import type { Places } from './path.js';
import { unique } from './names.js';
import { nameMatches } from './pattern.js';
import type { EnvironmentRules, Sourced } from './ruleset.js';

export function compileEnvironment(parts: Parts, places: Places): EnvironmentRules {
  const listed = (part: Part, kind: 'pass' | 'unset'): Sourced<{ pattern: string }>[] =>
    (part.document.environment?.[kind] ?? []).map((pattern, i) => ({
      pattern,
      source: part.source(['environment', kind, i], pattern),
    }));
  const bounds = parts.bounds.map(({ part, over }) => ({ part, over: [part, ...over] }));
  const pool = parts.pool
    .filter((part) => !bounds.some((bound) => bound.part === part))
    .map((part) => ({ part, over: parts.pool.filter((other) => other.group >= part.group) }));
  return {
    pass: parts.pool.flatMap((part) => listed(part, 'pass')),
    unset: [...pool, ...bounds].flatMap(({ part, over }) => {
      // A name written out beats a pattern; of two written out the nearer policy's stands.
      const named = (pattern: string): string[] =>
        over
          .filter((other) => other.group > part.group || pattern.includes('*'))
          .flatMap((other) => listed(other, 'pass').map((rule) => rule.pattern))
          .filter((name) => !name.includes('*') && holdsBack({ pattern, except: [] }, name));
      return listed(part, 'unset').map(({ pattern, source }) => ({ pattern, except: unique(named(pattern)), source }));
    }),
    set: setRules(parts.pool, places),
  };
}

function setRules(pool: readonly Part[], places: Places): EnvironmentRules['set'] {
  const standing = new Map<string, EnvironmentRules['set'][number] & { part: Part; allow: boolean }>();
  for (const part of pool) {
    for (const [name, written] of Object.entries(part.document.environment?.set ?? {})) {
      const source = part.source(['environment', 'set', name], written);
      const rule = { name, value: valueOf(written, places, source.file, source.line), source, part, allow: true };
      const known = standing.get(name);
      if (known === undefined || outranks(rule, known)) standing.set(name, rule);
    }
  }
  return [...standing.values()]
    .map(({ name, value, source }) => ({ name, value, source }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A value that begins as a path of a policy does is one. */
function valueOf(written: string, places: Places, file: string | null, line: number | null): string {
  if (!/^(~|\.|\$[A-Za-z_][A-Za-z0-9_]*)(\/|$)/.test(written)) return written;
  try {
    return expandPath(written, places);
  } catch (error) {
    throw error instanceof PolicyError ? error.at(file, line) : error;
  }
}

/** The environment inside. Names that no shell can set (`a=b`, the empty one) never pass. */
export function environmentInside(
  rules: EnvironmentRules,
  outside: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const inside = new Map<string, string>();
  for (const [name, value] of Object.entries(outside))
    if (value !== undefined && passes(rules, name)) inside.set(name, value);
  for (const { name, value } of rules.set) inside.set(name, value);
  return Object.fromEntries(inside);
}

/** What rules have said of names: who keeps sessions asks the same ones for the same variables at each start. */
const decided = new WeakMap<EnvironmentRules, Map<string, boolean>>();
/** More than an environment has variables. */
const MOST_DECIDED = 10_000;

/** Whether a variable of the environment outside is seen inside. Rules do not change once they are compiled. */
export function passes(rules: EnvironmentRules, name: string): boolean {
  let answers = decided.get(rules);
  if (answers === undefined || answers.size >= MOST_DECIDED) decided.set(rules, (answers = new Map()));
  const known = answers.get(name);
  if (known !== undefined) return known;
  const answer = decide(rules, name);
  answers.set(name, answer);
  return answer;
}

function decide(rules: EnvironmentRules, name: string): boolean {
  if (name === '' || /[=\0]/.test(name)) return false;
  if (rules.unset.some((rule) => holdsBack(rule, name))) return false;
  return rules.pass.some(({ pattern }) => nameMatches(pattern, name));
}

/** `github_token` is held back where `*TOKEN` is: people write both. */
export function holdsBack({ pattern, except }: { pattern: string; except: readonly string[] }, name: string): boolean {
  return nameMatches(pattern.toUpperCase(), name.toUpperCase()) && !except.includes(name);
}
