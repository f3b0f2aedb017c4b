import { lstatSync, readlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Links followed at most on the way to one path, as in the kernel. */
const MOST_LINKS = 40;

/** Where a path leads, and through which symbolic links. */
export interface Resolved {
  path: string;
  /** The links themselves, by their real paths. */
  links: string[];
}

/**
 * Follows the symbolic links of an absolute path, remembering each; undefined where nothing is there (or cannot be seen by this user, who
 * is the agent too).
 */
export function resolvePath(path: string): Resolved | undefined {
  const links: string[] = [];
  let todo = path.split('/').filter((part) => part !== '');
  let at = '/';
  while (todo.length > 0) {
    const [part = '', ...rest] = todo;
    if (part === '..') {
      at = dirname(at);
      todo = rest;
      continue;
    }
    const next = join(at, part);
    let target: string | undefined;
    try {
      if (lstatSync(next).isSymbolicLink()) target = readlinkSync(next);
    } catch {
      return undefined;
    }
    if (target === undefined) {
      at = next;
      todo = rest;
      continue;
    }
    links.push(next);
    if (links.length > MOST_LINKS) return undefined;
    if (target.startsWith('/')) at = '/';
    todo = [...target.split('/').filter((name) => name !== '' && name !== '.'), ...rest];
  }
  return { path: resolve(at), links };
}
