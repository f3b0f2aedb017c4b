import { lstatSync, readlinkSync } from 'node:fs';

/** Links followed at most on the way to one path, as in the kernel. */
const MOST_LINKS = 40;

/** Where a path leads, and through which symbolic links. */
export interface Resolved {
  path: string;
  /** The links themselves, by their real paths. */
  links: string[];
}

/** What stood at paths when they were looked at: a link's target, `plain` for anything else, `nothing`. Of use for as long as one look at the disk takes. */
export type Looks = Map<string, { target: string } | 'plain' | 'nothing'>;

/**
 * Follows the symbolic links of an absolute path, remembering each; undefined where nothing is there (or cannot be seen by this user, who
 * is the agent too). `looks` keeps what was seen on the way: most paths of a ruleset have the same folders above them.
 */
export function resolvePath(path: string, looks: Looks = new Map()): Resolved | undefined {
  const links: string[] = [];
  // The next one last.
  const todo = path.split('/').reverse();
  let at = '';
  for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      at = at.slice(0, Math.max(0, at.lastIndexOf('/')));
      continue;
    }
    const next = `${at}/${part}`;
    const seen = looks.get(next) ?? lookAt(next);
    looks.set(next, seen);
    if (seen === 'nothing') return undefined;
    if (seen === 'plain') {
      at = next;
      continue;
    }
    links.push(next);
    if (links.length > MOST_LINKS) return undefined;
    if (seen.target.startsWith('/')) at = '';
    todo.push(...seen.target.split('/').reverse());
  }
  return { path: at === '' ? '/' : at, links };
}

function lookAt(path: string): { target: string } | 'plain' | 'nothing' {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found === undefined ? 'nothing' : found.isSymbolicLink() ? { target: readlinkSync(path) } : 'plain';
  } catch {
    return 'nothing';
  }
}
