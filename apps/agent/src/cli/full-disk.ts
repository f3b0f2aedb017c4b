// What is told of a system call that failed for want of room: the kernel's own words name neither the disk nor what to do.
import { dirname } from 'node:path';
import { existsSync } from 'node:fs';

const FULL = ['ENOSPC', 'EDQUOT'] as const;

/** Whether an error, or what caused it, says that there is no room (or no quota) left. */
export function fullDisk(error: unknown): (typeof FULL)[number] | undefined {
  for (let one = error, depth = 0; one instanceof Error && depth < 4; one = one.cause, depth++) {
    const { code } = one as NodeJS.ErrnoException;
    const full = FULL.find((name) => name === code || (one as Error).message.includes(`${name}:`));
    if (full !== undefined) return full;
  }
  return undefined;
}

/** What an error says; where a disk is full, which, by a folder that lies on it. */
export function reasonOf(error: unknown, folder: string): string {
  const full = fullDisk(error);
  if (full === undefined) return error instanceof Error ? error.message : String(error);
  return `no ${full === 'EDQUOT' ? 'quota' : 'space'} left on the disk of ${thereOf(folder)} (${full}): make room there`;
}

function thereOf(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : thereOf(dirname(folder));
}
