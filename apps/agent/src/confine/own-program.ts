import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isWithin } from '@nd7/policy';

/** What runs whenever nd7 does: the folder that it is installed in, with its native programs, and the Node that runs it. Real paths. */
export const OWN_PROGRAMS: readonly string[] = [
  fileURLToPath(new URL('../../../../', import.meta.url)),
  process.execPath,
].map((path) => realpathSync(path));

/** The part of nd7's own program that a path is, lies in, or (where all below it is meant) holds. */
export function ownProgramAt(path: string, below: boolean): string | undefined {
  return OWN_PROGRAMS.find((own) => isWithin(path, own) || (below && isWithin(own, path)));
}
