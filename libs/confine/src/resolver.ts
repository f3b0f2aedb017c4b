import { lstatSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasNoRoom } from './no-room.js';
import type { Shown } from './view/build.js';

const CONFIGURATION = '/etc/resolv.conf';
/** resolv.conf(5). No domain is searched: what is asked for is the name that was said. */
const TEXT = '# Names are answered by the proxy of this nd7 session.\nnameserver 127.0.0.1\nsearch .\n';

/**
 * What makes programs inside ask the session's own loopback for names: a resolv.conf of nd7's in place of the machine's. Where the machine
 * has none, or a link to what is not there, nothing is shown: C libraries then ask 127.0.0.1 by themselves. On a full disk nothing is shown either: names
 * are then not answered inside, and programs get out that use the proxy.
 */
export function shownResolver(nd7Home: string): Shown[] {
  const path = fileAt(CONFIGURATION);
  if (path === undefined) return [];
  const source = join(realpathSync(nd7Home), 'resolv.conf');
  if (textOf(source) !== TEXT) {
    // Sessions that start at the same moment write the same.
    const fresh = `${source}.${String(process.pid)}`;
    try {
      writeFileSync(fresh, TEXT, { mode: 0o644 });
      renameSync(fresh, source);
    } catch (error) {
      rmSync(fresh, { force: true });
      if (hasNoRoom(error)) return [];
      throw error;
    }
  }
  return [{ path, source }];
}

/** Where a path leads, if that is a file. */
function fileAt(path: string): string | undefined {
  try {
    const real = realpathSync(path);
    return statSync(real).isFile() ? real : undefined;
  } catch {
    return undefined;
  }
}

function textOf(path: string): string | undefined {
  try {
    return lstatSync(path).isFile() ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}
