/// <reference path="../../entry/src/platform.d.ts" />

import { componentsOf, isNormal, isWithin, joinPath } from './path.js';
import { foldName } from './pattern.js';

/** Files in which git says where another folder is. */
export type PointerKind =
  /** `.git` as a file, in a linked worktree or a submodule: `gitdir: PATH`. */
  | 'dot-git'
  /** `commondir` in the git directory of a worktree: where hooks and configuration are. */
  | 'commondir'
  /** `gitdir` in the git directory of a worktree: where its `.git` file is. */
  | 'gitdir';

export interface Pointer {
  kind: PointerKind;
  /** Absolute path of the file. */
  at: string;
  /** Its content; null where it is not there. */
  before: Uint8Array | null;
  after: Uint8Array;
}

/** The longest path that git takes, and the words before it. */
const MAX_LENGTH = 4_200;

/**
 * Whether git may be told so: a pointer is made for a folder of a repository that is known (`gitDirs`, absolute: `.git` of the project and of
 * clones in it), and never turned to another one. A `.git` file leads to `worktrees/x` or `modules/x` of such a repository, a `commondir`
 * to the repository it lies in, a `gitdir` to a `.git` below a writable folder (`roots`). Only names are compared: `at` has no links in
 * it, and whether `target` has, and leads elsewhere by them, the caller sees on the disk.
 */
export function mayPoint(
  pointer: Pointer,
  gitDirs: readonly string[],
  roots: readonly string[],
): { allow: boolean; target: string | null } {
  const target = targetOf(pointer.kind, pointer.at, pointer.after);
  if (target === null) return { allow: false, target };
  if (pointer.before !== null) {
    const was = targetOf(pointer.kind, pointer.at, pointer.before);
    if (was !== null && was !== target) return { allow: false, target };
  }
  return { allow: leadsHome(pointer, target, gitDirs, roots), target };
}

function leadsHome(
  { kind, at }: Pointer,
  target: string,
  gitDirs: readonly string[],
  roots: readonly string[],
): boolean {
  switch (kind) {
    case 'dot-git':
      return gitDirs.some(
        (dir) =>
          isWithin(target, dir) &&
          /^(worktrees|modules)$/.test(componentsOf(target)[componentsOf(dir).length] ?? '') &&
          target.split('/').length > dir.split('/').length + 1,
      );
    case 'commondir':
      return gitDirs.includes(target) && isWithin(at, joinPath(target, 'worktrees'));
    case 'gitdir':
      return (
        target.endsWith('/.git') &&
        roots.some((root) => isWithin(target, root)) &&
        gitDirs.some((dir) => isWithin(at, joinPath(dir, 'worktrees')))
      );
  }
}

/** The folder a pointer means, absolute and normal; null for what git would not take, or what is no UTF-8. */
function targetOf(kind: PointerKind, at: string, content: Uint8Array): string | null {
  if (content.length > MAX_LENGTH) return null;
  const text = decode(content);
  const said =
    kind === 'dot-git' ? /^gitdir: ([^\n]+)\n?$/.exec(text ?? '')?.[1] : /^([^\n]+)\n?$/.exec(text ?? '')?.[1];
  if (said === undefined || said.endsWith('\r')) return null;
  return resolved(said, at);
}

/**
 * Whether a submodule's configuration (`at`: `…/.git/modules/NAME/config`) may say that its work tree is there: a folder of the repository that
 * it is a submodule of, which git writes its files into.
 */
export function mayBeWorkTree(at: string, value: string): boolean {
  const above = /^(.*?)\/\.git\/modules\/.+\/config$/.exec(at)?.[1];
  const target = value.startsWith('/') ? null : resolved(value, at);
  if (above === undefined || target === null || target === above || !isWithin(target, above || '/')) return false;
  return !componentsOf(target).some((name) => foldName(name) === '.git');
}

/** Where a path leads that a file at `at` says; null for what is no path. */
function resolved(said: string, at: string): string | null {
  const parts = said.startsWith('/') ? [] : componentsOf(at).slice(0, -1);
  let named = said.startsWith('/');
  for (const part of said.split('/')) {
    if (part === '..') {
      // After a name it leads where that name leads, which a link decides; git writes it at the beginning only.
      if (named || parts.pop() === undefined) return null;
    } else if (part !== '' && part !== '.') {
      named = true;
      parts.push(part);
    }
  }
  const path = `/${parts.join('/')}`;
  return isNormal(path) ? path : null;
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
