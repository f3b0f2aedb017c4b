import { expandPath, isWithin } from '../path.js';
import type { Places } from '../path.js';

/** Where people and services keep what is theirs, beside the home folders: a profile that is learned shows there only what was read. */
export const DATA = ['/data', '/media', '/mnt', '/opt', '/srv', '/var'] as const;

/** Folders of many programs or of everything that somebody has. */
const MANY = [
  '~/.config',
  '$XDG_CONFIG_HOME',
  '~/.cache',
  '$XDG_CACHE_HOME',
  '~/.local',
  '~/.local/share',
  '$XDG_DATA_HOME',
  '~/.local/state',
  '$XDG_STATE_HOME',
  '~/Desktop',
  '~/Documents',
  '~/Downloads',
  '~/Library',
];

/** Whether a folder holds more than one program's matter, so that no list of siblings is ever taken for it. */
export function wideFolders(places: Places): (path: string) => boolean {
  const named = new Set<string>([...DATA, ...MANY.map((path) => expandPath(path, places))]);
  return (path) => named.has(path) || isWithin(places.home, path) || isWithin(places.project, path);
}

/** The folder that one program has to itself below the caches and states of all; undefined for a path that lies in none. */
export function ownCache(path: string, places: Places): string | undefined {
  for (const base of ['$XDG_CACHE_HOME', '$XDG_STATE_HOME', '~/.cache'].map((name) => expandPath(name, places)))
    if (isWithin(path, base) && path !== base) {
      const [name = ''] = path.slice(base.length + 1).split('/');
      return `${base}/${name}`;
    }
  return undefined;
}
