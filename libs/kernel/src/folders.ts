import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder where there is none, and those above it. In place of mkdir's `recursive`: where the file system makes no folders though they may be
 * asked for (/proc), Node goes up and down for ever. Throws the system's error.
 */
export function makeFolders(path: string, mode = 0o777): void {
  try {
    makeFolder(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error;
    makeFolders(dirname(path), mode);
    makeFolder(path, mode);
  }
}

function makeFolder(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}
