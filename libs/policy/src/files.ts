import type { PathRules } from './document.js';
import type { Parts, Part } from './parts.js';
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

/** The trees that must all allow; the pool's is the first. */
type Forest = Readonly<Record<Right, readonly Tree[]>>;

const NOTHING_ALLOWS: Source = { layer: 'fixed', policy: 'nd7', file: null, line: null, text: 'nothing allows it' };

/** The file view: nodes where the access changes, parents before what lies under them. */
export function compileFiles(parts: Parts, places: Places): FileNode[] {
  const forest = forestOf(parts, places);
  const paths = new Set(['/']);
  for (const trees of Object.values(forest))
    for (const tree of trees) for (const path of tree.rules.keys()) paths.add(path);
  const nodes = new Map<string, FileNode>();
  for (const path of [...paths].sort(comparePaths)) {
    const node = nodeOf(path, forest);
    const above = prefixesOf(path).slice(0, -1).reverse();
    const parent = nodes.get(above.find((prefix) => nodes.has(prefix)) ?? '');
    if (parent === undefined || RIGHTS.some((right) => parent.access[right] !== node.access[right]))
      nodes.set(path, node);
  }
  return [...nodes.values()];
}

/** Rules of a right as a policy has them, in its own order: `write` that is allowed allows `read` too. */
export function rulesOf(part: Part, right: Right, places: Places, kinds: readonly (keyof PathRules)[]): PathRule[] {
  const from = (section: Right, kind: keyof PathRules, allow: boolean): PathRule[] =>
    (part.document.files?.[section]?.[kind] ?? []).map((written, i) => {
      const source = part.source(['files', section, kind, i], written);
      return { path: expandAt(written, places, source), allow, part, source };
    });
  return kinds.flatMap((kind) => [
    ...from(right, kind, kind !== 'deny'),
    ...(right === 'read' && kind === 'allow' ? from('write', 'allow', true) : []),
  ]);
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
    const ceilings = [...parts.pool, ...parts.bounds.map(({ part }) => part)].filter(
      (part, i, all) => part.document.files?.[right]?.only !== undefined && all.indexOf(part) === i,
    );
    return [
      tree(rules(parts.pool, ['allow', 'deny']), false),
      ...parts.bounds.map(({ part, over }) => tree(rules([part, ...over], ['allow', 'deny']), true)),
      ...ceilings.map((part) => ceiling(part, right, rules([part], ['only']), rules(overOf(part, parts), ['allow']))),
    ];
  };
  return { read: trees('read'), write: trees('write'), exec: trees('exec') };
}

/** Who may say otherwise than a ceiling: nobody but what a person says to this very session, and not over the team. */
function overOf(part: Part, parts: Parts): Part[] {
  if (part.layer.layer === 'team') return [];
  return parts.pool.filter(
    (other) => other.layer.layer === 'grant' || (other.layer.layer === 'session' && other !== part),
  );
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
  const read = verdictAt(path, forest.read);
  const write = verdictAt(path, forest.write);
  const exec = verdictAt(path, forest.exec);
  const needsRead = (verdict: Verdict): Verdict => (read.allow ? verdict : read);
  return {
    path,
    access: { read: read.allow, write: needsRead(write).allow, exec: needsRead(exec).allow },
    why: { read: read.source, write: needsRead(write).source, exec: needsRead(exec).source },
  };
}

interface Verdict {
  allow: boolean;
  source: Source;
}

/** All trees must allow; the first that does not is the reason, else the pool's rule. */
function verdictAt(path: string, trees: readonly Tree[]): Verdict {
  const prefixes = prefixesOf(path).reverse();
  const verdicts = trees.map(({ rules, otherwise }): Verdict => {
    const rule = rules.get(prefixes.find((prefix) => rules.has(prefix)) ?? '');
    return rule ?? { allow: otherwise, source: NOTHING_ALLOWS };
  });
  const { allow, source } = verdicts.find((verdict) => !verdict.allow) ?? (verdicts[0] as Verdict);
  return { allow, source };
}
