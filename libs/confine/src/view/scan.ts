import { accessSync, constants, existsSync, lstatSync, readdirSync, statSync, type Dirent } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  foldName,
  leafAt,
  looksLikeGitDir,
  maskedPrefix,
  nameMatches,
  nodeAt,
  PACKAGE_FOLDERS,
  type ProtectedLeaf,
  type Ruleset,
} from '@nd7/policy';
import { GitFiles } from './git-index.js';

/** Names that exist at the start and that the view has to treat. Paths as they are on disk, found without following links. */
export interface Found {
  masked: string[];
  /** Let out of masks because git holds what they hold. */
  held: string[];
  leaves: { path: string; leaf: ProtectedLeaf }[];
  /** Git directories: held fast, so that one with other hooks cannot take their place. */
  gitDirs: string[];
  /** Folders that were not looked into, because the search had taken its time. */
  unseen: string[];
  /** Folders that cannot be listed, though a name in them can be used by who knows it. */
  closed: string[];
}

/** Folders seen at most in one search: some 100 ms. What lies near the top is seen first. */
export const MOST_FOLDERS = 20_000;

/** Whether a folder is a git directory, by what it holds. */
export function isGitDir(folder: string): boolean {
  const has = (name: string): boolean => existsSync(join(folder, name));
  return has('HEAD') && ((has('objects') && has('refs')) || has('commondir'));
}

/**
 * Whether the supervisor takes a folder for a git directory (native/observe, `names_disk_at`): by its name, by a HEAD, which git makes before
 * what is protected there, or because it lies in `modules` or `worktrees` of one.
 */
export function countsAsGitDir(folder: string): boolean {
  if (looksLikeGitDir(folder) || existsSync(join(folder, 'HEAD'))) return true;
  return /^(modules|worktrees)$/.test(foldName(basename(dirname(folder)))) && countsAsGitDir(dirname(dirname(folder)));
}

/** The last components of patterns, to tell most names from those that have to be looked at closely. */
class Names {
  readonly #exact = new Set<string>();
  readonly #wild: string[] = [];

  constructor(patterns: readonly string[]) {
    for (const pattern of patterns) {
      const last = foldName(pattern.split('/').at(-1) ?? '');
      if (last.includes('*')) this.#wild.push(last);
      else this.#exact.add(last);
    }
  }

  mayHave(folded: string): boolean {
    return this.#exact.has(folded) || this.#wild.some((pattern) => nameMatches(pattern, folded));
  }
}

/** Searches the folders that masks and protected names speak of, breadth first. */
export function scan(ruleset: Ruleset, most = MOST_FOLDERS): Found {
  const git = new GitFiles();
  const found: Found = { masked: [], held: [], leaves: [], gitDirs: [], unseen: [], closed: [] };
  const maskNames = new Names(ruleset.masks.map(({ pattern }) => pattern));
  const leafNames = new Names(ruleset.leaves.map(({ pattern }) => pattern));
  const roots = [...ruleset.masks, ...ruleset.leaves].flatMap(({ under }) => under);
  // The project first: what lies in it is what the session can change.
  const queue = [...new Set([ruleset.project, ...roots])].filter((root) => root !== '/' && isFolder(root, found));
  const seen = new Set<string>();
  const known = new Map<string, boolean>();
  const gitDir = (folder: string): boolean => {
    let answer = known.get(folder);
    if (answer === undefined) known.set(folder, (answer = isGitDir(folder)));
    return answer;
  };

  // Git's own store, and folders full of packages in which no mask holds.
  const isSkipped = (folder: string, name: string): boolean =>
    name === 'objects'
      ? gitDir(folder)
      : PACKAGE_FOLDERS.includes(name) && ruleset.masks.every(({ notBelow }) => notBelow.includes(name));

  const visit = (folder: string, entry: Dirent): void => {
    const path = join(folder, entry.name);
    const folded = foldName(entry.name);
    if (maskNames.mayHave(folded) && isMasked(ruleset, path)) {
      const isHeld = !isMasked(ruleset, path, git);
      (isHeld ? found.held : found.masked).push(path);
      if (!isHeld) return;
    }
    if (leafNames.mayHave(folded)) {
      const leaf = leafAt(ruleset.leaves, path, gitDir);
      if (leaf !== undefined && !isPointerFolder(leaf, entry)) found.leaves.push({ path, leaf });
    }
    if (!entry.isDirectory() || isSkipped(folder, entry.name) || seen.has(path)) return;
    if (nodeAt(ruleset, path).access.read) queue.push(path);
  };

  // The queue grows while it is walked.
  for (const folder of queue) {
    if (seen.has(folder)) continue;
    seen.add(folder);
    if (seen.size > most) {
      found.unseen.push(folder);
      continue;
    }
    if (gitDir(folder)) found.gitDirs.push(folder);
    for (const entry of entriesOf(folder, found)) visit(folder, entry);
  }
  return found;
}

/** With `git`, files that git holds are let out. */
function isMasked(ruleset: Ruleset, path: string, git?: GitFiles): boolean {
  // Sockets, pipes and the like are masked too: a name is a name.
  return ruleset.masks.some((mask) => maskedPrefix(mask, path, (file) => git?.isHeld(file) === true) === path);
}

/** `.git` as a folder is a git directory with rules of its own; as a file it points to one. */
function isPointerFolder(leaf: ProtectedLeaf, entry: Dirent): boolean {
  return leaf.mediator === 'git-pointer' && entry.isDirectory();
}

function isFolder(path: string, { closed }: Found): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    closed.push(path);
    return false;
  }
}

function entriesOf(folder: string, { closed }: Found): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    if (isClosed(folder)) closed.push(folder);
    return [];
  }
}

/** Whether a folder that cannot be listed can be entered, or opened again by its owner: a folder of somebody else's, closed to all, is not. */
export function isClosed(folder: string): boolean {
  try {
    if (lstatSync(folder).uid === process.geteuid?.()) return true;
  } catch (error) {
    // Gone; or in a folder that can be listed and not entered, or too deep to be named.
    return !['ENOENT', 'ENOTDIR'].includes((error as { code?: string }).code ?? '');
  }
  try {
    accessSync(folder, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
