// What a session may write into files of which some content runs commands: git's configuration and pointers, the agent's own state.
import { realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, normalize } from 'node:path';
import {
  compareClaudeState,
  compareGitConfig,
  foldName,
  isWithin,
  leafAt,
  looksLikeGitDir,
  mayBeWorkTree,
  mayPoint,
  NO_PUSH,
  writableRoots,
  type PointerKind,
  type ProtectedLeaf,
  type Ruleset,
} from '@nd7/policy';

/** A mediated name is to get a content. */
export interface Change {
  /** The rule that the name stands under. */
  leaf: ProtectedLeaf | undefined;
  /** Real path of the name. */
  path: string;
  /** Undefined where the name is not there. */
  before: Uint8Array | undefined;
  after: Uint8Array;
}

export interface Judgement {
  allow: boolean;
  /** What is written in place of what was asked; undefined: what was asked. */
  content: Uint8Array | undefined;
  /** What changed, by key; of a pointer where it leads. */
  changed: string[];
  /** What may not: it is why the change is refused, or it was held back. */
  held: string[];
}

const NOTHING = new Uint8Array();
const REFUSED: Judgement = { allow: false, content: undefined, changed: [], held: [] };

/**
 * Whether a change may pass, by the content alone: nothing is read from the path, which the session could have changed meanwhile. A rule that
 * is not mediated, or that this does not know, lets nothing through.
 */
export function judgeChange(ruleset: Ruleset, change: Change): Judgement {
  switch (change.leaf?.mediator) {
    case 'git-config':
      return judgeGitConfig(ruleset, change);
    case 'git-pointer':
      return judgePointer(ruleset, change);
    case 'claude-state':
      return judgeState(change);
    default:
      return REFUSED;
  }
}

function judgeGitConfig(ruleset: Ruleset, { path, before = NOTHING, after }: Change): Judgement {
  const compared = compareGitConfig(
    before,
    after,
    (value) => mayBeWorkTree(path, value),
    (folder) => liesOutside(folder, writableRoots(ruleset)),
  );
  if ('fault' in compared) return { ...REFUSED, held: [`line ${compared.line}: ${compared.fault}`] };
  const { changed, refused, withoutPush } = compared;
  if (refused.length > 0 || withoutPush.length === 0)
    return { allow: refused.length === 0, content: undefined, changed, held: refused };
  // Bytes as they are: the names have passed as plain, and hold neither quotes nor backslashes.
  const more = withoutPush.map((name) => `[remote "${name}"]\n\tpushurl = ${NO_PUSH}\n`);
  const content = Buffer.concat([after, Buffer.from(`\n${more.join('')}`, 'latin1')]);
  return { allow: true, content, changed, held: withoutPush.map((name) => `a push to the folder of ${name}`) };
}

/** Whether a folder, and the way to it, is none that a session could make or lead elsewhere. What is said from a folder is said from several work trees. */
function liesOutside(folder: string, roots: readonly string[]): boolean {
  const path = normalize(folder);
  if (!isAbsolute(path) || folder.split('/').includes('..')) return false;
  return path.split('/').every((_part, i, parts) => {
    const above = parts.slice(0, i + 1).join('/') || '/';
    return [above, realOr(above)].every((one) => !roots.some((root) => isWithin(one, root)));
  });
}

function realOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

const POINTERS: Readonly<Record<string, PointerKind>> = {
  '.git': 'dot-git',
  commondir: 'commondir',
  gitdir: 'gitdir',
};

/** Of git directories that are not known by name yet, those that the pointer itself speaks of count, where the same rules hold in them as in the project's own. */
function judgePointer(ruleset: Ruleset, { path, before, after }: Change): Judgement {
  const kind = POINTERS[foldName(basename(path))];
  if (kind === undefined) return REFUSED;
  const pointer = { kind, at: path, before: before ?? null, after };
  const roots = writableRoots(ruleset);
  const { target } = mayPoint(pointer, [], roots);
  if (target === null) return { ...REFUSED, held: ['what git would not take'] };
  const speaksOf = [
    ...repositoriesAbove(path),
    ...repositoriesAbove(target),
    ...(kind === 'commondir' ? [target] : []),
  ];
  const { allow } = mayPoint(
    pointer,
    speaksOf.filter((folder) => isGuarded(ruleset, folder) && isReal(folder)),
    roots,
  );
  // Where the repository's own files are later has to be guarded as a repository is.
  const holds =
    allow &&
    (kind === 'gitdir' ||
      (isGuarded(ruleset, target) &&
        isFixed(pointer, target, [ruleset.project, ...roots]) &&
        (kind !== 'commondir' || isCalledGit(target))));
  return { allow: holds, content: undefined, changed: [target], held: holds ? [] : [target] };
}

/**
 * Whether the way to a target stays what it is: the session could move a folder on it away, and make a link of its name to where nothing is
 * guarded. A writable folder itself is held by its mount, `.git` is never a link, nor is anything
 * below its `modules` and `worktrees`, and what a relative pointer passes together with its target moves with it.
 */
function isFixed({ at, after }: { at: string; after: Uint8Array }, target: string, roots: readonly string[]): boolean {
  const isAbsolute = /^(gitdir: )?\//.test(Buffer.from(after).toString('latin1'));
  const above = roots.filter((root) => isWithin(target, root)).sort((a, b) => b.length - a.length);
  const from = isAbsolute ? above[0] : commonFolder(dirname(at), target);
  if (from === undefined) return false;
  const [first, second] = target.slice(from === '/' ? 1 : from.length + 1).split('/');
  return first === '' || (first === '.git' && (second === undefined || /^(modules|worktrees)$/.test(second)));
}

/** Whether a folder is a git directory by its place: whatever it holds, its configuration was never free. With another name it would become one by this pointer. */
function isCalledGit(folder: string): boolean {
  return /(^|\/)\.git(\/modules\/[^/]+)?$/.test(folder);
}

function commonFolder(a: string, b: string): string {
  const [one, other] = [a.split('/'), b.split('/')];
  const same = one.findIndex((part, i) => part !== other[i]);
  return one.slice(0, same < 0 ? one.length : same).join('/') || '/';
}

/** Folders above a path in whose `worktrees` or `modules` it lies. */
function repositoriesAbove(path: string): string[] {
  const parts = path.split('/');
  return parts.flatMap((part, i) => (/^(worktrees|modules)$/.test(part) ? [parts.slice(0, i).join('/') || '/'] : []));
}

/** Whether hooks of a repository are treated as those of the project's own: not among packages, not where a person has let them out. */
function isGuarded(ruleset: Ruleset, folder: string): boolean {
  const treatment = (dir: string): string | undefined =>
    leafAt(ruleset.leaves, `${dir}/hooks`, (asked) => asked === dir || looksLikeGitDir(asked))?.treatment;
  return treatment(folder) === treatment(`${ruleset.project}/.git`);
}

/** Whether no link leads away on the way to a folder, as far as it is there. */
function isReal(folder: string): boolean {
  try {
    return realpathSync(folder) === folder;
  } catch {
    return folder !== '/' && isReal(dirname(folder));
  }
}

function judgeState({ before = NOTHING, after }: Change): Judgement {
  const [old, now] = [decode(before), decode(after)];
  const compared = now === undefined ? null : compareClaudeState(old ?? '', now);
  if (compared === null) return { ...REFUSED, held: ['what is no JSON object'] };
  const { text, held } = compared;
  return { allow: true, content: held.length === 0 ? undefined : Buffer.from(text), changed: [], held };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
