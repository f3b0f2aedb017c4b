import { lstatSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isWithin, type Ruleset } from '@nd7/policy';
import { RIGHTS, type Rule, type View } from '../plan.js';
import { Aliases } from '../view/aliases.js';
import { addHidden, addNode, keptInTmp, Places, type Built, type Shortfall, type Shown } from '../view/build.js';
import { resolvePath, type Looks } from '../view/resolve.js';
import { scan } from '../view/scan.js';

/** A session without a mount view, as Landlock's rules and what its supervisor holds besides. */
export interface BareBuilt extends Built {
  /** Hidden paths in writable folders, which Landlock cannot take away again: hidden only where the supervisor is asked about every open. */
  asked: string[];
  /** Whether it is. */
  asksReads: boolean;
}

/** The front speaks to whoever connects to one of the paths; the socket has to be there. */
export interface BareDoor {
  socket: string;
  paths: readonly string[];
}

export interface BareInput {
  ruleset: Ruleset;
  /** Hidden whatever the ruleset says. */
  hide: readonly string[];
  /** Shown all the same, at their own places; a file that has another place is opened in that one's stead, for which every open is asked about. */
  shows: readonly Shown[];
  /** The session's own temporary folder, where it has one, and what takes the place of /dev/shm. */
  tmp: string | undefined;
  memory: string | undefined;
  door: BareDoor | undefined;
  /** Nobody opens what is asked for: what the rules do not say does not hold (T3). */
  isAlone?: boolean;
  isRoot: boolean;
}

/** The rules of one layer; each costs some 2 µs at the start and nothing later. */
export const MOST_RULES = 15_000;

/** More rules would be needed than a start can bear. */
export class TooManyRulesError extends Error {
  constructor(readonly path: string) {
    super(`too many rules: ${path}`);
    this.name = 'TooManyRulesError';
  }
}

/** Closed but for what is granted in them: folders that a mount view has afresh. */
const MEMORY = '/dev/shm';
const CLOSED = ['/tmp', '/var/tmp', '/run', MEMORY];
const OWN = ['/proc', '/dev'];
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'pts/ptmx'];

/**
 * Turns the files of a ruleset into rules for this disk, now. Landlock only grants, so that everything around a hidden path is named: a name
 * that is made later beside one is not readable. In a writable folder that cannot be, and there the supervisor holds. Throws
 * `TooManyRulesError`.
 */
export function buildBare(input: BareInput): BareBuilt {
  const { ruleset, tmp, memory } = input;
  const found = scan(ruleset);
  const shortfalls: Shortfall[] = found.unseen.map((path) => ({ path, what: 'not searched' }));
  const places = new Places();
  const looks: Looks = new Map();
  for (const node of [...ruleset.files.slice(1), ...keptInTmp(ruleset)])
    addNode(node, ruleset, places, shortfalls, looks);
  for (const path of [...input.hide, ...found.masked]) addHidden(path, ruleset.project, places, looks);
  const isAlone = input.isAlone === true;
  const ownFolders = ruleset.privateTmp ? CLOSED : CLOSED.filter((path) => path !== ruleset.tmp && path !== '/var/tmp');
  const closed = isAlone ? ownFolders.filter((path) => path !== MEMORY) : ownFolders;
  for (const path of closed) places.add({ path: resolvePath(path)?.path ?? path, state: 'hidden', exec: false });
  places.pin(found.gitDirs);
  for (const { path, leaf } of found.leaves) {
    const stat = leaf.treatment === 'record' ? undefined : statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile() === true && stat.nlink > 1) shortfalls.push({ path, what: 'protected, but it has other names' });
  }
  places.hideAliases(new Aliases(), ruleset.project);
  for (const { source } of input.shows) places.show(source, source);
  const instead = isAlone ? [] : input.shows.filter(({ path, source }) => path !== source);
  const canRun = places.inherited(ruleset.tmp).exec;
  if (tmp !== undefined) places.add({ path: tmp, state: 'writable', exec: canRun });
  if (memory !== undefined) places.add({ path: memory, state: 'writable', exec: false });
  // Semaphores and shared memory are made there by that very name, and nobody can lead it elsewhere.
  if (isAlone && resolvePath(MEMORY) !== undefined) places.add({ path: MEMORY, state: 'writable', exec: false });
  const { rules, view } = new Rules(places, input.isRoot || isAlone).make();
  if (memory !== undefined) view.push({ kind: 'show', path: MEMORY, source: memory });
  // Who opens the one gets the other, as far as somebody is asked about what is read.
  for (const { path, source } of instead) view.push({ kind: 'show', path, source });
  for (const path of input.door?.paths ?? []) view.push({ kind: 'show', path, source: input.door?.socket ?? path });
  for (const { path } of isAlone ? [] : ruleset.sockets) {
    const real = resolvePath(path)?.path;
    if (real !== undefined && statSync(real).isSocket()) view.push({ kind: 'writable', path: real });
  }
  const asked = view.flatMap((one) => (one.kind === 'cover' && one.closed !== true ? [one.path] : []));
  const masked = new Set(found.masked.map((path) => resolvePath(path)?.path));
  return {
    view,
    rules,
    unrun: tmp === undefined || canRun ? [] : [tmp],
    found,
    shortfalls: shortfalls.filter(
      ({ path, what }) => what !== 'missing' || !input.shows.some((one) => one.path === path),
    ),
    stateOf: (path) => places.stateOf(path),
    asked,
    asksReads:
      !isAlone && (instead.length > 0 || asked.some((path) => !masked.has(path) || ruleset.patterns === 'strict')),
  };
}

/** Walks down from the root, no further than places differ. */
class Rules {
  readonly rules: Rule[] = [];
  readonly view: View[] = [];
  readonly #all: string[];

  constructor(
    private readonly places: Places,
    readsProc: boolean,
  ) {
    this.#all = places.paths();
    const { readFile, readDir, writeFile, truncate, ioctlDevice } = RIGHTS;
    // The names in a folder cannot be closed where the folder above can be listed.
    this.rules.push({ path: '/', rights: readDir });
    this.rules.push({ path: '/proc', rights: readFile | readDir | (readsProc ? 0 : writeFile | truncate) });
    for (const name of DEVICES)
      this.rules.push({ path: `/dev/${name}`, rights: readFile | writeFile | truncate | ioctlDevice });
  }

  make(): { rules: Rule[]; view: View[] } {
    this.#shown('/', true);
    return { rules: this.rules, view: this.view };
  }

  #below(path: string): string[] {
    return this.#all.filter((other) => other !== path && isWithin(other, path));
  }

  /** The topmost places below one. */
  #next(path: string): string[] {
    const below = this.#below(path);
    return below.filter((one) => !below.some((other) => other !== one && isWithin(one, other)));
  }

  #place(path: string): void {
    const place = this.places.at(path);
    if (place === undefined) return;
    if (place.state === 'writable') this.#writable(path, place.exec);
    else if (place.state === 'hidden') {
      this.view.push({ kind: 'cover', path, closed: true });
      for (const one of this.#next(path)) this.#place(one);
    } else if (place.state === 'shown') this.#shown(path, place.exec);
    else if (place.state === 'pinned') {
      const above = this.places.inherited(path);
      if (above.state === 'writable') this.view.push({ kind: 'writable', path });
      else this.#shown(path, above.exec);
    }
  }

  #shown(path: string, canRun: boolean): void {
    const { readFile, readDir, execute } = RIGHTS;
    if (OWN.includes(path)) return this.#next(path).forEach((one) => this.#place(one));
    if (this.#below(path).length === 0) {
      if (this.rules.length >= MOST_RULES) throw new TooManyRulesError(path);
      this.rules.push({ path, rights: readFile | readDir | (canRun ? execute : 0) });
      return;
    }
    for (const name of entriesOf(path)) {
      const child = join(path, name);
      if (this.places.at(child) !== undefined) this.#place(child);
      else if (isRead(child)) this.#shown(child, canRun);
    }
  }

  /** Everything below it is granted with it: what is to be less is held by the supervisor. */
  #writable(path: string, canRun: boolean): void {
    const { all, makeChar, makeBlock, execute, readFile, writeFile, truncate } = RIGHTS;
    const isFile = statSync(path).isFile();
    const rights = isFile ? readFile | writeFile | truncate | execute : all & ~(makeChar | makeBlock);
    this.rules.push({ path, rights: canRun ? rights : rights & ~execute });
    for (const one of this.#below(path)) this.#withinWritable(one);
  }

  #withinWritable(path: string): void {
    const place = this.places.at(path);
    const above = this.places.inherited(path.slice(0, path.lastIndexOf('/')));
    if (place === undefined || (place.state === above.state && place.exec === above.exec)) return;
    if (place.state === 'hidden') this.view.push({ kind: 'cover', path });
    else if (place.state === 'shown') {
      const { readFile, readDir, execute } = RIGHTS;
      this.view.push({ kind: 'show', path, source: path });
      if (place.exec && !above.exec) this.rules.push({ path, rights: readFile | readDir | execute });
    } else if (place.state === 'pinned') this.view.push({ kind: 'writable', path });
    // What may be run in a folder in which nothing may: a project in the temporary folder.
    else if (above.state !== 'writable' || place.exec) {
      const { all, makeChar, makeBlock, execute } = RIGHTS;
      this.rules.push({ path, rights: all & ~(makeChar | makeBlock) & (place.exec ? ~0 : ~execute) });
    }
  }
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // What this user cannot list, the session cannot either.
    return [];
  }
}

/** Links say nothing: what they lead to has a place of its own. */
function isRead(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && (stat.isDirectory() || stat.isFile());
}
