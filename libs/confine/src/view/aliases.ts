import { readFileSync, statSync } from 'node:fs';
import { isWithin } from '@nd7/policy';

/** One line of proc_pid_mountinfo(5). */
interface Mount {
  /** Of the file system: `major:minor`. */
  device: string;
  /** The folder of the file system that is mounted, and where. */
  root: string;
  at: string;
}

/**
 * Other paths of this mount namespace by which the same file is reached, because its file system is mounted more than once: bind mounts,
 * the /sysroot of image-based systems, a btrfs whose top is mounted beside its subvolumes.
 */
export class Aliases {
  readonly #mounts: Mount[];

  constructor(table = '/proc/self/mountinfo') {
    this.#mounts = readFileSync(table, 'latin1').split('\n').flatMap(parse);
  }

  /** `path` without symbolic links. */
  of(path: string): string[] {
    // Of those at one place the last lies on top.
    const own = this.#mounts.filter(({ at }) => isWithin(path, at)).reduce(nearer, undefined);
    if (own === undefined) return [];
    const inside = moved(path, own.at, own.root);
    return this.#mounts
      .filter((mount) => mount !== own && mount.device === own.device && isWithin(inside, mount.root))
      .map((mount) => moved(inside, mount.root, mount.at))
      .filter((other) => other !== path && isSame(other, path));
  }
}

function parse(line: string): Mount[] {
  const [, , device, root, at] = line.split(' ').map(unescaped);
  return device === undefined || root === undefined || at === undefined ? [] : [{ device, root, at }];
}

/** Blanks, line ends and backslashes are three octal digits each. */
function unescaped(text: string): string {
  const bytes = text.replace(/\\([0-7]{3})/g, (_all, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
  return Buffer.from(bytes, 'latin1').toString();
}

function nearer(best: Mount | undefined, mount: Mount): Mount {
  return best === undefined || mount.at.length >= best.at.length ? mount : best;
}

function moved(path: string, from: string, to: string): string {
  const rest = from === '/' ? path : path.slice(from.length);
  return `${to === '/' ? '' : to}${rest === '/' ? '' : rest}` || '/';
}

/** Something else may be mounted over it. */
function isSame(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => {
    try {
      return statSync(path);
    } catch {
      return undefined;
    }
  });
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}
