// What is told of a system call that failed for want of room: the kernel's own words name neither the disk nor what to do.
import { dirname } from 'node:path';
import { existsSync } from 'node:fs';

const FULL = ['ENOSPC', 'EDQUOT'] as const;

/** Whether an error, or what caused it, says that there is no room (or no quota) left. */
export function fullDisk(error: unknown): (typeof FULL)[number] | undefined {
  let one = error as Partial<NodeJS.ErrnoException> | undefined;
  for (let depth = 0; typeof one === 'object' && depth < 4; depth++) {
    const { code, message = '', cause } = one;
    const full = FULL.find((name) => name === code || message.includes(`${name}:`));
    if (full !== undefined) return full;
    one = cause as typeof one;
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
