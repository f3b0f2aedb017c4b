// What sessions may write or were ever let write, told from one front to the others: by that it is judged what runs outside.
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { isAlive, processFacts } from '@nd7/kernel';
import { isWithin, type Ruleset } from '@nd7/policy';

/** A path with more links is none (path_resolution(7)). */
const MOST_LINKS = 40;

/** A path that a grant let a session write, with what is below it or without. */
export interface Let {
  path: string;
  below: boolean;
}

/** What one session may write: by the rules that it began with (the nearest path above decides), and by all grants since, those that have ended too. */
interface Writes {
  nodes: ReadonlyMap<string, boolean>;
  lets: Let[];
}

/** The first line of a session's file; each line after it is a `Let`, or that the session is over. */
interface Told {
  pid: number;
  start: string;
  nodes: [path: string, write: boolean][];
}

/**
 * What this session, and every other one of the same nd7 home that lives or lived beside it, may write or was ever let write. Each session has a file,
 * `run/writes/<session>`, that no session can reach; the files go when a session starts while none lives.
 */
export class Reach {
  readonly #own: Writes;
  #file: string | undefined;

  private constructor(
    ruleset: Ruleset,
    private readonly folder: string | undefined,
  ) {
    this.#own = { nodes: new Map(nodesOf(ruleset)), lets: [] };
  }

  /** Of a session that has no neighbours. */
  static alone(ruleset: Ruleset): Reach {
    return new Reach(ruleset, undefined);
  }

  /** Tells other sessions of this one. Throws the system's error where that cannot be. */
  static open(nd7Home: string, session: string, ruleset: Ruleset): Reach {
    const folder = join(nd7Home, 'run', 'writes');
    const before = filesIn(folder);
    if (before === undefined) mkdirSync(folder, { recursive: true, mode: 0o700 });
    else forget(before, folder);
    const reach = new Reach(ruleset, folder);
    const told: Told = {
      pid: process.pid,
      start: processFacts(process.pid)?.start ?? '',
      nodes: [...reach.#own.nodes],
    };
    // Nobody reads half of it: a name that begins with a dot is not read.
    const made = join(folder, `.${session}`);
    try {
      writeFileSync(made, `${JSON.stringify(told)}\n`, { mode: 0o600 });
      renameSync(made, join(folder, session));
    } catch (error) {
      rmSync(made, { force: true });
      throw error;
    }
    reach.#file = join(folder, session);
    return reach;
  }

  /** A grant to write is about to hold. Throws the system's error where other sessions cannot be told of it. */
  lets(one: Let): void {
    if (this.#file !== undefined) appendFileSync(this.#file, `${JSON.stringify(one)}\n`);
    this.#own.lets.push(one);
  }

  /** The session is over: what it was let stays known to those that live. */
  close(): void {
    try {
      if (this.#file !== undefined) appendFileSync(this.#file, '{"over":true}\n');
    } catch {
      // Its process ends, and that says the same.
    }
  }

  /**
   * Asks whether a path, what it leads to, or anything on the way there can be or could have been written inside: folders and links, also those that lead
   * nowhere yet. What other sessions have told is read once for all that is asked of one answer. Throws an Error where it cannot be read.
   */
  asker(): (path: string) => boolean {
    const all = [this.#own, ...this.#others()];
    return (path) => onTheWay(path, MOST_LINKS).some((one) => all.some((writes) => mayWrite(writes, one)));
  }

  isOpen(path: string): boolean {
    return this.asker()(path);
  }

  /** The same of this session alone. */
  isOpenToOwn(path: string): boolean {
    return onTheWay(path, MOST_LINKS).some((one) => mayWrite(this.#own, one));
  }

  #others(): Writes[] {
    if (this.folder === undefined) return [];
    return (filesIn(this.folder) ?? [])
      .filter((file) => file !== this.#file)
      .flatMap((file) => {
        const read = readTold(file);
        return read === undefined ? [] : [{ nodes: new Map(read.told.nodes), lets: read.lets }];
      });
  }
}

/** Pairs that decide: those that say the same as the folder above are left out. The temporary folder is the session's own where it is private. */
function nodesOf({ files, tmp, privateTmp }: Ruleset): [string, boolean][] {
  const isOwn = (path: string): boolean => privateTmp && (path === tmp || path === '/var/tmp');
  const nodes = new Map<string, boolean>();
  // Parents stand before what lies under them.
  for (const { path, access } of files) {
    const write = access.write && !isOwn(path);
    if (path === '/' || nearest(nodes, dirname(path)) !== write) nodes.set(path, write);
  }
  return [...nodes];
}

/** What the nearest path above says, or the path itself; false where none does. */
function nearest(nodes: ReadonlyMap<string, boolean>, path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    const write = nodes.get(at);
    if (write !== undefined) return write;
    if (at === '/') return false;
  }
}

function mayWrite({ nodes, lets }: Writes, path: string): boolean {
  // A client saves a granted file by a draft beside it, NAME.tmp.…
  const isLet = lets.some(
    (one) => one.path === path || (one.below ? isWithin(path, one.path) : path.startsWith(`${one.path}.tmp.`)),
  );
  return isLet || nearest(nodes, path);
}

function onTheWay(path: string, links: number): string[] {
  const parts = path.split('/');
  const passed = ['/'];
  let at = '/';
  for (const [i, part] of parts.entries()) {
    // Links are followed where they stand: what lies above is real.
    at = part === '..' ? dirname(at) : join(at, part);
    passed.push(at);
    const target = links > 0 ? linkAt(at) : undefined;
    if (target === undefined) continue;
    const whole = isAbsolute(target) ? target : `${dirname(at)}/${target}`;
    return [...passed, ...onTheWay([whole, ...parts.slice(i + 1)].join('/'), links - 1)];
  }
  return passed;
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** Takes the files of sessions away that are over, where no other lives that they lived beside: one that has come meanwhile may have. */
function forget(files: readonly string[], folder: string): void {
  if (!files.every((file) => isOver(file))) return;
  const now = filesIn(folder) ?? [];
  if (now.every((file) => files.includes(file))) for (const file of files) rmSync(file, { force: true });
}

function isOver(file: string): boolean {
  try {
    const read = readTold(file);
    return read === undefined || read.isOver || !isAlive(read.told.pid, read.told.start);
  } catch {
    // Nobody appends to what was torn: its front was killed when it had just begun.
    return true;
  }
}

/** Undefined where it has gone meanwhile. Throws an Error for what cannot be read: what is not known is not taken for closed. */
function readTold(file: string): { told: Told; lets: Let[]; isOver: boolean } | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const [first = '', ...lines] = text.split('\n').filter((line) => line !== '');
    const said = lines.map((line) => JSON.parse(line) as Partial<Let> & { over?: true });
    return {
      told: JSON.parse(first) as Told,
      lets: said.filter((one): one is Let => one.path !== undefined),
      isOver: said.some(({ over }) => over === true),
    };
  } catch {
    throw new Error(`what another session may write cannot be read (${file})`);
  }
}

/** Undefined where there is no such folder. */
function filesIn(folder: string): string[] | undefined {
  try {
    const names = readdirSync(folder).filter((name) => !name.startsWith('.'));
    return names.map((name) => join(folder, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
