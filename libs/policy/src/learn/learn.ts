import { compile } from '../compile.js';
import { accessAt, maskAt, nodeAt } from '../decide.js';
import type { PolicyDocument } from '../document.js';
import { BUILTINS, SOCKETS } from '../builtin/index.js';
import type { Right } from '../files.js';
import { comparePaths, expandPath, isWithin } from '../path.js';
import type { Places } from '../path.js';
import { builtinPolicy } from '../read.js';
import { socketPaths } from '../reach.js';
import type { Ruleset } from '../ruleset.js';
import { learnHosts } from './hosts.js';
import { nameable, policyOfItems, written } from './items.js';
import { gathered, outermost } from './paths.js';
import type { Held, LearnInput, Learnt, Seen } from './seen.js';
import { DATA, ownCache, wideFolders } from './wide.js';

/** What the session has to itself, or what the kernel tells: no matter of a profile. */
const OWN = ['/proc', '/sys', '/dev', '/run/nd7', '/var/tmp'];
/** Files whose code is mapped and not executed by a call. */
const LIBRARY = /\.(so(\.[0-9]+)*|node|dylib)$/;

/** Which path of the session something is about; empty for none that a profile could name. */
const pathOf = ({ path, said }: Seen): string => (path === '' ? said : path);

/** Packs that are switched by what was used of them. An agent's own comes with the agent. */
function packsInForce(base: Ruleset): string[] {
  const names = base.layers.filter(({ layer }) => layer === 'pack').map(({ name }) => name);
  return [...new Set(names)]
    .filter((name) => (BUILTINS.get(name)?.document.files?.write?.allow ?? []).length > 0)
    .sort();
}

/**
 * The smallest profile by which a command can do again what it was seen to do, and what it wants besides that somebody should decide. The same
 * input gives the same profile, in whatever order things were seen. Throws `PolicyError` for items to include that are none.
 */
export function learn(input: LearnInput): Learnt {
  const { places } = input.policies;
  const base = compile(input.policies).ruleset;
  const seen = input.seen.filter((one) => isOurs(one, input));
  const document = skeleton(input, base, seen);
  const paths = new Paths(input, base, compiled(input, document));
  for (const one of seen) paths.take(one);
  for (const { path, because } of input.refused) paths.hold('write', path, because, '');
  const learned = withPaths(document, paths, places);
  const hosts = learnHosts(input, compiled(input, learned));
  const sockets = learnSockets(input, base, seen);
  const network = learned.network ?? {};
  const allow = [...(network.allow ?? []), ...hosts.allow];
  const all = [...paths.held.values(), ...hosts.held, ...sockets];
  const held = [...new Map(all.map((one) => [one.item, one])).values()].filter(
    ({ item }) => !input.include.includes(item),
  );
  return {
    document: allow.length === 0 ? learned : { ...learned, network: { ...network, allow } },
    held: held.sort((a, b) => (a.item < b.item ? -1 : 1)),
    widened: outermost([...paths.widened]).map((path) => written(path, places)),
  };
}

/** A file beside the person's own, as `--profile` takes it. */
function compiled({ policies }: LearnInput, document: PolicyDocument): Ruleset {
  const name = './profiles/learned.jsonc';
  const session = { ...policies.session, profile: name, policy: null };
  const files = new Map([...policies.files, [name, builtinPolicy(name, document)]]);
  return compile({ ...policies, session, files }).ruleset;
}

function isOurs({ what, path, said }: Seen, { policies: { places } }: LearnInput): boolean {
  if (what === 'dial' || what === 'bind') return true;
  const at = path === '' ? said : path;
  if (!at.startsWith('/') || isWithin(at, places.nd7Home)) return false;
  // One that lies in the session's own folders is not there outside.
  if (what === 'socket') return true;
  const isKept = isWithin(at, places.home) || isWithin(at, places.project);
  return isKept || ![...OWN, places.tmp].some((folder) => isWithin(at, folder));
}

/** The profile before any path: what is closed, and the packs of which something was used. */
function skeleton(input: LearnInput, base: Ruleset, seen: readonly Seen[]): PolicyDocument {
  const { places } = input.policies;
  const used = packsInForce(base).filter((name) =>
    (BUILTINS.get(name)?.document.files?.write?.allow ?? []).some((rule) => {
      const folder = expandPath(rule, places);
      return seen.some((one) => one.what !== 'look' && isWithin(pathOf(one), folder));
    }),
  );
  const inProject = (...kinds: Seen['what'][]): boolean =>
    seen.some((one) => kinds.includes(one.what) && isWithin(pathOf(one), places.project)) ||
    (kinds.includes('exec') &&
      seen.some((one) => one.what === 'read' && isWithin(one.path, places.project) && LIBRARY.test(one.path)));
  const taken = policyOfItems(input.include, places);
  const of = (right: Right): string[] => taken.files?.[right]?.allow ?? [];
  return {
    nd7: 1,
    extends: ['offline', ...used],
    files: {
      read: { allow: of('read'), deny: ['~', ...DATA] },
      write: { allow: of('write'), deny: inProject('write', 'make-folder') ? [] : ['.'] },
      exec: { allow: of('exec'), deny: ['~', ...(inProject('exec') ? [] : ['.'])] },
    },
    ...(taken.sockets === undefined ? {} : { sockets: taken.sockets }),
    ...(taken.network === undefined ? {} : { network: taken.network }),
  };
}

/** Sorts paths into those that the profile has to name and those that are held back. */
class Paths {
  readonly needed: Record<Right, Set<string>> = { read: new Set(), write: new Set(), exec: new Set() };
  readonly caches = new Set<string>();
  readonly widened = new Set<string>();
  readonly held = new Map<string, Held>();
  readonly isWide: (path: string) => boolean;

  constructor(
    private readonly input: LearnInput,
    private readonly base: Ruleset,
    private readonly draft: Ruleset,
  ) {
    this.isWide = wideFolders(input.policies.places);
  }

  hold(kind: 'read' | 'write' | 'exec', path: string, why: string, program: string): void {
    const { places } = this.input.policies;
    const item = `${kind}:${written(nameable(path, places), places)}`;
    const known = this.held.get(item);
    const programs = [...new Set([...(known?.programs ?? []), ...(program === '' ? [] : [program])])].sort();
    this.held.set(item, { item, why: known === undefined || why < known.why ? why : known.why, programs });
  }

  take(one: Seen): void {
    const { facts } = this.input;
    const at = pathOf(one);
    if (one.what === 'dial' || one.what === 'bind' || one.what === 'socket') return;
    if (one.what === 'write' || one.what === 'make-folder') {
      this.#write(one, at);
      return;
    }
    if (one.what === 'exec') {
      if (one.path === '') return;
      this.#need('exec', at, one.program);
      const interpreter = facts.interpreterOf(at);
      if (interpreter !== undefined) this.#run(interpreter, one.program);
    }
    // What is looked for and is nowhere, also outside, says nothing.
    if (facts.kindOf(at) === undefined) return;
    if (one.what !== 'look' || this.#isOpen('read', at)) this.#need('read', at, one.program);
    if (one.what === 'read' && LIBRARY.test(at)) this.#need('exec', at, one.program);
    for (const link of facts.linksOn(one.said))
      this.#need('read', link.slice(0, link.lastIndexOf('/')) || '/', one.program);
  }

  #run(program: string, by: string): void {
    const path = this.input.facts.kindOf(program) === undefined ? undefined : program;
    if (path === undefined) return;
    this.#need('read', path, by);
    this.#need('exec', path, by);
  }

  #isOpen(right: Right, path: string): boolean {
    return this.#access(this.base, path)[right];
  }

  #access(ruleset: Ruleset, path: string) {
    return accessAt(ruleset, path, { tracked: this.input.facts.tracked });
  }

  #need(right: 'read' | 'exec', path: string, program: string): void {
    if (this.#access(this.draft, path)[right]) return;
    if (!this.#isOpen(right, path)) {
      this.hold(right, path, this.#why(right, path), program);
      return;
    }
    if (this.isWide(path)) {
      this.hold(right, path, this.#breadth(path), program);
      return;
    }
    // What a pack's folder holds that is run is made there, under names that are new each time.
    const root = right === 'exec' ? this.#writableAbove(path) : undefined;
    const { places } = this.input.policies;
    const name = nameable(root ?? path, places);
    if (this.isWide(name)) this.hold(right, name, this.#breadth(name), program);
    else this.needed[right].add(name);
  }

  #writableAbove(path: string): string | undefined {
    const { access, path: root } = nodeAt(this.draft, path);
    return access.write && root !== this.input.policies.places.project ? root : undefined;
  }

  #breadth(path: string): string {
    const { home, project } = this.input.policies.places;
    if (path === home) return 'your whole home folder: name in it what is meant';
    if (isWithin(home, path) || isWithin(project, path))
      return 'it holds your home folder or the project, and all beside them';
    return 'it holds what many programs keep: name in it what is meant';
  }

  #why(right: Right, path: string): string {
    const mask = maskAt(this.base, path, { tracked: this.input.facts.tracked });
    const source = mask?.source ?? nodeAt(this.base, path).why[right];
    return `${right === 'read' ? 'hidden' : 'refused'} by "${source.text}" (${source.policy})`;
  }

  #write(one: Seen, at: string): void {
    const { places } = this.input.policies;
    if (isWithin(at, places.project) && this.#isOpen('write', at)) return;
    if (this.#access(this.draft, at).write) return;
    const name = nameable(at, places);
    const cache = ownCache(at, places);
    const isOpen = this.#isOpen('write', at);
    if (cache !== undefined && this.#isOpen('read', at) && (cache !== at || one.what === 'make-folder')) {
      this.caches.add(nameable(cache, places));
      if (!isOpen) this.widened.add(cache);
    } else if (isOpen && !this.isWide(name)) {
      this.needed.write.add(name);
    } else {
      this.hold('write', at, isOpen ? this.#breadth(name) : this.#risk(at), one.program);
    }
  }

  #risk(path: string): string {
    const { home } = this.input.policies.places;
    if (!this.#isOpen('read', path)) return this.#why('read', path);
    if (isWithin(path, home) && path.slice(home.length).startsWith('/.'))
      return 'programs outside read it as their settings, or run it';
    return isWithin(path, home) ? 'it lies outside of the project' : 'it belongs to the machine, not to the project';
  }
}

function withPaths(document: PolicyDocument, paths: Paths, places: Places): PolicyDocument {
  const { read, write, exec } = document.files ?? {};
  const caches = outermost([...paths.caches]);
  const rules = (right: Right, found: readonly string[], taken: readonly string[]): string[] => {
    const all = [...found, ...taken.map((rule) => expandPath(rule, places))];
    return outermost(right === 'write' ? [...all, ...caches] : all).map((path) => written(path, places));
  };
  const reads = gathered(paths.needed.read, paths.isWide);
  const writes = gathered(paths.needed.write, paths.isWide);
  const files = {
    read: sections(
      rules(
        'read',
        reads.filter((path) => ![...writes, ...caches].some((other) => isWithin(path, other))),
        read?.allow ?? [],
      ),
      read?.deny ?? [],
    ),
    write: sections(rules('write', writes, write?.allow ?? []), write?.deny ?? []),
    exec: sections(rules('exec', gathered(paths.needed.exec, paths.isWide), exec?.allow ?? []), exec?.deny ?? []),
  };
  return {
    ...document,
    files: Object.fromEntries(Object.entries(files).filter(([, rule]) => Object.keys(rule).length > 0)),
    ...(caches.length === 0 ? {} : { makeFolders: caches.sort(comparePaths).map((path) => written(path, places)) }),
  };
}

const sections = (allow: string[], deny: string[]) => ({
  ...(allow.length === 0 ? {} : { allow }),
  ...(deny.length === 0 ? {} : { deny }),
});

/** Unix sockets outside that were asked for, by the names that they have, and services on the loopback. */
function learnSockets(input: LearnInput, base: Ruleset, seen: readonly Seen[]): Held[] {
  const { places } = input.policies;
  const held: Held[] = [];
  const bound = new Set(seen.filter(({ what }) => what === 'bind').map(({ path }) => portOf(path)));
  const own = new Set(seen.filter(({ what }) => what === 'write').map(pathOf));
  for (const one of seen) {
    const programs = one.program === '' ? [] : [one.program];
    if (one.what === 'dial') {
      const port = portOf(one.path);
      if (
        !/^(127\.|\[::1\])/.test(one.path) ||
        bound.has(port) ||
        input.ownPorts.includes(Number(port)) ||
        port === '53'
      )
        continue;
      if (base.network.loopback.some(({ from, to }) => from <= Number(port) && Number(port) <= to)) continue;
      held.push({
        item: `loopback:${port}`,
        why: 'a service of this machine, which may ask nobody who they are',
        programs,
      });
    }
    if (one.what !== 'socket' || own.has(pathOf(one))) continue;
    const at = one.said;
    if (input.facts.kindOf(at) !== 'socket' || isWithin(at, places.project)) continue;
    if (base.sockets.some(({ path }) => path === at || path === one.path)) continue;
    const name = Object.keys(SOCKETS).find((known) => socketPaths(known, places, NOWHERE).includes(at));
    held.push({
      item: `socket:${name ?? written(at, places)}`,
      why:
        (name === undefined ? undefined : SOCKETS[name]?.warning) ??
        'a program outside answers there, with its own rights',
      programs,
    });
  }
  return held;
}

const NOWHERE = { layer: 'fixed', policy: 'nd7', file: null, line: null, text: '' } as const;

const portOf = (address: string): string => address.slice(address.lastIndexOf(':') + 1);
