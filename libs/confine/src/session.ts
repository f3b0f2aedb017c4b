import { accessSync, constants, copyFileSync, existsSync, mkdirSync, realpathSync, rmdirSync, statSync } from 'node:fs';
import { release } from 'node:os';
import { dirname } from 'node:path';
import { environmentInside, type Ruleset } from '@nd7/policy';
import { layCanary, type Canary } from './canary.js';
import { callFilter } from './filter/filter.js';
import type { Architecture } from './filter/syscalls.js';
import { encodeNames } from './names/table.js';
import { recordLeaves, type LeafRecord } from './alone/leaves.js';
import { portsOf, serverPorts } from './alone/ports.js';
import { buildBare, TooManyRulesError, type BareBuilt, type BareDoor } from './bare/build.js';
import { makeOwnFolders, type OwnFolders } from './bare/own-folders.js';
import { RIGHTS, type Listener, type Plan, type PlanTier, type Route } from './plan.js';
import { keepsSignals, landlockOf, SIGNAL_SCOPE } from './landlock.js';
import { hasNoRoom } from './no-room.js';
import { ProgramsOnPath } from './programs.js';
import { shownResolver } from './resolver.js';
import { buildView, type Built, type Shown } from './view/build.js';

export interface SessionInput {
  ruleset: Ruleset;
  argv: readonly string[];
  /** The environment of who starts the session. */
  environment: Readonly<Record<string, string | undefined>>;
  cwd: string;
  /** nd7's own folder: hidden inside whatever the ruleset says; the canary of the self-test is laid into it. */
  nd7Home: string;
  userNamespace: boolean;
  /** Whether the program runs as root: the kernel then keeps it from fewer settings under /proc. */
  isRoot: boolean;
  /** What is shown inside in places of its own, read-only, though it lies in what is hidden. */
  shows?: readonly Shown[];
  /** What holds the session; T1 where it is left out. */
  tier?: PlanTier;
  /** T2: the session's door; who connects to it speaks to the front. */
  door?: BareDoor | undefined;
  /** T3: ports that may be connected to, besides the plan's listeners and those that this machine gives to servers. */
  ports?: readonly number[];
  /** T2 and T3: nothing of a newer version of Landlock is used. */
  landlockMost?: number | undefined;
  /** Whether a supervisor answers the calls that make names. */
  isObserved?: boolean;
  /** Whether that supervisor tells its front what is read, run and connected to. */
  learns?: boolean;
  /** Folder of the door in which commands are taken, on the disk outside. */
  broker?: string | undefined;
  /** Sockets of the session that the caller serves, with the addresses that are its own for that, and variables that say so inside, whatever the ruleset says of variables. */
  listeners: readonly Listener[];
  routes: readonly Route[];
  /** Whether the caller connects to servers inside. */
  connects?: boolean;
  variables: Readonly<Record<string, string>>;
  /** Whether the caller answers for names at the session's loopback: programs are then told to ask there. */
  resolvesNames: boolean;
  /** Whether the process that calls is what a shell waits for. */
  isFront: boolean;
}

/** A session that can be launched. */
export interface Prepared {
  plan: Plan;
  built: Built | BareBuilt;
  /** T3: what protected names held before the start. */
  leaves?: LeafRecord;
  /** Takes away what was laid down for the start. */
  clean(): void;
  /** Takes away the folders that were made for this session and are still empty; not while another session may stand on them. */
  removeEmptyFolders(): void;
}

/** Why a session cannot be prepared on this disk; the message and `hint` are for the person. */
export class PrepareError extends Error {
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
    this.name = 'PrepareError';
  }
}

const ARCHITECTURES: Partial<Record<NodeJS.Architecture, Architecture>> = { x64: 'x86_64', arm64: 'aarch64' };

/**
 * Makes the folders and files that a ruleset wants to be there, and the plan of tier T1 for this disk as it is now. Throws `PrepareError`
 * where the session could not even stand.
 */
export function prepare(input: SessionInput): Prepared {
  const { ruleset, nd7Home } = input;
  const architecture = ARCHITECTURES[process.arch];
  if (process.platform !== 'linux' || architecture === undefined)
    throw new PrepareError(
      `nd7 run confines on Linux on x86_64 and aarch64, not on ${process.platform} on ${process.arch}`,
      'On this system nd7 records without confining: nd7 init.',
    );
  const made = layOut(ruleset, input.environment['PATH'] ?? '');
  mkdirSync(nd7Home, { recursive: true, mode: 0o700 });
  if (input.tier === 'T2') return prepareBare(input, architecture, made);
  if (input.tier === 'T3') return prepareAlone(input, architecture, made);
  const shows = [...(input.shows ?? []), ...(input.resolvesNames ? shownResolver(nd7Home) : [])];
  const built = buildView(ruleset, [nd7Home], shows, input.isObserved);
  const canary = layCanary(nd7Home);
  const scoped = keepsSignals(release());
  const plan: Plan = {
    ...planFor(input, built, canary),
    tier: 'T1',
    userNamespace: input.userNamespace,
    writableProc: !input.isRoot,
    landlock: scoped ? SIGNAL_SCOPE : 1,
    filter: callFilter(architecture, { scoped, observed: input.isObserved === true, learns: input.learns === true }),
    // What an ordinary user may write there is about its own processes: gdb and browsers do.
    rules: input.isRoot ? built.rules : [...built.rules, { path: '/proc', rights: RIGHTS.writeFile | RIGHTS.truncate }],
    names: input.isObserved === true ? encodeNames(ruleset, built.found.held) : undefined,
    learns: input.isObserved === true && input.learns === true,
    broker: input.broker,
  };
  return prepared(plan, built, made, canary.clean);
}

/** The same where no namespaces are made: folders of the session's own lie beside those of others. */
function prepareBare(input: SessionInput, architecture: Architecture, made: readonly string[]): Prepared {
  const { ruleset, nd7Home } = input;
  const base = input.environment['TMPDIR'] ?? '/tmp';
  const own = makeOwnFolders(base.startsWith('/') ? base : '/tmp', ruleset.privateTmp);
  try {
    const built = bareFor(input, own);
    const canary = layCanary(nd7Home);
    const abi = Math.min(input.landlockMost ?? Infinity, keepsSignals(release()) ? SIGNAL_SCOPE : 1);
    const scoped = abi >= SIGNAL_SCOPE;
    const plan: Plan = {
      ...planFor(input, built, canary),
      tier: 'T2',
      userNamespace: false,
      writableProc: false,
      landlock: scoped ? SIGNAL_SCOPE : 1,
      landlockMost: input.landlockMost,
      asksReads: built.asksReads,
      filter: callFilter(architecture, { scoped, observed: true, bare: true, asksReads: built.asksReads }),
      asking:
        input.broker === undefined || built.asksReads
          ? undefined
          : callFilter(architecture, { scoped, observed: true, bare: true, asksReads: true }),
      names: encodeNames(ruleset, built.found.held),
      learns: false,
      broker: input.broker,
    };
    if (own.tmp !== undefined) plan.environment = { ...plan.environment, TMPDIR: own.tmp, TMP: own.tmp, TEMP: own.tmp };
    return prepared(plan, built, made, () => {
      canary.clean();
      own.remove();
    });
  } catch (error) {
    own.remove();
    throw error;
  }
}

/** The same without a supervisor: what it would perform is let through or refused, and protected names are looked at. */
function prepareAlone(input: SessionInput, architecture: Architecture, made: readonly string[]): Prepared {
  const { ruleset, nd7Home } = input;
  const base = input.environment['TMPDIR'] ?? '/tmp';
  const own = makeOwnFolders(base.startsWith('/') ? base : '/tmp', ruleset.privateTmp, false);
  try {
    const built = bareFor(input, own);
    const canary = layCanary(nd7Home);
    const landlock = Math.min(input.landlockMost ?? Infinity, landlockOf(release()));
    const common = planFor(input, built, canary);
    const plan: Plan = {
      ...common,
      tier: 'T3',
      userNamespace: false,
      writableProc: false,
      landlock: Math.max(landlock, 1),
      landlockMost: input.landlockMost,
      givesTerminals: true,
      ports: [...portsOf([...input.listeners.map(({ port }) => port), ...(input.ports ?? [])]), serverPorts()],
      filter: callFilter(architecture, { scoped: landlock >= SIGNAL_SCOPE, alone: landlock }),
      listeners: [],
      view: [],
      names: undefined,
      learns: false,
    };
    if (own.tmp !== undefined) plan.environment = { ...plan.environment, TMPDIR: own.tmp, TMP: own.tmp, TEMP: own.tmp };
    const leaves = recordLeaves(ruleset, built.found);
    const clean = (): void => {
      canary.clean();
      own.remove();
    };
    return { ...prepared(plan, built, made, clean), leaves };
  } catch (error) {
    own.remove();
    throw error;
  }
}

function bareFor(input: SessionInput, own: OwnFolders): BareBuilt {
  const { ruleset, nd7Home, isRoot, shows = [] } = input;
  try {
    const { tmp, memory } = own;
    const isAlone = input.tier === 'T3';
    const door = isAlone ? undefined : input.door;
    return buildBare({ ruleset, hide: [nd7Home], shows, tmp, memory, door, isAlone, isRoot });
  } catch (error) {
    if (!(error instanceof TooManyRulesError)) throw error;
    throw new PrepareError(
      `tier ${input.tier ?? 'T2'} would need too many rules around what is hidden, from ${error.path} on`,
      'Hide fewer paths in folders with thousands of entries, or use tier T1.',
    );
  }
}

type Common =
  'cwd' | 'argv' | 'environment' | 'listeners' | 'routes' | 'connects' | 'view' | 'rules' | 'stopFront' | 'selfTest';

/** What every tier's plan has. Throws `PrepareError` where the program could not stand where it is. */
function planFor(input: SessionInput, built: Built, canary: Canary): Pick<Plan, Common> {
  const { ruleset } = input;
  const cwd = realpathSync(input.cwd);
  if (built.stateOf(cwd) === 'hidden') {
    canary.clean();
    throw new PrepareError(
      `the folder that you are in is hidden inside: ${cwd}`,
      'Change into the project, or allow the folder in your policy.',
    );
  }
  return {
    stopFront: input.isFront,
    cwd,
    argv: input.argv,
    environment: { ...environmentInside(ruleset.environment, input.environment), ...input.variables },
    listeners: input.listeners,
    routes: input.routes,
    connects: input.connects === true,
    view: built.view,
    rules: built.rules,
    selfTest: { canary: canary.path, outside: outsideFolder(ruleset, built) },
  };
}

function prepared(plan: Plan, built: Built | BareBuilt, made: readonly string[], clean: () => void): Prepared {
  return { plan, built, clean, removeEmptyFolders: () => made.toReversed().forEach(removeIfEmpty) };
}

/**
 * Makes the folders and files that a ruleset wants to be there. Returns the folders that were not there before, each after the one that it lies in. On a full
 * disk it goes without them: what would write there could not either.
 */
export function layOut(ruleset: Ruleset, searched: string): string[] {
  const made: string[] = [];
  const programs = new ProgramsOnPath(searched);
  for (const { path, ifPrograms } of ruleset.makeFolders)
    if (ifPrograms === null || ifPrograms.some((name) => programs.has(name))) {
      const first = ifRoom(() => mkdirSync(path, { recursive: true, mode: 0o700 }));
      if (first !== undefined) made.push(...foldersDownTo(path, first));
    }
  for (const { from, to } of ruleset.seeds)
    if (existsSync(from) && !existsSync(to)) ifRoom(() => copyFileSync(from, to, constants.COPYFILE_EXCL));
  return made;
}

function ifRoom<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (hasNoRoom(error)) return undefined;
    throw error;
  }
}

function foldersDownTo(path: string, first: string): string[] {
  return path === first || !path.startsWith(`${first}/`) ? [first] : [...foldersDownTo(dirname(path), first), path];
}

function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Something lies in it now, or somebody has taken it away.
  }
}

/** A folder that is read-only inside and, if there is one, writable outside: there an attempt to write says most. */
function outsideFolder(ruleset: Ruleset, built: Built): string {
  const folders = [dirname(ruleset.project), ruleset.home, '/usr', '/'].filter(
    (path) => built.stateOf(path) === 'shown' && realPath(path) === path && statSync(path).isDirectory(),
  );
  return folders.find(isWritable) ?? folders[0] ?? '/';
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
