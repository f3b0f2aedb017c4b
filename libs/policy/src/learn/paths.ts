import { comparePaths, componentsOf, isWithin, joinPath } from '../path.js';

/** So many things side by side are taken for their folder. */
const SIBLINGS = 4;

interface Branch {
  /** It is needed itself, with all that lies below. */
  needed: boolean;
  below: Map<string, Branch>;
}

/**
 * The fewest paths that hold all that are needed, where several side by side are taken for the folder that they lie in; a folder that is too
 * wide never is. Sorted, none within another.
 */
export function gathered(paths: Iterable<string>, isWide: (path: string) => boolean): string[] {
  const root: Branch = { needed: false, below: new Map() };
  for (const path of paths) {
    let at = root;
    for (const name of componentsOf(path)) {
      const next: Branch = at.below.get(name) ?? { needed: false, below: new Map() };
      at.below.set(name, next);
      at = next;
    }
    at.needed = true;
  }
  return gather(root, '/', isWide).sort(comparePaths);
}

function gather(branch: Branch, path: string, isWide: (path: string) => boolean): string[] {
  if (branch.needed) return [path];
  const found = [...branch.below].flatMap(([name, below]) => gather(below, joinPath(path, name), isWide));
  return found.length >= SIBLINGS && !isWide(path) ? [path] : found;
}

/** Without paths that lie in others. */
export function outermost(paths: readonly string[]): string[] {
  const sorted = [...new Set(paths)].sort(comparePaths);
  const kept: string[] = [];
  for (const path of sorted) if (!kept.some((other) => isWithin(path, other))) kept.push(path);
  return kept;
}
