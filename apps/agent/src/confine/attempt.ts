// One attempt at a session: in one tier, one way. What the ways are, and what stays between them, is in run-session.ts.
import {
  adviceFor,
  aloneManifest,
  bareManifest,
  launch,
  manifest,
  prepare,
  PrepareError,
  type Doors,
  type Ended,
  type LeafRecord,
  type ManifestRow,
  type PlanTier,
  type Prepared,
  type Proof,
  type Supervised,
} from '@nd7/confine';
import type { Asker, EgressDecision, EndedConnection, Ends, LostRelay } from '@nd7/egress';
import { environmentInside, type NetworkRules, type Ruleset } from '@nd7/policy';
import { reasonOf } from '../cli/full-disk.js';
import { CliError } from '../cli/io.js';
import { IN_VIEW, withoutView, type Extent } from '../grants/extent.js';
import type { SessionGrants } from '../grants/session-grants.js';
import { recorded, refuseMissing, type Boundary } from './boundary.js';
import type { Brokered } from './brokered.js';
import { hintIn } from './attach.js';
import { Callers, type Caller } from './callers.js';
import { DOOR, inDoor, type Door } from './door.js';
import { listenersOf, wayOut, type WayOut } from './egress.js';
import { hiddenProgram } from './hidden-program.js';
import { RefusedHosts } from './hosts.js';
import { Ingress } from './ingress.js';
import { Mediation } from './mediate.js';
import { tellLate } from './late-leaves.js';
import { keepNames } from './left-names.js';
import type { OutsidePrograms } from './outside-programs.js';
import { OwnListeners } from './own-listeners.js';
import type { RunRecord } from './record.js';
import { SeenListeners } from './seen-listeners.js';
import type { RunRequest } from './session-request.js';
import { passSignals } from './signals.js';
import { Traffic } from './traffic.js';

/** What stays from one attempt to the next. */
export interface Inside {
  record: RunRecord;
  door: Door | undefined;
  grants: SessionGrants | undefined;
  outside: OutsidePrograms;
}

export const isRoot = (): boolean => process.geteuid?.() === 0;

/** How a session is started: what some systems do not give. */
export interface Way {
  tier: PlanTier;
  userNamespace: boolean;
  /** With a supervisor that answers the calls that make names. */
  isObserved: boolean;
  /** Where an agent's commands are run for it. */
  broker: Brokered | undefined;
}

/** What a supervisor can do at best: what it can do here it says itself. */
const SUPERVISED: Supervised = { sockets: true, masks: true };

/** How a way out's own files are given to programs. */
const FILES: Readonly<Record<PlanTier, 'placed' | 'in place' | 'none'>> = { T1: 'placed', T2: 'in place', T3: 'none' };

/** How many of nd7's own processes stand between the launcher and the program. */
const ABOVE: Readonly<Record<PlanTier, number>> = { T1: 1, T2: 2, T3: 1 };

/** What became of the tunnels is a fact of the session. Where it must be recorded and cannot be, the session ends. */
function tellLost(
  { code, signal, tunnels, goesOn }: LostRelay,
  { warn }: RunRequest,
  record: RunRecord,
  end: () => void,
): void {
  warn(
    `the relay of the proxy has ended (${signal ?? code}), and ${tunnels} tunnels with it: ${goesOn ? 'another one serves what connects from now on' : 'nothing gets out of this session any more'}`,
  );
  const data = { reason: 'relay ended', code, signal, tunnels, goes_on: goesOn };
  record.note('alarm', data, 'that the relay of the proxy has ended').catch((error: unknown) => {
    warn(error instanceof Error ? error.message : String(error));
    end();
  });
}

/** Runs the program so, or answers why it could not be started so. Throws `CliError` as `runSession`. */
export async function attempt(
  request: RunRequest,
  launcher: string,
  { record, door, grants, outside }: Inside,
  way: Way,
): Promise<Ended & { hasRun: boolean }> {
  const { ruleset } = request;
  const refused = new RefusedHosts();
  const answered = (decision: EgressDecision, isRepeated: boolean): Promise<void> => {
    refused.add(decision);
    request.learning?.answered(decision);
    grants?.answered(decision);
    return record.answer(decision, isRepeated);
  };
  let end = (): void => undefined;
  const own = await listenersIn(way.tier, ruleset, door);
  const { nd7Home, environment } = request;
  const rules = (asker?: Asker): NetworkRules => grants?.networkFor(asker as Caller | undefined) ?? ruleset.network;
  const callers = new Callers({ isTold: way.isObserved, above: ABOVE[way.tier], calls: grants?.calls });
  const traffic = new Traffic((kind, data) => record.traffic(kind, data).catch(() => end()));
  const lost = (relay: LostRelay): void => tellLost(relay, request, record, () => end());
  const files = FILES[way.tier];
  let out: WayOut | undefined;
  let prepared: Prepared;
  try {
    const ended = (connection: EndedConnection): void => traffic.ended(connection);
    const told = { record: answered, rules, lost, ended, askerOf: (ends: Ends) => callers.askerOf(ends) };
    out = wayOut({ ruleset, nd7Home, environment, outside, ...told, files, own: own?.ports });
    grants?.reach(out);
    request.learning?.listensOn(out.listeners.flatMap(({ address, port }) => (address === '127.0.0.1' ? [port] : [])));
    prepared = prepareSession(request, out, door, way, own instanceof SeenListeners ? own.door : undefined);
  } catch (error) {
    // What still listens would keep nd7 from ending.
    out?.close();
    own?.close();
    throw error;
  }
  let ingress: Ingress | undefined;
  let compares: (() => void) | undefined;
  const commands = way.broker?.commands({
    plan: prepared.plan,
    record,
    warn: request.warn,
    readsMore: () => grants?.readsMore === true,
    unrecorded: () => end(),
    door: door?.placeIn(way.tier) ?? DOOR,
  });
  if (commands !== undefined) callers.ownerIn = (line) => commands.ownerIn(line);
  if (door !== undefined && commands !== undefined) door.hears = (payload) => commands.hears(payload);
  if (commands !== undefined && grants !== undefined) grants.ownerOf = (pid) => commands.ownerOf(pid);
  if (grants !== undefined) grants.spoke = (line) => callers.spoke(line);
  const mediation = new Mediation(
    ruleset,
    (kind, data, ...rest) => {
      grants?.decided(kind, data);
      return record.note(kind, data, ...rest);
    },
    () => end(),
  );
  const front = grants?.beside(mediation) ?? mediation;
  try {
    refuseMissing(ruleset, rowsOf(way, ruleset, prepared, { proofs: [], supervised: SUPERVISED }), `tier ${way.tier}`);
    // Without a network of its own, a server inside listens where it is reached.
    const shared = own === undefined ? ruleset.network : { ...ruleset.network, listen: [] };
    ingress = await Ingress.open(shared, out.listeners, (reached) =>
      record.note('ingress', { ...reached, verdict: 'allow' }, 'that a server inside was reached', 'decision:ingress'),
    );
    // Node makes a pipe non-blocking for all who share it when it first opens it; spawning makes those blocking that it hands on.
    void process.stderr;
    const session = launch(launcher, prepared.plan, {
      front: callers.beside(request.learning?.beside(front) ?? front),
      ...(commands === undefined ? {} : { commands }),
      ...(request.front && { start: request.front.start }),
      ...(own instanceof OwnListeners
        ? { doors: { announced: (port) => own.announced(port), opened: opener(door) } }
        : {}),
      ...(request.stdio === undefined ? {} : { stdio: request.stdio }),
      admit: async ({ landlock, proofs, supervised, terminals }) => {
        const rows = rowsOf(way, ruleset, prepared, { proofs, supervised, landlock, terminals });
        refuseMissing(ruleset, rows, `tier ${way.tier}`);
        const { shortfalls } = prepared.built;
        await record.open();
        const boundary: Boundary = { tier: way.tier, landlock, rows, shortfalls, session: record.session };
        // On the disk before the program runs: nothing that it does can then be without it.
        await record.note('enforcement', recorded(ruleset, boundary), 'what holds');
        if (prepared.leaves !== undefined)
          compares = keepsNames(request, record.id, prepared.leaves, session.process.pid);
        door?.admit(session.process.pid);
        if (own instanceof SeenListeners) own.admit(session.process.pid);
        grants?.admit(session.process.pid, way.isObserved ? session : undefined, extentOf(way, prepared, door));
        commands?.admit(session.process.pid);
        request.started(boundary);
        await request.front?.printed();
      },
    });
    // While the launcher makes its boundary; what holds waits for it and tells what went wrong.
    record.open().catch(() => undefined);
    end = () => session.signal('SIGKILL');
    const release = request.front ? () => undefined : passSignals(session.signal);
    if (own === undefined) void session.listeners.then((opened) => out.serve(opened));
    else out.serve(own.served);
    ingress.reach(session.connect);
    try {
      const start = await session.started;
      if (start !== undefined) record.ready();
      const ended = await session.ended;
      await mediation.finish();
      await out.finish();
      await traffic.flush();
      await commands?.over();
      if (prepared.leaves !== undefined && start !== undefined)
        await tellLate(ruleset, prepared.leaves, (...entry) => record.note(...entry), request.warn, {
          untold: request.attacked,
        });
      compares?.();
      if (start !== undefined) {
        request.decided([...mediation.tallies, ...refused.tallies], grants?.made ?? []);
        adviseOn(ended, request);
      }
      return { ...ended, hasRun: start !== undefined };
    } finally {
      await session.ended;
      release();
      for (const listener of await session.listeners) listener.close();
    }
  } finally {
    ingress?.close();
    out.close();
    own?.close();
    prepared.clean();
    const tidy = (): void => (door?.hasOthers === false ? prepared.removeEmptyFolders() : undefined);
    if (request.front === undefined) tidy();
    else request.front.later(tidy);
  }
}

/** Where this process is killed, somebody else has to compare protected names. Undefined where that cannot be kept: then nobody does. */
function keepsNames(
  request: RunRequest,
  session: string,
  before: LeafRecord,
  launcher?: number,
): (() => void) | undefined {
  const { nd7Home, ruleset, attacked, warn } = request;
  try {
    return keepNames(nd7Home, session, { ruleset, before, by: 'tier T3', untold: attacked, launcher });
  } catch (error) {
    warn(`if nd7 is killed, protected names are not compared: ${reasonOf(error, nd7Home)}`);
    return undefined;
  }
}

/** What could not be executed has said so itself, but not why. */
function adviseOn({ failure }: Ended, { argv, cwd, ruleset, warn }: RunRequest): void {
  const advice =
    failure?.step === 'exec' ? hiddenProgram(argv[0] ?? '', cwd, ruleset) : failure && adviceFor(failure).message;
  if (advice !== undefined) warn(advice);
}

/** What asks is found by its name inside, after all programs that are found outside. */
function pathInside({ ruleset, environment }: RunRequest, door: string): { PATH?: string } {
  const { PATH: path } = environmentInside(ruleset.environment, environment);
  return path === undefined ? {} : { PATH: `${path}:${door}` };
}

/** Listeners of this process's own, where the session has no network of its own. */
async function listenersIn(
  tier: PlanTier,
  ruleset: Ruleset,
  door: Door | undefined,
): Promise<OwnListeners | SeenListeners | undefined> {
  if (tier === 'T1') return undefined;
  const count = listenersOf(ruleset);
  return tier === 'T2' ? OwnListeners.open(count) : SeenListeners.open(count, opener(door));
}

/** Where there is no door, whoever opens it is cut off. */
function opener(door: Door | undefined): Doors['opened'] {
  return (socket, pid) => (door === undefined ? socket.destroy() : door.opened(socket, pid));
}

/** How far grants come; without namespaces as far as the supervisor is asked. */
function extentOf(way: Way, { plan }: Prepared, door: Door | undefined): Extent {
  return way.tier === 'T1'
    ? IN_VIEW
    : withoutView(door?.placeIn(way.tier) ?? DOOR, plan.asksReads === true, plan.asking !== undefined);
}

interface Found {
  proofs: readonly Proof[];
  supervised: Supervised | undefined;
  landlock?: number;
  /** T3: new terminals are given. */
  terminals?: boolean;
}

/** What holds, before and after it was tried; before, with the newest Landlock. */
function rowsOf(way: Way, ruleset: Ruleset, { plan, built }: Prepared, found: Found): ManifestRow[] {
  const { proofs, supervised, landlock = Infinity, terminals = true } = found;
  // There the call filter is made for the version that the plan names, whatever newer one the kernel has.
  if ('asked' in built && way.tier === 'T3')
    return aloneManifest(ruleset, built, proofs, Math.min(landlock, plan.landlock), terminals);
  return 'asked' in built
    ? bareManifest(ruleset, built, proofs, landlock, way.broker !== undefined)
    : manifest(ruleset, built, proofs, way.isObserved ? supervised : undefined, way.broker !== undefined);
}

function prepareSession(
  request: RunRequest,
  out: WayOut,
  door: Door | undefined,
  way: Way,
  doorPort: number | undefined,
): ReturnType<typeof prepare> {
  try {
    const said = door === undefined ? request.argv : (request.attachment?.argv ?? request.argv);
    const place = door?.placeIn(way.tier) ?? DOOR;
    const argv = said.map((word) => hintIn(inDoor(word, place), place));
    const variables = {
      ...out.environment,
      ...door?.variablesIn(way.tier, doorPort),
      ...way.broker?.variables(place),
      ...(door === undefined ? {} : pathInside(request, place)),
    };
    const shows = [
      ...(door?.showsIn(way.tier) ?? []),
      ...out.shows,
      ...(way.broker?.shows ?? []),
      ...(request.shows ?? []),
    ];
    const { listeners, routes, resolvesNames } = out;
    const connects = way.tier === 'T1' && request.ruleset.network.listen.length > 0;
    const ports = doorPort === undefined ? [] : [doorPort];
    const own = { argv, connects, listeners, routes, resolvesNames, variables, shows, ports, door: door?.bare };
    const learns = request.learning !== undefined;
    const { tier, userNamespace, isObserved, broker } = way;
    const how = { tier, userNamespace, isObserved, broker: broker?.folder, learns, isRoot: isRoot(), isFront: true };
    return prepare({ ...request, ...own, ...how });
  } catch (error) {
    if (error instanceof PrepareError) throw new CliError(2, error.message, error.hint, 'no-boundary');
    throw error;
  }
}
