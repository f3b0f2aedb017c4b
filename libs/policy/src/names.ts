import { PACKAGE_FOLDERS, RECORDED, REFUSED } from './builtin/index.js';
import type { PolicyDocument } from './document.js';
import { PolicyError } from './failure.js';
import { expandAt, rulesOf } from './files.js';
import type { PathRule } from './files.js';
import { GROUP } from './parts.js';
import type { Part, Parts } from './parts.js';
import { componentsOf, expandPath, isWithin } from './path.js';
import type { Places } from './path.js';
import { foldName, nameMatches, parsePattern, prefixMatches } from './pattern.js';
import type { LeafTreatment, Mask, Mediator, ProtectedLeaf, Source } from './ruleset.js';

type MaskRule = Exclude<NonNullable<PolicyDocument['masks']>[number], string>;

/** Every name that is made or found is compared with so many patterns at most, of each policy. */
const MAX_COMPARISONS = 500;

/** All masks, of the pool and of those who only narrow; each with what has been named in spite of it by somebody who may. */
export function compileMasks(parts: Parts, places: Places): Mask[] {
  return everybody(parts).flatMap(({ part, over }) => {
    if (part.document.masks === undefined) return [];
    const named = over.flatMap((other) => rulesOf(other, 'read', places, ['allow']));
    let comparisons = 0;
    return part.document.masks.map((written, i) => {
      const rule: MaskRule = typeof written === 'string' ? { pattern: written } : written;
      comparisons += (1 + (rule.except?.length ?? 0)) * (rule.under?.length ?? 1);
      const source = part.source(['masks', i], rule.pattern);
      if (comparisons > MAX_COMPARISONS)
        throw new PolicyError(
          'bad-policy',
          'its masks, with what they let out, times their folders, are too many',
          `At most ${MAX_COMPARISONS} in one policy.`,
          source.file,
          source.line,
        );
      const mask: Mask = {
        under: unique((rule.under ?? ['.']).map((folder) => expandAt(folder, places, source))),
        pattern: checked(rule.pattern, source),
        except: (rule.except ?? []).map((pattern) => checked(pattern, source)),
        exceptPaths: [],
        notBelow: part.group === GROUP.base ? [...PACKAGE_FOLDERS] : [],
        exceptTracked: rule.exceptTracked ?? true,
        source,
      };
      mask.exceptPaths = unique(named.map(({ path }) => path).filter((path) => maskedPrefix(mask, path) !== undefined));
      return mask;
    });
  });
}

/**
 * Every policy once, with those who may let names out of what it says: of a policy that only narrows those in `over` and itself; of one in
 * the pool itself and all that stand as near to the person as it or nearer.
 */
function everybody(parts: Parts): { part: Part; over: Part[] }[] {
  const narrowing = parts.bounds.map(({ part, over }) => ({ part, over: [part, ...over] }));
  const pool = parts.pool
    .filter((part) => !narrowing.some((bound) => bound.part === part))
    .map((part) => ({ part, over: parts.pool.filter((other) => other.group >= part.group) }));
  return [...pool, ...narrowing];
}

function checked(pattern: string, source: Source): string {
  try {
    parsePattern(pattern, { deep: true });
    return pattern;
  } catch (error) {
    throw error instanceof PolicyError ? error.at(source.file, source.line) : error;
  }
}

/**
 * The part of `path` that a mask hides, or undefined where it does not touch the path: the shortest prefix, strictly below a folder of
 * `under`, that the pattern matches and that nothing lets out. `tracked` says which files git tracks.
 */
export function maskedPrefix(
  mask: Mask,
  path: string,
  tracked: (path: string) => boolean = () => false,
): string | undefined {
  const { pattern, except } = componentsIn(mask);
  for (const under of mask.under) {
    if (path === under || !isWithin(path, under)) continue;
    const names = componentsOf(path).slice(componentsOf(under).length);
    const matches = prefixMatches(pattern, names);
    if (!matches.includes(true)) continue;
    const excepted = except.map((other) => prefixMatches(other, names));
    const packages = names.findIndex((name) => mask.notBelow.includes(name));
    for (const [i, matched] of matches.entries()) {
      if (packages >= 0 && i > packages) break;
      if (!matched || excepted.some((other) => other[i] === true)) continue;
      const prefix = `${under === '/' ? '' : under}/${names.slice(0, i + 1).join('/')}`;
      if (mask.exceptTracked && tracked(prefix)) continue;
      if (mask.exceptPaths.some((other) => isWithin(path, other) && isWithin(other, prefix))) continue;
      return prefix;
    }
  }
  return undefined;
}

/** A mask's patterns, split once. */
const SPLIT = new WeakMap<Mask, { pattern: string[]; except: string[][] }>();

function componentsIn(mask: Mask): { pattern: string[]; except: string[][] } {
  const known = SPLIT.get(mask) ?? {
    pattern: mask.pattern.split('/'),
    except: mask.except.map((text) => text.split('/')),
  };
  SPLIT.set(mask, known);
  return known;
}

/** All protected names. A person releases them by name, or lets one place out by naming it for writing. */
export function compileLeaves(parts: Parts, places: Places): ProtectedLeaf[] {
  const writes = (from: readonly Part[]): PathRule[] =>
    from.flatMap((part) => rulesOf(part, 'write', places, ['allow']));
  const persons = parts.pool.filter((part) => part.group >= GROUP.user);
  const roots = unique([
    places.project,
    ...writes(parts.pool.filter((part) => part.group >= GROUP.project)).map(({ path }) => path),
  ]);
  const released = new Set(persons.flatMap((part) => part.document.protect?.release ?? []));
  return everybody(parts).flatMap(({ part, over }) => {
    if (part.document.protect === undefined) return [];
    const narrowing = parts.bounds.some((bound) => bound.part === part);
    const named = writes(over.filter((other) => other.group >= GROUP.user && other !== part)).map(({ path }) =>
      foldPath(path),
    );
    return namesOf(part)
      .filter(({ name }) => narrowing || !released.has(name))
      .map(({ name, treatment, mediator, below, source }) => {
        const leaf: ProtectedLeaf = {
          ...placeOf(name, places, roots, source),
          below,
          // A `.git` is looked for by git itself, wherever an index says that a repository lies.
          notBelow: part.group === GROUP.base && name !== '.git' ? [...PACKAGE_FOLDERS] : [],
          exceptPaths: [],
          treatment,
          mediator,
          because: reasonFor(name, treatment),
          source,
        };
        leaf.exceptPaths = unique(
          named.filter((path) => leafMatch(leaf, path, looksLikeGitDir) > 0).map(({ path }) => path),
        );
        return leaf;
      });
  });
}

interface Name {
  name: string;
  treatment: LeafTreatment;
  mediator: Mediator | null;
  below: boolean;
  source: Source;
}

function namesOf(part: Part): Name[] {
  const protect = part.document.protect;
  const plain = (treatment: 'refuse' | 'record'): Name[] =>
    (protect?.[treatment] ?? []).map((name, i) => ({
      name,
      treatment,
      mediator: null,
      below: true,
      source: part.source(['protect', treatment, i], name),
    }));
  const mediated = (protect?.mediate ?? []).map(({ name, by, below }, i): Name => ({
    name,
    treatment: 'mediate',
    mediator: by,
    below: below ?? false,
    source: part.source(['protect', 'mediate', i, 'name'], name),
  }));
  return [...plain('refuse'), ...plain('record'), ...mediated];
}

/** A bare name holds anywhere, `git:x` in git directories, a path at its place. */
function placeOf(
  name: string,
  places: Places,
  roots: string[],
  source: Source,
): Pick<ProtectedLeaf, 'at' | 'under' | 'pattern'> {
  try {
    if (name.startsWith('git:')) return { at: 'git-dir', under: roots, pattern: leafPattern(name.slice(4)) };
    if (!/^[/~$]|^\.\//.test(name)) return { at: 'anywhere', under: roots, pattern: leafPattern(name) };
    // The pattern begins where the first wildcard stands, or is the last component.
    const parts = name.split('/');
    const wild = parts.findIndex((part) => part.includes('*'));
    const cut = wild < 0 ? parts.length - 1 : wild;
    const folder = parts.slice(0, cut).join('/');
    return {
      at: 'folder',
      under: [expandPath(folder === '' ? '/' : folder, places)],
      pattern: leafPattern(parts.slice(cut).join('/')),
    };
  } catch (error) {
    throw error instanceof PolicyError ? error.at(source.file, source.line) : error;
  }
}

function leafPattern(pattern: string): string {
  parsePattern(pattern, { deep: false });
  return pattern;
}

const REASONS = new Map(
  [...REFUSED, ...RECORDED].flatMap(({ names, because }) => names.map((name) => [name, because] as const)),
);

/** A name for which somebody has said why; else that a policy says so. */
function reasonFor(name: string, treatment: LeafTreatment): string {
  return (
    REASONS.get(name) ?? (treatment === 'mediate' ? 'some of what it can say runs commands' : 'a policy protects it')
  );
}

/** Whether a folder is called as a git directory is, for those who cannot look into it. */
export function looksLikeGitDir(path: string): boolean {
  const names = componentsOf(path).slice(-3).map(foldName);
  const [, kind = ''] = names;
  return names.at(-1) === '.git' || (names.length === 3 && names[0] === '.git' && /^(modules|worktrees)$/.test(kind));
}

/** A path with its components, as they are written and as they are compared. */
interface FoldedPath {
  path: string;
  names: string[];
  folded: string[];
}

function foldPath(path: string): FoldedPath {
  const names = componentsOf(path);
  return { path, names, folded: names.map(foldName) };
}

/** Folding is dear, and a leaf is asked about many paths. */
const FOLDED = new WeakMap<ProtectedLeaf, string[]>();

function foldedPattern(leaf: ProtectedLeaf): string[] {
  const known = FOLDED.get(leaf) ?? leaf.pattern.split('/').map(foldName);
  FOLDED.set(leaf, known);
  return known;
}

/**
 * How many components of `path` a leaf's match reaches over: 0 where it does not protect the path. A path below a protected name counts
 * where the leaf says so. `isGitDir` says of a folder whether it is a git directory.
 */
function leafMatch(
  leaf: ProtectedLeaf,
  { path, names, folded }: FoldedPath,
  isGitDir: (folder: string) => boolean,
): number {
  const pattern = foldedPattern(leaf);
  let best = 0;
  for (const under of leaf.under) {
    if (!isWithin(path, under)) continue;
    const base = componentsOf(under).length;
    const last = leaf.at === 'folder' ? base : names.length - pattern.length;
    for (let start = base; start <= last; start++) {
      const end = start + pattern.length;
      if (end > names.length || (!leaf.below && end !== names.length)) continue;
      if (!pattern.every((component, i) => nameMatches(component, folded[start + i] as string))) continue;
      const isAmongPackages = names.slice(base, start).some((name) => leaf.notBelow.includes(name));
      if (isAmongPackages && !(leaf.at === 'git-dir' && folded.slice(0, start).includes('.git'))) continue;
      if (leaf.at === 'git-dir' && !isGitDir(`/${names.slice(0, start).join('/')}`)) continue;
      best = Math.max(best, end);
    }
  }
  if (best === 0) return 0;
  const match = `/${names.slice(0, best).join('/')}`;
  return leaf.exceptPaths.some((other) => isWithin(path, other) && isWithin(other, match)) ? 0 : best;
}

const STRICTNESS: Readonly<Record<LeafTreatment, number>> = { refuse: 2, mediate: 1, record: 0 };

/**
 * The leaf that decides about a path, undefined where none protects it. Among what the person's own layers say the deepest match decides,
 * then the strictest treatment; what a team, a project or nd7 itself says stands for itself, and the strictest of all holds.
 */
export function leafAt(
  leaves: readonly ProtectedLeaf[],
  path: string,
  isGitDir: (folder: string) => boolean = looksLikeGitDir,
): ProtectedLeaf | undefined {
  const deepest = new Map<string, { leaf: ProtectedLeaf; depth: number }>();
  const folded = foldPath(path);
  for (const leaf of leaves) {
    const depth = leafMatch(leaf, folded, isGitDir);
    if (depth === 0) continue;
    const voice = BY_THEMSELVES.includes(leaf.source.layer) ? leaf.source.layer : 'person';
    const known = deepest.get(voice);
    if (
      known === undefined ||
      depth > known.depth ||
      (depth === known.depth && STRICTNESS[leaf.treatment] > STRICTNESS[known.leaf.treatment])
    )
      deepest.set(voice, { leaf, depth });
  }
  return [...deepest.values()]
    .map(({ leaf }) => leaf)
    .sort((a, b) => STRICTNESS[b.treatment] - STRICTNESS[a.treatment])[0];
}

const BY_THEMSELVES: readonly string[] = ['fixed', 'team', 'project'];

export function unique(paths: readonly string[]): string[] {
  return [...new Set(paths)].sort();
}
