import { lstatSync, readFileSync, realpathSync } from 'node:fs';

/**
 * Paths of the unix sockets that programs of this network namespace have bound and that are still there: docker's, the session bus, agents
 * of keys, editors. Only those with a path; symbolic links on the way are resolved.
 */
export function boundSockets(table = '/proc/net/unix'): string[] {
  let text: string;
  try {
    text = readFileSync(table, 'utf8');
  } catch {
    return [];
  }
  const paths = text
    .split('\n')
    // Num RefCount Protocol Flags Type St Inode Path
    .map((line) => /^(?:\S+\s+){7}(\/.*)$/.exec(line)?.[1])
    .filter((path) => path !== undefined);
  const real = new Set<string>();
  for (const path of paths) {
    try {
      const at = realpathSync.native(path);
      if (lstatSync(at).isSocket()) real.add(at);
    } catch {
      // Gone, or in another mount namespace.
    }
  }
  return [...real].sort();
}
