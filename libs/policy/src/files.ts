import type { PathRules } from './document.js';
import { GROUP } from './parts.js';
import type { Part, Parts } from './parts.js';
import { PolicyError } from './failure.js';
import { comparePaths, expandPath, prefixesOf } from './path.js';
import type { Places } from './path.js';
import type { FileNode, Source } from './ruleset.js';

/** One rule about one right of one path. */
export interface PathRule {
  path: string;
  allow: boolean;
  part: Part;
  source: Source;
}

export type Right = 'read' | 'write' | 'exec';
export const RIGHTS: readonly Right[] = ['read', 'write', 'exec'];

/** What one policy, or the pool of them, says of one right: the nearest rule above a path decides, and where there is none, `otherwise`. */
interface Tree {
  rules: ReadonlyMap<string, PathRule>;
  otherwise: boolean;
}

/** The trees that must all allow; the pool's is the last. */
type Forest = Readonly<Record<Right, readonly Tree[]>>;

/** In place of a rule where there is none. */
export const NOTHING_ALLOWS: Source = {
  layer: 'fixed',
  policy: 'nd7',
  file: null,
  line: null,
  text: 'nothing allows it',
};

/** A node for every path that a rule names, parents before what lies under them. */
export function compileFiles(parts: Parts, places: Places): FileNode[] {
  const forest = forestOf(parts, places);
  const paths = new Set(['/']);
  for (const trees of Object.values(forest))
    for (const tree of trees) for (const path of tree.rules.keys()) paths.add(path);
  return [...paths].sort(comparePaths).map((path) => nodeOf(path, forest));
}

/** Only the nodes where the access changes. */
export function withoutRepeats(all: readonly FileNode[]): FileNode[] {
  const nodes = new Map<string, FileNode>();
  for (const node of all) {
    const above = prefixesOf(node.path).slice(0, -1).reverse();
    const parent = nodes.get(above.find((prefix) => nodes.has(prefix)) ?? '');
    if (parent === undefined || RIGHTS.some((right) => parent.access[right] !== node.access[right]))
      nodes.set(node.path, node);
  }
  return [...nodes.values()];
}

/** Rules of a right as a policy has them, in its own order: `write` that is allowed allows `read` too. */
export function rulesOf(part: Part, right: Right, places: Places, kinds: readonly (keyof PathRules)[]): PathRule[] {
  return kinds.flatMap((kind) => [
    ...rulesIn(part, right, kind, places),
    ...(right === 'read' && kind === 'allow' ? rulesIn(part, 'write', 'allow', places) : []),
  ]);
}

/** A part belongs to one compilation, and its rules are asked for many times in it. */
const READ = new WeakMap<Part, Map<string, PathRule[]>>();

function rulesIn(part: Part, right: Right, kind: keyof PathRules, places: Places): PathRule[] {
  const known = READ.get(part) ?? new Map<string, PathRule[]>();
  READ.set(part, known);
  const key = `${right}.${kind}`;
  let rules = known.get(key);
  if (rules === undefined) {
    rules = (part.document.files?.[right]?.[kind] ?? []).map((written, i) => {
      const source = part.source(['files', right, kind, i], written);
      return { path: expandAt(written, places, source), allow: kind !== 'deny', part, source };
    });
    known.set(key, rules);
  }
  return rules;
}

/** `expandPath`, with the place in the policy in its error. */
export function expandAt(written: string, places: Places, source: Source): string {
  try {
    return expandPath(written, places);
  } catch (error) {
    throw error instanceof PolicyError ? error.at(source.file, source.line) : error;
  }
}

function forestOf(parts: Parts, places: Places): Forest {
  const trees = (right: Right): Tree[] => {
    const rules = (from: readonly Part[], kinds: readonly (keyof PathRules)[]): PathRule[] =>
      from.flatMap((part) => rulesOf(part, right, places, kinds));
    return [
      ...parts.bounds.map(({ part, over }) => tree(rules([part, ...over], ['allow', 'deny']), true)),
      ...everyPart(parts)
        .filter((part) => part.document.files?.[right]?.only !== undefined)
        .map((part) => ceiling(part, right, rules([part], ['only']), rules(overCeiling(part, parts), ['allow']))),
      tree(rules(parts.pool, ['allow', 'deny']), false),
    ];
  };
  return { read: trees('read'), write: trees('write'), exec: trees('exec') };
}

/** Those who only narrow before the pool, each once. */
export function everyPart(parts: Parts): Part[] {
  return [...new Set([...parts.bounds.map(({ part }) => part), ...parts.pool])];
}

/** Who may say otherwise than a ceiling: what a person says to this very session, if it is said nearer; over the team's nobody. */
export function overCeiling(part: Part, parts: Parts): Part[] {
  if (part.layer.layer === 'team') return [];
  return parts.pool.filter((other) => other.group > part.group && other.group >= GROUP.session);
}

function ceiling(part: Part, right: Right, only: PathRule[], over: PathRule[]): Tree {
  const top: PathRule = { path: '/', allow: false, part, source: part.source(['files', right, 'only'], 'a ceiling') };
  return tree([...only, ...over, ...(only.some((rule) => rule.path === '/') ? [] : [top])], false);
}

function tree(rules: readonly PathRule[], otherwise: boolean): Tree {
  const nearest = new Map<string, PathRule>();
  for (const rule of rules) {
    const known = nearest.get(rule.path);
    if (known === undefined || outranks(rule, known)) nearest.set(rule.path, rule);
  }
  return { rules: nearest, otherwise };
}

/** Of two rules about one path the nearer policy's stands; of equally near ones the denial. */
export function outranks(
  rule: { part: Part; allow: boolean; source: Source },
  other: { part: Part; allow: boolean; source: Source },
): boolean {
  if (rule.part.rank !== other.part.rank) return rule.part.rank > other.part.rank;
  if (rule.allow !== other.allow) return !rule.allow;
  // The same twice: which one is named must not depend on the order either.
  return sourceKey(rule.source) < sourceKey(other.source);
}

export function sourceKey(source: Source): string {
  return JSON.stringify([source.policy, source.text, source.line]);
}

function nodeOf(path: string, forest: Forest): FileNode {
  const [read, write, exec] = [
    verdictAt(path, forest.read),
    verdictAt(path, forest.write),
    verdictAt(path, forest.exec),
  ];
  const readFirst = (verdict: Verdict): Verdict =>
    read.allow ? verdict : verdict.allow || isFinal(read.source) || !isFinal(verdict.source) ? read : verdict;
  const [mayWrite, mayExec] = [readFirst(write), readFirst(exec)];
  return {
    path,
    access: { read: read.allow, write: mayWrite.allow, exec: mayExec.allow },
    why: { read: read.source, write: mayWrite.source, exec: mayExec.source },
  };
}

/** Whether nobody at this machine can say otherwise. */
export function isFinal(source: Source): boolean {
  return source.layer === 'team' || (source.layer === 'fixed' && source.text !== NOTHING_ALLOWS.text);
}

interface Verdict {
  allow: boolean;
  source: Source;
}

/** All trees must allow. Of several denials the one named is that which most is needed to lift: nobody's, then a ceiling's, then the pool's. */
function verdictAt(path: string, trees: readonly Tree[]): Verdict {
  const prefixes = prefixesOf(path).reverse();
  const verdicts = trees.map(({ rules, otherwise }): Verdict => {
    const rule = rules.get(prefixes.find((prefix) => rules.has(prefix)) ?? '');
    return { allow: rule?.allow ?? otherwise, source: rule?.source ?? NOTHING_ALLOWS };
  });
  const denials = verdicts.filter((verdict) => !verdict.allow);
  return denials.find(({ source }) => isFinal(source)) ?? denials[0] ?? (verdicts.at(-1) as Verdict);
}
