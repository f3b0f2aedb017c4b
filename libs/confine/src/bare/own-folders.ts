import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Folders of one session, where no mount gives it a file system of its own. */
export interface OwnFolders {
  tmp: string | undefined;
  memory: string | undefined;
  remove(): void;
}

const NAME = /^nd7-(\d+)-[A-Za-z0-9]{6}$/;
const MEMORY = '/dev/shm';

/** Makes them, named after this process, and takes away those of processes that have ended without doing so. */
export function makeOwnFolders(base: string, wantsTmp: boolean, wantsMemory = true): OwnFolders {
  const made: string[] = [];
  const make = (folder: string): string | undefined => {
    sweep(folder);
    try {
      const path = realpathSync(mkdtempSync(join(folder, `nd7-${process.pid}-`)));
      made.push(path);
      return path;
    } catch {
      return undefined;
    }
  };
  return {
    tmp: wantsTmp ? make(base) : undefined,
    memory: wantsMemory ? make(MEMORY) : undefined,
    remove: () => made.forEach((path) => rmSync(path, { recursive: true, force: true })),
  };
}

function sweep(folder: string): void {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return;
  }
  for (const name of names) {
    const pid = NAME.exec(name)?.[1];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    const path = join(folder, name);
    if (statSync(path, { throwIfNoEntry: false })?.uid === process.geteuid?.())
      rmSync(path, { recursive: true, force: true });
  }
}
