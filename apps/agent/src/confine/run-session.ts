import { constants } from 'node:os';
import {
  adviceFor,
  findLauncher,
  launch,
  manifest,
  missing,
  prepare,
  PrepareError,
  type Ended,
  type ManifestRow,
} from '@nd7/confine';
import { rulesetHash, type Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { wayOut, type WayOut } from './egress.js';
import { RunRecord } from './record.js';

export interface RunRequest {
  ruleset: Ruleset;
  argv: readonly string[];
  nd7Home: string;
  environment: NodeJS.ProcessEnv;
  cwd: string;
  /** Told once, when the program is about to run. */
  started(boundary: Boundary): void;
}

/** What holds while a session runs. */
export interface Boundary {
  tier: 'T1';
  /** Landlock's ABI. */
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
 * anything is started.
 */
export async function runSession(request: RunRequest): Promise<Ended> {
  const { ruleset } = request;
  const launcher = await findLauncher();
  if ('problem' in launcher) throw new CliError(2, launcher.problem, undefined, 'no-launcher');
  const record = await openRecord(request);
  const isRoot = process.geteuid?.() === 0;
  try {
    const out = wayOut(ruleset, request.environment, async (decision) =>
      record?.note('network', { ...decision }, 'decision:egress'),
    );
    // Where user namespaces are refused, root makes the others without one.
    for (const userNamespace of isRoot ? [true, false] : [true]) {
      const prepared = prepareSession(request, out, userNamespace, isRoot);
      const rows = manifest(ruleset, prepared.built, []);
      refuseMissing(ruleset, rows);
      const session = launch(launcher.path, prepared.plan);
      const release = passSignals(session.signal);
      void session.listeners.then((listeners) => out.serve(listeners));
      try {
        const start = await session.started;
        if (start !== undefined) {
          const boundary: Boundary = {
            tier: 'T1',
            landlock: start.landlock,
            rows: manifest(ruleset, prepared.built, start.proofs),
            shortfalls: prepared.built.shortfalls,
            session: record?.session,
          };
          request.started(boundary);
          await record?.note('enforcement', recorded(ruleset, boundary));
        }
        const ended = await session.ended;
        if (start !== undefined || ended.failure?.step !== 'namespaces' || !userNamespace || !isRoot) {
          if (start === undefined) throw failed(ended);
          await record?.note('session.end', { reason: 'program ended', code: ended.code, signal: ended.signal });
          return ended;
        }
      } finally {
        release();
        out.close();
        for (const listener of (await session.listeners).values()) listener.close();
        prepared.clean();
      }
    }
    throw new CliError(2, 'this system refuses every way to make namespaces', undefined, 'no-boundary');
  } finally {
    await record?.close();
  }
}

async function openRecord({ nd7Home, ruleset }: RunRequest): Promise<RunRecord | undefined> {
  try {
    return await RunRecord.open(nd7Home);
  } catch (error) {
    if (ruleset.recording === 'best-effort') return undefined;
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(
      1,
      `the session cannot be recorded, and the policy requires it: ${reason}`,
      undefined,
      'unrecorded',
    );
  }
}

function prepareSession(
  request: RunRequest,
  out: WayOut,
  userNamespace: boolean,
  isRoot: boolean,
): ReturnType<typeof prepare> {
  try {
    const own = { listeners: out.ports, variables: out.environment };
    return prepare({ ...request, ...own, userNamespace, isRoot, isFront: true });
  } catch (error) {
    if (error instanceof PrepareError) throw new CliError(2, error.message, error.hint, 'no-boundary');
    throw error;
  }
}

function refuseMissing(ruleset: Ruleset, rows: readonly ManifestRow[]): void {
  const [first, ...others] = missing(ruleset, rows);
  if (first === undefined) return;
  const names = [first, ...others].map(({ property }) => property).join(', ');
  throw new CliError(
    2,
    `the policy requires what tier T1 does not give here: ${names}`,
    `${first.property}: ${first.limit ?? 'nothing makes it hold'}. Take it out of "require", or run elsewhere.`,
    'missing-property',
  );
}

function failed({ failure }: Ended): CliError {
  if (failure === undefined)
    return new CliError(1, 'the launcher ended before the program was started', undefined, 'no-boundary');
  const { message, hint } = adviceFor(failure);
  return new CliError(2, message, hint, 'no-boundary');
}

/** Passes signals on while the program runs; the terminal's own are left to it. Returns what undoes that. */
function passSignals(pass: (name: NodeJS.Signals) => void): () => void {
  const hasTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY === true);
  const handlers = new Map<NodeJS.Signals, () => void>([
    ...PASSED.map((name): [NodeJS.Signals, () => void] => [name, () => pass(name)]),
    ...FROM_TERMINAL.map((name): [NodeJS.Signals, () => void] => [name, () => (hasTerminal ? undefined : pass(name))]),
  ]);
  for (const [name, handler] of handlers) process.on(name, handler);
  return () => {
    for (const [name, handler] of handlers) process.removeListener(name, handler);
  };
}

function recorded(ruleset: Ruleset, boundary: Boundary): Record<string, unknown> {
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
