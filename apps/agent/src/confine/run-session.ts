import { constants } from 'node:os';
import { isatty } from 'node:tty';
import {
  adviceFor,
  bareManifest,
  findLauncher,
  launch,
  manifest,
  missing,
  prepare,
  PrepareError,
  type Doors,
  type Ended,
  type ManifestRow,
  type PlanTier,
  type Prepared,
  type Proof,
  type Shown,
  type Supervised,
} from '@nd7/confine';
import type { EgressDecision } from '@nd7/egress';
import { environmentInside, rulesetHash, type CompileInput, type NetworkRules, type Ruleset } from '@nd7/policy';
import { CliError, type RemoteFront } from '../cli/io.js';
import type { Grant, Request as Asked } from '../grants/entry.js';
import { SessionGrants } from '../grants/session-grants.js';
import { safeLine } from '../show/safe.js';
import type { Attachment } from './attach.js';
import { brokered, type Brokered } from './brokered.js';
import { Door, DOOR } from './door.js';
import { listenersOf, wayOut, type WayOut } from './egress.js';
import { hiddenProgram } from './hidden-program.js';
import { Ingress } from './ingress.js';
import { RefusedHosts } from './hosts.js';
import type { Learning } from './learning.js';
import { Mediation, type Tally } from './mediate.js';
import { OwnListeners } from './own-listeners.js';
import { RunRecord } from './record.js';

export interface RunRequest {
  /** The kind of boundary; `auto`: the strongest that this machine gives and the policy takes. */
  tier?: PlanTier | 'auto' | undefined;
  ruleset: Ruleset;
  /** What the ruleset was compiled from; where it is left out, nobody widens the session while it lives. */
  policies?: CompileInput;
  argv: readonly string[];
  /** Where the program is an agent: how it is told to speak through the door. */
  attachment: Attachment | undefined;
  nd7Home: string;
  environment: NodeJS.ProcessEnv;
  cwd: string;
  /** The program's standard streams, where they are not this process's own. */
  stdio?: readonly [number, number, number];
  /** The process that a shell waits for, where that is not this one. */
  front?: RemoteFront | undefined;
  /** What is shown inside besides. */
  shows?: readonly Shown[];
  /** Hears what the program does, where that is to be learned. */
  learning?: Learning;
  /** Told of the record when the program has ended, before its end is written. */
  beforeEnd?(record: RunRecord): Promise<void>;
  /** Told once, when the program is about to run. */
  started(boundary: Boundary): void;
  /** Told once, when the program has ended, what was decided about names, what the proxy refused, and what a person granted meanwhile. */
  decided(tallies: readonly Tally[], granted: readonly Grant[]): void;
  /** Told of what a program inside asks a person for. */
  asked?(request: Asked): void;
  /** Told what the record of this session lacks, where the policy lets it, and why it ended where that was not the program's doing. */
  warn(text: string): void;
}

/** What holds while a session runs. */
export interface Boundary {
  tier: PlanTier | 'seatbelt';
  /** Landlock's ABI; 0 where there is none. */
  landlock: number;
  rows: ManifestRow[];
  /** Paths that the policy names and the view could not treat as it says. */
  shortfalls: { path: string; what: string }[];
  /** Chain that the manifest and the end are recorded in; undefined where that failed and the policy lets it. */
  session: string | undefined;
}

/** Signals that others send to this process and mean the program. */
const PASSED = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;
/** The terminal sends these to the whole process group; a process sends them to this one alone. */
const FROM_TERMINAL = ['SIGINT', 'SIGQUIT'] as const;

/**
 * Runs a program inside and answers how it ended. Throws `CliError`: 2 where this system cannot give what the policy requires, before
 * anything is started; 1 where the policy requires a record and it cannot be written, of the boundary before the program runs, of its end
 * afterwards.
 */
export async function runSession(request: RunRequest): Promise<Ended> {
  if (process.platform === 'darwin') return (await import('./run-seatbelt.js')).runSeatbelt(request);
  const launcher = await findLauncher();
  if ('problem' in launcher) throw new CliError(2, launcher.problem, undefined, 'no-launcher');
  const record = await RunRecord.open(request.nd7Home, request.ruleset.recording, request.warn);
  let door: Door | undefined;
  let grants: SessionGrants | undefined;
  try {
    door = await openDoor(request, record);
    grants = door && (await openGrants(request, record, door));
    const shell = request.attachment?.shell;
    const broker =
      door === undefined || shell === undefined ? undefined : brokered(request.nd7Home, door, shell, request.warn);
    const ended = await attemptTiers(request, launcher.path, { record, door, grants }, broker);
    if (!ended.hasRun) throw failed(ended);
    const { code, signal, failure } = ended;
    await grants?.close();
    await door?.close();
    // What could not be executed has said so itself, but not why.
    const advice =
      failure?.step === 'exec'
        ? hiddenProgram(request.argv[0] ?? '', request.cwd, request.ruleset)
        : failure && adviceFor(failure).message;
    if (advice !== undefined) request.warn(advice);
    await request.beforeEnd?.(record);
    await record.note(
      'session.end',
      { reason: 'program ended', code, signal },
      `the program’s end (${code ?? signal})`,
    );
    await record.close();
    return ended;
  } catch (error) {
    // What went wrong first is what is told.
    await grants?.close().catch(() => undefined);
    await door?.close().catch(() => undefined);
    await record.close().catch(() => undefined);
    throw error;
  }
}

/** Steps of the launcher that fail where a system refuses namespaces. */
const REFUSES_T1 = ['namespaces', 'maps', 'mounts', 'loopback', 'proc'];

/** Tries what the request and the policy take, the strongest first. */
async function attemptTiers(
  request: RunRequest,
  launcher: string,
  inside: Inside,
  broker: Brokered | undefined,
): Promise<Ended & { hasRun: boolean }> {
  const { tier = 'auto', ruleset } = request;
  const bare = (): Promise<Ended & { hasRun: boolean }> => {
    // The broker's zygote is made for the namespaces of T1: commands are the agent's own children here.
    if (broker !== undefined) inside.door?.forget(request.attachment?.files ?? {});
    return attempt(request, launcher, inside, {
      tier: 'T2',
      userNamespace: false,
      isObserved: true,
      broker: undefined,
    });
  };
  if (tier === 'T2') {
    if (ruleset.weakestTier === 'T1')
      throw new CliError(
        2,
        'your policy takes nothing weaker than tier T1',
        'Leave --tier out, or change "weakestTier" in the policy that says so: nd7 policy show.',
        'weak-tier',
      );
    return bare();
  }
  const way: Way = { tier: 'T1', userNamespace: true, isObserved: true, broker };
  let ended = await attempt(request, launcher, inside, way);
  // Where user namespaces are refused, root makes the others without one.
  if (!ended.hasRun && ended.failure?.step === 'namespaces' && isRoot()) {
    way.userNamespace = false;
    ended = await attempt(request, launcher, inside, way);
  }
  // To learn takes the stronger one.
  const mayWeaken = tier === 'auto' && ruleset.weakestTier !== 'T1' && request.learning === undefined;
  if (!ended.hasRun && mayWeaken && REFUSES_T1.includes(ended.failure?.step ?? '')) return bare();
  // Where calls cannot be answered: what that takes from the boundary is in the manifest, and the policy may require it.
  if (!ended.hasRun && ended.failure?.step === 'observe' && request.learning === undefined)
    ended = await attempt(request, launcher, inside, { ...way, isObserved: false });
  return ended;
}

/** The door, and an agent's recorder behind it. Throws `CliError` where the policy requires recording and there can be none. */
async function openDoor(request: RunRequest, record: RunRecord): Promise<Door | undefined> {
  const { nd7Home, ruleset, attachment } = request;
  try {
    const door = await Door.open(nd7Home, record, ruleset.recording, attachment);
    if (attachment !== undefined) door.prepare();
    return door;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (ruleset.recording === 'required')
      throw new CliError(
        1,
        `hooks inside cannot be recorded, and the policy requires it: ${why}`,
        'Mend that, or say "recording": "best-effort" in your policy.',
        'unrecorded',
      );
    request.warn(`hooks inside are not recorded: ${why}`);
    await record.note('alarm', { reason: 'no door', detail: why }, 'that hooks inside are not recorded');
    return undefined;
  }
}

/** What widens the session while it lives; undefined where that cannot be had: it is then as narrow as it was started. */
async function openGrants(request: RunRequest, record: RunRecord, door: Door): Promise<SessionGrants | undefined> {
  const { policies, ruleset, argv, attachment, cwd } = request;
  if (policies === undefined) return undefined;
  const agent = attachment?.agent ?? null;
  const living = { session: record.id, project: ruleset.project, cwd, command: argv, agent, pid: process.pid };
  try {
    const grants = await SessionGrants.open({
      policies,
      ruleset,
      record,
      folder: door.control,
      living: { ...living, started: new Date().toISOString() },
      asked: (asked) => request.asked?.(asked),
    });
    door.receive(grants);
    return grants;
  } catch (error) {
    request.warn(`nd7 allow will not reach this session: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** What stays from one attempt to the next. */
interface Inside {
  record: RunRecord;
  door: Door | undefined;
  grants: SessionGrants | undefined;
}

const isRoot = (): boolean => process.geteuid?.() === 0;

/** How a session is started: what some systems do not give. */
interface Way {
  tier: PlanTier;
  userNamespace: boolean;
  /** With a supervisor that answers the calls that make names. */
  isObserved: boolean;
  /** Where an agent's commands are run for it. */
  broker: Brokered | undefined;
}

/** What a supervisor can do at best: what it can do here it says itself. */
const SUPERVISED: Supervised = { sockets: true, masks: true };

async function attempt(
  request: RunRequest,
  launcher: string,
  { record, door, grants }: Inside,
  way: Way,
): Promise<Ended & { hasRun: boolean }> {
  const { ruleset } = request;
  const refused = new RefusedHosts();
  const answered = (decision: EgressDecision): Promise<void> => {
    refused.add(decision);
    request.learning?.answered(decision);
    grants?.answered(decision);
    return record.note('network', { ...decision }, 'an answer of the proxy', 'decision:egress');
  };
  const own = way.tier === 'T2' ? await OwnListeners.open(listenersOf(ruleset)) : undefined;
  const { nd7Home, environment } = request;
  const rules = (): NetworkRules => grants?.network ?? ruleset.network;
  const out = wayOut({ ruleset, nd7Home, environment, record: answered, rules, own: own?.ports });
  grants?.reach(out);
  request.learning?.listensOn(out.listeners.flatMap(({ address, port }) => (address === '127.0.0.1' ? [port] : [])));
  const prepared = prepareSession(request, out, door, way);
  let ingress: Ingress | undefined;
  let end = (): void => undefined;
  const commands = way.broker?.commands(prepared.plan, record, request.warn, () => end());
  if (door !== undefined && commands !== undefined) door.hears = (payload) => commands.hears(payload);
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
      front: request.learning?.beside(front) ?? front,
      ...(commands === undefined ? {} : { commands }),
      ...(request.front && { start: request.front.start }),
      ...(own === undefined ? {} : { doors: { announced: (port) => own.announced(port), opened: opener(door) } }),
      ...(request.stdio === undefined ? {} : { stdio: request.stdio }),
      admit: async ({ landlock, proofs, supervised }) => {
        const rows = rowsOf(way, ruleset, prepared, { proofs, supervised, landlock });
        refuseMissing(ruleset, rows, `tier ${way.tier}`);
        const { shortfalls } = prepared.built;
        const boundary: Boundary = { tier: way.tier, landlock, rows, shortfalls, session: record.session };
        // On the disk before the program runs: nothing that it does can then be without it.
        await record.note('enforcement', recorded(ruleset, boundary), 'what holds');
        door?.admit(session.process.pid);
        grants?.admit(session.process.pid, way.isObserved ? session : undefined);
        commands?.admit(session.process.pid);
        request.started(boundary);
        await request.front?.printed();
      },
    });
    end = () => session.signal('SIGKILL');
    const release = request.front ? () => undefined : passSignals(session.signal);
    if (own === undefined) void session.listeners.then((opened) => out.serve(opened));
    else out.serve(own.served);
    ingress.reach(session.connect);
    try {
      const start = await session.started;
      const ended = await session.ended;
      await mediation.finish();
      await commands?.over();
      if (start !== undefined) request.decided([...mediation.tallies, ...refused.tallies], grants?.made ?? []);
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
    if (door?.hasOthers === false) prepared.removeEmptyFolders();
  }
}

/** What asks is found by its name inside, after all programs that are found outside. */
function pathInside({ ruleset, environment }: RunRequest, door: string): { PATH?: string } {
  const { PATH: path } = environmentInside(ruleset.environment, environment);
  return path === undefined ? {} : { PATH: `${path}:${door}` };
}

/** Where there is no door, whoever opens it is cut off. */
function opener(door: Door | undefined): Doors['opened'] {
  return (socket, pid) => (door === undefined ? socket.destroy() : door.opened(socket, pid));
}

interface Found {
  proofs: readonly Proof[];
  supervised: Supervised | undefined;
  landlock?: number;
}

/** What holds, before and after it was tried; before, with the newest Landlock. */
function rowsOf(way: Way, ruleset: Ruleset, { built }: Prepared, found: Found): ManifestRow[] {
  const { proofs, supervised, landlock = Infinity } = found;
  return 'asked' in built
    ? bareManifest(ruleset, built, proofs, landlock)
    : manifest(ruleset, built, proofs, way.isObserved ? supervised : undefined, way.broker !== undefined);
}

function prepareSession(
  request: RunRequest,
  out: WayOut,
  door: Door | undefined,
  way: Way,
): ReturnType<typeof prepare> {
  try {
    const said = door === undefined ? request.argv : (request.attachment?.argv ?? request.argv);
    const place = door?.placeIn(way.tier) ?? DOOR;
    const argv = said.map((word) => (word.startsWith(`${DOOR}/`) ? place + word.slice(DOOR.length) : word));
    const variables = {
      ...out.environment,
      ...door?.variablesIn(way.tier),
      ...way.broker?.variables,
      ...(door === undefined ? {} : pathInside(request, place)),
    };
    const shows = [...(door?.showsIn(way.tier) ?? []), ...out.shows, ...(request.shows ?? [])];
    const { listeners, routes, resolvesNames } = out;
    const connects = way.tier === 'T1' && request.ruleset.network.listen.length > 0;
    const own = { argv, connects, listeners, routes, resolvesNames, variables, shows, door: door?.bare };
    const learns = request.learning !== undefined;
    const { tier, userNamespace, isObserved, broker } = way;
    const how = { tier, userNamespace, isObserved, broker: broker?.folder, learns, isRoot: isRoot(), isFront: true };
    return prepare({ ...request, ...own, ...how });
  } catch (error) {
    if (error instanceof PrepareError) throw new CliError(2, error.message, error.hint, 'no-boundary');
    throw error;
  }
}

export function refuseMissing(ruleset: Ruleset, rows: readonly ManifestRow[], by = 'tier T1'): void {
  const [first, ...others] = missing(ruleset, rows);
  if (first === undefined) return;
  const names = [first, ...others].map(({ property }) => property).join(', ');
  const isOwn = ruleset.required.some(({ property, source }) => property === first.property && source.file !== null);
  const mend = isOwn
    ? 'Take it out of "require"'
    : `A profile of your own need not require it (docs/policy.md), --without ${first.property} starts all the same`;
  throw new CliError(
    2,
    `the policy requires what ${by} does not give here: ${names}`,
    `${first.property}: ${first.limit ?? 'nothing makes it hold'}. ${mend}, or run elsewhere.`,
    'missing-property',
  );
}

function failed({ failure }: Ended): CliError {
  if (failure === undefined)
    return new CliError(1, 'the launcher ended before the program was started', undefined, 'no-boundary');
  const { message, hint } = adviceFor(failure);
  // It may name a path, and paths are what somebody chose.
  return new CliError(2, safeLine(message), hint, 'no-boundary');
}

/** Passes signals on while the program runs; the terminal's own are left to it. Returns what undoes that. */
export function passSignals(pass: (name: NodeJS.Signals) => void): () => void {
  const hasTerminal = [0, 1, 2].some((fd) => isatty(fd));
  const handlers = new Map<NodeJS.Signals, () => void>([
    ...PASSED.map((name): [NodeJS.Signals, () => void] => [name, () => pass(name)]),
    ...FROM_TERMINAL.map((name): [NodeJS.Signals, () => void] => [name, () => (hasTerminal ? undefined : pass(name))]),
  ]);
  for (const [name, handler] of handlers) process.on(name, handler);
  return () => {
    for (const [name, handler] of handlers) process.removeListener(name, handler);
  };
}

export function recorded(ruleset: Ruleset, boundary: Boundary): Record<string, unknown> {
  return {
    tier: boundary.tier,
    landlock: boundary.landlock,
    ruleset: rulesetHash(ruleset),
    project: ruleset.project,
    properties: Object.fromEntries(
      boundary.rows.map(({ property, status, provider, proofs, limit }) => [
        property,
        {
          status,
          provider,
          shown: proofs.filter(({ verdict }) => verdict === 'held').map(({ name }) => name),
          ...(limit === undefined ? {} : { limit }),
        },
      ]),
    ),
    shortfalls: boundary.shortfalls.slice(0, 100),
  };
}

/** Ends this process as the program ended, so that a shell sees the same. */
export function endAs({ code, signal }: Ended): never {
  if (signal !== null) {
    const number = constants.signals[signal];
    // Those that would leave a core file of this process end it with the shell's number for them.
    if (['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL', 'SIGPIPE', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'].includes(signal))
      process.kill(process.pid, signal);
    process.exit(128 + number);
  }
  process.exit(code ?? 1);
}
