// What the rules ask of the disk.
import { existsSync, lstatSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { countsAsGitDir, GitFiles } from '@nd7/confine';
import type { Facts } from '@nd7/policy';

export interface NamedPath {
  /** As it was said, absolute. */
  said: string;
  /** What the kernel would decide about: links followed as far as there is something. */
  path: string;
  isSocket: boolean;
  /** The same, where it is another path than the one that was said; null otherwise. */
  leadsTo: string | null;
}

/** The path that somebody means; null for what is no path: a name without a slash that lies nowhere here is a host. */
export function pathOf(what: string, cwd: string, home: string): NamedPath | null {
  const said = what === '~' || what.startsWith('~/') ? join(home, what.slice(1)) : resolve(cwd, what);
  if (!/^[/~.]|\//.test(what) && !existsSync(said)) return null;
  const path = follow(said);
  return {
    said,
    path,
    isSocket: lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true,
    leadsTo: path === said ? null : path,
  };
}

/** Links followed up to the last component that is there; the rest as it was said. */
function follow(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return dirname(path) === path
      ? path
      : join(follow(dirname(path)), path.slice(dirname(path).length).replace(/^\/+/, ''));
  }
}

/** The same that the boundary and its supervisor ask; of git's files alone, since git runs what a repository's configuration names. */
export function factsOf(): Facts {
  const git = new GitFiles();
  return { tracked: (path) => git.isHeld(path), isGitDir: countsAsGitDir };
}
