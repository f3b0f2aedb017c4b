import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasNoRoom } from './no-room.js';

const NAME = '.canary-';
/** No start takes so long. */
const START_MS = 60_000;

/** A file that is hidden inside: whoever opens it there has come through. */
export interface Canary {
  path: string;
  clean(): void;
}

/**
 * Lays one into nd7's own folder. That it can be opened is all that an attempt asks, so that on a full disk it is one without content, and where not even
 * that can be made a file that lies there by now. Throws the system's error where there is none.
 */
export function layCanary(nd7Home: string): Canary {
  const folder = realpathSync(nd7Home);
  const path = join(folder, `${NAME}${randomBytes(8).toString('hex')}`);
  const clean = (): void => rmSync(path, { force: true });
  sweep(folder);
  try {
    writeFileSync(path, randomBytes(32), { mode: 0o600 });
    return { path, clean };
  } catch (error) {
    if (hasNoRoom(error) && existsSync(path)) return { path, clean };
    const other = hasNoRoom(error) ? fileIn(folder) : undefined;
    if (other === undefined) throw error;
    return { path: other, clean: () => undefined };
  }
}

function fileIn(folder: string): string | undefined {
  const found = readdirSync(folder, { withFileTypes: true }).find((one) => one.isFile());
  return found && join(folder, found.name);
}

/** Takes away canaries of starts that were killed. */
function sweep(folder: string): void {
  for (const name of readdirSync(folder).filter((entry) => entry.startsWith(NAME))) {
    const path = join(folder, name);
    if ((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < Date.now() - START_MS)
      rmSync(path, { force: true });
  }
}
