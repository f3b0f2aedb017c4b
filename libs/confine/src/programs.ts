import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A change of a folder within one tick of a file system's clock may leave its times as they were: what has changed so lately is read again. */
const SETTLED_MS = 5_000;
/** Folders of a PATH, and of a few others that sessions were started with. */
const MOST = 64;

interface Listing {
  /** What changes when a name comes or goes. */
  mark: string;
  names: ReadonlySet<string>;
}

/** Listings of folders as they were read last; each is looked at before it is believed. */
const known = new Map<string, Listing>();

/** The programs that lie in the folders of a PATH, which are looked at once for all that is asked. */
export class ProgramsOnPath {
  readonly #folders: { folder: string; names: ReadonlySet<string> | undefined }[];

  constructor(path: string) {
    this.#folders = [...new Set(path.split(':'))]
      .filter((folder) => folder.startsWith('/'))
      .map((folder) => ({ folder, names: namesIn(folder) }));
  }

  has(name: string): boolean {
    return this.#folders.some(({ folder, names }) => names?.has(name) !== false && existsSync(join(folder, name)));
  }
}

/** Undefined where a folder cannot be listed: what lies in it may be used all the same by who knows its name. */
function namesIn(folder: string): ReadonlySet<string> | undefined {
  try {
    const { dev, ino, mtimeNs, ctimeNs, ctimeMs } = statSync(folder, { bigint: true });
    const mark = [dev, ino, mtimeNs, ctimeNs].join(' ');
    const found = known.get(folder);
    if (found?.mark === mark) return found.names;
    const names = new Set(readdirSync(folder));
    known.delete(folder);
    if (ctimeMs < BigInt(Date.now() - SETTLED_MS)) known.set(folder, { mark, names });
    for (const oldest of [...known.keys()].slice(0, -MOST)) known.delete(oldest);
    return names;
  } catch {
    return undefined;
  }
}
