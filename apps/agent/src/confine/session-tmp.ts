import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const PREFIX = 'nd7-session-';

/** A temporary folder of one session, where no mount can give it one under the usual name. */
export function sessionTmp(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), PREFIX)));
}

/** Takes it away again; nothing where it is another folder. */
export function removeSessionTmp(folder: string): void {
  if (basename(folder).startsWith(PREFIX)) rmSync(folder, { recursive: true, force: true });
}
