import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const OWN = /^selftest-([0-9a-f]{16})$/;
const NOTE = 'run.json';

interface Noted {
  pid: number;
  started: string;
  folders: string[];
}

/**
 * The folders of one self-test. They are noted in nd7's home before they are made, so that the next run takes away what a killed one has left.
 * The note lies in a folder of its own there, which is hidden inside and holds targets too.
 */
export class Traces {
  readonly id = randomBytes(8).toString('hex');
  /** In nd7's home: hidden in every boundary. */
  readonly hidden: string;
  readonly #folders: string[] = [];

  constructor(home: string) {
    this.hidden = join(home, `selftest-${this.id}`);
    mkdirSync(this.hidden, { mode: 0o700 });
    this.#note();
  }

  /** A folder of this run in `parent`; undefined where none can be made. */
  folderIn(parent: string, mode: number): string | undefined {
    const folder = join(parent, nameOf(this.id));
    this.#folders.push(folder);
    this.#note();
    try {
      mkdirSync(folder, { mode });
      return folder;
    } catch {
      return undefined;
    }
  }

  remove(): void {
    removeAll(this.#folders, this.id, this.hidden);
  }

  #note(): void {
    const noted: Noted = { pid: process.pid, started: startOf(process.pid) ?? '', folders: this.#folders };
    writeFileSync(join(this.hidden, NOTE), JSON.stringify(noted), { mode: 0o600 });
  }
}

/** Takes away what self-tests have left that were killed. */
export function sweep(home: string): void {
  for (const name of readdirSync(home)) {
    const id = OWN.exec(name)?.[1];
    if (id === undefined) continue;
    const hidden = join(home, name);
    const noted = readNote(join(hidden, NOTE));
    if (noted !== undefined && noted.started !== '' && startOf(noted.pid) === noted.started) continue;
    removeAll(noted?.folders ?? [], id, hidden);
  }
}

const nameOf = (id: string): string => `.nd7-selftest-${id}`;

/** Only what is named as this run names it, whatever the note says. */
function removeAll(folders: readonly string[], id: string, hidden: string): void {
  for (const folder of [...folders.filter((path) => basename(path) === nameOf(id)), hidden])
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}

function readNote(path: string): Noted | undefined {
  try {
    const { pid, started, folders } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Noted>;
    if (typeof pid !== 'number' || typeof started !== 'string' || !Array.isArray(folders)) return undefined;
    return { pid, started, folders: folders.filter((folder) => typeof folder === 'string') };
  } catch {
    return undefined;
  }
}

/** When a process began, in the kernel's ticks: a pid alone may be another's by now. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
