import { readdirSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { comparePaths, isWithin, nodeAt, type FileNode, type Ruleset } from '@nd7/policy';
import { RIGHTS, type Rule, type View } from '../plan.js';
import { Aliases } from './aliases.js';
import { resolvePath, type Looks } from './resolve.js';
import { boundSockets } from './sockets.js';
import { scan, type Found } from './scan.js';

/** Something outside that is shown inside at a path of its own, read-only. */
export interface Shown {
  path: string;
  /** Absolute, through no symbolic link. */
  source: string;
}

/** What is laid over one path of the disk. */
export interface Place {
  path: string;
  /** What is shown there, where that is not what lies at the path. */
  source?: string;
  state: 'hidden' | 'shown' | 'writable' | 'scratch' | 'pinned';
  exec: boolean;
}

/** Something of the ruleset that the view leaves out or does otherwise, for the manifest and `--verbose`. */
export interface Shortfall {
  path: string;
  what: 'missing' | 'a link that a session could have made' | 'not searched' | 'protected, but it has other names';
}

export interface Built {
  view: View[];
  rules: Rule[];
  found: Found;
  shortfalls: Shortfall[];
  /** Temporary folders in which nothing is executed, though what lies in them can be mapped. */
  unrun: string[];
  /** The access that a path has in the view; for choosing what the self-test aims at. */
  stateOf: (path: string) => 'hidden' | 'shown' | 'writable';
}

/** Mounts that the launcher makes itself, and what lies in them: nodes for them say nothing. */
const OWN = ['/proc', '/dev'];
/** Covered by an empty folder in which only what is granted appears: sockets of the system and of the user's session. */
const RUN = '/run';
const SHM = '/dev/shm';
const SCRATCH_MODE = 0o1777;

/** From the strictest to the least strict; of two that lead to one path the stricter holds. */
const ORDER: readonly Place['state'][] = ['hidden', 'shown', 'pinned', 'scratch', 'writable'];

/**
 * Turns the files of a ruleset into the view of this disk, now: links are resolved, names that exist are searched, and what is not there is
 * noted. `hide` are paths that are hidden whatever the ruleset says, `shows` what is shown there and elsewhere all the same. `isObserved`: a
 * supervisor performs the changes of mediated names, which then are not read-only.
 */
export function buildView(
  ruleset: Ruleset,
  hide: readonly string[],
  shows: readonly Shown[] = [],
  isObserved = false,
): Built {
  const root = ruleset.files[0];
  if (root?.path !== '/' || !root.access.read || root.access.write)
    throw new RangeError('a ruleset whose root folder is hidden or writable cannot be made to hold by a mount view');
  const found = scan(ruleset);
  const shortfalls: Shortfall[] = found.unseen.map((path) => ({ path, what: 'not searched' }));
  const places = new Places();
  const looks: Looks = new Map();
  for (const node of [...ruleset.files.slice(1), ...keptInTmp(ruleset)])
    addNode(node, ruleset, places, shortfalls, looks);
  for (const path of [...hide, ...found.masked]) addHidden(path, ruleset.project, places, looks);
  for (const { path, leaf } of found.leaves) {
    const resolved = resolvePath(path, looks);
    if (resolved === undefined) continue;
    const { path: real, links } = resolved;
    if (leaf.treatment === 'record') {
      // It may lie in something that is protected, and is let out of that by its deeper name.
      const { access } = nodeAt(ruleset, path);
      if (access.write && links.length === 0) places.add({ path: real, state: 'writable', exec: access.exec });
      continue;
    }
    // Without a supervisor that performs the change, a mediated file cannot change at all; the client's own state has to.
    const mayChange = leaf.treatment === 'mediate' && (isObserved || leaf.mediator === 'claude-state');
    if (!mayChange) places.add({ path: real, state: 'shown', exec: true });
    const stat = statSync(real);
    // Another name of the same file may lie where it can be written.
    if (stat.isFile() && stat.nlink > 1) shortfalls.push({ path, what: 'protected, but it has other names' });
  }
  places.pin(found.gitDirs);
  const scratch = ruleset.privateTmp ? [ruleset.tmp, '/var/tmp'] : [];
  for (const path of scratch) places.addScratch(path, places.inherited(path).exec);
  places.addScratch(SHM, false);
  const granted = new Set(ruleset.sockets.map(({ path }) => resolvePath(path, looks)?.path));
  for (const path of boundSockets()) if (!granted.has(path)) places.add({ path, state: 'hidden', exec: false });
  for (const path of granted) if (path !== undefined) places.add({ path, state: 'shown', exec: false });
  places.hideAliases(new Aliases(), ruleset.project);
  places.add({ path: RUN, state: 'hidden', exec: false });
  for (const { path, source } of shows) places.show(path, source);
  const view = places.toView();
  const unrun = scratch.filter((path) => !places.inherited(path).exec);
  return {
    view,
    rules: rulesOf(view, unrun, (path) => places.isThere(path)),
    unrun,
    found,
    shortfalls: shortfalls.filter(({ path, what }) => what !== 'missing' || !shows.some((one) => one.path === path)),
    stateOf: (path) => places.stateOf(path),
  };
}

/** What a rule names for writing in the temporary folder: it is not the session's own, though all around it is. */
export function keptInTmp({ reasons, files, tmp, privateTmp }: Ruleset): FileNode[] {
  if (!privateTmp) return [];
  return reasons.filter(
    ({ path, access }) =>
      access.write && path !== tmp && isWithin(path, tmp) && !files.some((other) => other.path === path),
  );
}

export function addNode(node: FileNode, ruleset: Ruleset, places: Places, shortfalls: Shortfall[], looks: Looks): void {
  if (OWN.some((own) => isWithin(node.path, own))) return;
  const resolved = resolvePath(node.path, looks);
  if (resolved === undefined) {
    if (node.access.read) shortfalls.push({ path: node.path, what: 'missing' });
    return;
  }
  if (OWN.some((own) => isWithin(resolved.path, own))) return;
  // A link in a folder that sessions write to may lead wherever an earlier session wanted.
  const isPlanted = resolved.links.some((link) =>
    ruleset.files.some(({ path, access }) => access.write && link !== path && isWithin(link, path)),
  );
  if (isPlanted && node.access.read) {
    shortfalls.push({ path: node.path, what: 'a link that a session could have made' });
    return;
  }
  const state = !node.access.read ? 'hidden' : node.access.write ? 'writable' : 'shown';
  places.add({ path: resolved.path, state, exec: node.access.exec });
}

/** A masked name that is a link hides what it leads to, unless the session would then stand on nothing. */
export function addHidden(path: string, project: string, places: Places, looks: Looks): void {
  const real = resolvePath(path, looks)?.path;
  if (real !== undefined && !isWithin(project, real)) places.add({ path: real, state: 'hidden', exec: false });
}

/** Places by path, with what each inherits from the nearest above it. */
export class Places {
  readonly #byPath = new Map<string, Place>();

  add(place: Place): void {
    if (place.path === '/') return;
    const known = this.#byPath.get(place.path);
    const isStricter = known === undefined || ORDER.indexOf(place.state) < ORDER.indexOf(known.state);
    const exec = place.exec && (known?.exec ?? true);
    this.#byPath.set(place.path, { ...(isStricter ? place : known), exec });
  }

  /** Folders that cannot be moved to another name. What a rule opens to be written in what cannot be is a mount of its own already, and stays open. */
  pin(paths: readonly string[]): void {
    for (const path of paths) {
      const isOwn = this.#byPath.get(path)?.state === 'writable';
      const above = this.inherited(path.slice(0, path.lastIndexOf('/')));
      if (!isOwn || above.state === 'writable') this.add({ path, state: 'pinned', exec: true });
    }
  }

  /** What is known of the path and of what lies below it is about what it replaces. */
  show(path: string, source: string): void {
    for (const known of this.#byPath.keys()) if (isWithin(known, path)) this.#byPath.delete(known);
    this.#byPath.set(path, { path, source, state: 'shown', exec: true });
  }

  addScratch(path: string, exec: boolean): void {
    const real = path === SHM ? path : resolvePath(path)?.path;
    // Whatever the nodes say of it: the session's own, empty folder lies there.
    if (real !== undefined) this.#byPath.set(real, { path: real, state: 'scratch', exec });
  }

  /** Hides what is hidden by every path that leads to it, unless the session would then stand on nothing. */
  hideAliases(aliases: Aliases, project: string): void {
    const hidden = [...this.#byPath.values()].filter(({ state }) => state === 'hidden');
    for (const path of hidden.flatMap((place) => aliases.of(place.path)))
      if (!isWithin(project, path)) this.add({ path, state: 'hidden', exec: false });
  }

  paths(): string[] {
    return [...this.#byPath.keys()];
  }

  at(path: string): Place | undefined {
    return this.#byPath.get(path);
  }

  /** The place that decides about a path: its own or the nearest above. */
  inherited(path: string): Place {
    for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const place = this.#byPath.get(at);
      if (place !== undefined && place.state !== 'pinned') return place;
    }
    return { path: '/', state: 'shown', exec: true };
  }

  /** Whether anything lies at a path in the view: what is in a hidden folder is not, but for what is shown below it. */
  isThere(path: string): boolean {
    const shown = (place: Place): boolean => place.state !== 'hidden' && place.state !== 'pinned';
    return (
      this.stateOf(path) !== 'hidden' ||
      [...this.#byPath.values()].some((one) => shown(one) && isWithin(one.path, path))
    );
  }

  stateOf(path: string): 'hidden' | 'shown' | 'writable' {
    const { state } = this.inherited(path);
    return state === 'hidden' || state === 'shown' ? state : 'writable';
  }

  toView(): View[] {
    const places = [...this.#byPath.values()].sort((a, b) => comparePaths(a.path, b.path));
    return places.flatMap((place) => this.#mount(place, places));
  }

  #mount(place: Place, places: readonly Place[]): View[] {
    const { path, state } = place;
    const above = this.inherited(path.slice(0, path.lastIndexOf('/')));
    const isSame = above.exec === place.exec;
    const noExec = !place.exec;
    if (state === 'scratch')
      return [
        {
          kind: 'scratch',
          path,
          mode: SCRATCH_MODE,
          mebibytes: scratchSize(),
          frozen: false,
          noExec: noExec && path === SHM,
        },
      ];
    if (state === 'hidden') {
      if (above.state === 'hidden') return [];
      const isBeneath = places.some(
        (other) => other.path !== path && other.state !== 'hidden' && isWithin(other.path, path),
      );
      return isBeneath || path === RUN
        ? [{ kind: 'scratch', path, mode: 0o755, mebibytes: 1, frozen: true, noExec: true }]
        : [{ kind: 'cover', path }];
    }
    // What the session's own empty folder lies over is gone from the view; what is put there again has to come from outside.
    if (state === 'pinned') return above.state === 'writable' ? [{ kind: 'writable', path, noExec: !above.exec }] : [];
    if (state === 'writable') return above.state === 'writable' && isSame ? [] : [{ kind: 'writable', path, noExec }];
    const { source = path } = place;
    return above.state === 'shown' && isSame && source === path ? [] : [{ kind: 'show', path, source, noExec }];
  }
}

/** Half of the memory, as tmpfs itself takes. */
function scratchSize(): number {
  scratch ??= Math.max(64, Math.floor(totalmem() / 2 / 2 ** 20));
  return scratch;
}

/** MiB; asked of the system once. */
let scratch: number | undefined;

/**
 * Landlock under the mounts: read everything in view, run what may be run, change only what is writable. `unrun` are temporary folders in
 * which nothing may be executed: libraries that programs unpack there can still be mapped, which a noexec mount would refuse.
 */
function rulesOf(view: readonly View[], unrun: readonly string[], isThere: (path: string) => boolean): Rule[] {
  const { execute, readFile, readDir, writeFile, truncate, ioctlDevice, makeChar, makeBlock, all } = RIGHTS;
  const rules: Rule[] = [
    { path: '/', rights: readFile | readDir },
    { path: '/dev', rights: writeFile | truncate | ioctlDevice },
    ...runnable('/', [...unrun, ...OWN], isThere).map((path) => ({ path, rights: execute })),
  ];
  const open: string[] = [];
  for (const mount of view) {
    const { path } = mount;
    if (mount.kind === 'show' && unrun.some((other) => isWithin(path, other))) rules.push({ path, rights: execute });
    const isWritable = mount.kind === 'writable' || (mount.kind === 'scratch' && !mount.frozen);
    if (!isWritable || open.some((other) => isWithin(path, other) && !unrun.includes(other))) continue;
    open.push(path);
    const isFile = mount.kind === 'writable' && statSync(path).isFile();
    const rights = isFile ? readFile | writeFile | truncate | execute : all & ~(makeChar | makeBlock);
    rules.push({ path, rights: unrun.includes(path) ? rights & ~execute : rights });
  }
  return rules;
}

/**
 * Folders that together hold everything but what is named: Landlock grants and never takes away. A folder that is shared with one of them is
 * split into what lies in it at the start; it is read-only inside, so that nothing can be added.
 */
function runnable(folder: string, without: readonly string[], isThere: (path: string) => boolean): string[] {
  if (without.includes(folder)) return [];
  if (!without.some((path) => isWithin(path, folder))) return [folder];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() || entry.isFile())
    .map((entry) => join(folder, entry.name))
    .filter(isThere)
    .flatMap((path) => runnable(path, without, isThere));
}
