// A session on macOS: Seatbelt in place of mounts, namespaces and the supervisor. docs/limits.md says that nobody has run it there, and what it lacks.
import { randomBytes } from 'node:crypto';
import { accessSync, closeSync, constants, openSync, unlinkSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import {
  launchSeatbelt,
  prepareSeatbelt,
  PrepareError,
  proofsOf,
  seatbeltManifest,
  type Ended,
  type SeatbeltPlan,
  type Tried,
} from '@nd7/confine';
import { Egress } from '@nd7/egress';
import { CliError } from '../cli/io.js';
import { recorded, refuseMissing, type Boundary } from './boundary.js';
import { proxyVariables } from './egress.js';
import { RefusedHosts } from './hosts.js';
import { RunRecord } from './record.js';
import type { RunRequest } from './session-request.js';
import { removeSessionTmp } from './session-tmp.js';
import { passSignals } from './signals.js';

const BY = 'Seatbelt';

/** As `runSession`. `library`: what has Seatbelt's functions, where it is not the system's. */
export async function runSeatbelt(request: RunRequest, library?: string): Promise<Ended> {
  const { ruleset } = request;
  if (request.learning !== undefined)
    throw new CliError(2, 'nd7 learn needs the supervisor of Linux', 'Learn there, and copy the profile.');
  if (ruleset.network.credentials.length > 0)
    throw new CliError(
      2,
      'credentials held outside are not there on macOS: every program of this user could use them',
      'Take them out of your policy.',
    );
  const hasTerminal = [0, 1, 2].some((fd) => isatty(request.stdio?.[fd] ?? fd));
  const isRoot = process.geteuid?.() === 0;
  refuseMissing(ruleset, seatbeltManifest(ruleset, [], hasTerminal, isRoot), BY);
  const record = await RunRecord.open(request.nd7Home, ruleset.recording, request.warn);
  try {
    if (request.attachment !== undefined) await withoutHooks(request, record);
    const ended = await attempt(request, record, { hasTerminal, isRoot, library });
    await request.beforeEnd?.(record);
    await record.end(ended);
    return ended;
  } finally {
    await record.close();
    removeSessionTmp(ruleset.tmp);
  }
}

/** There is no door on macOS: an agent's hooks reach no recorder from inside. */
async function withoutHooks(request: RunRequest, record: RunRecord): Promise<void> {
  if (request.ruleset.recording === 'required')
    throw new CliError(
      1,
      'hooks inside cannot be recorded on macOS, and the policy requires it',
      'Say "recording": "best-effort" in your policy.',
      'unrecorded',
    );
  request.warn('hooks inside are not recorded on macOS');
  await record.note('alarm', { reason: 'no door', detail: 'macOS' }, 'that hooks inside are not recorded');
}

interface Here {
  hasTerminal: boolean;
  isRoot: boolean;
  library: string | undefined;
}

async function attempt(request: RunRequest, record: RunRecord, here: Here): Promise<Ended> {
  const { ruleset } = request;
  const refused = new RefusedHosts();
  const token = randomBytes(24).toString('hex');
  const egress = new Egress({
    rules: () => ruleset.network,
    // Every program of this machine could ask the proxy: those inside know its token.
    token,
    record: (decision, isRepeated) => {
      refused.add(decision);
      return record.answer(decision, isRepeated);
    },
  });
  const isOpen = ruleset.network.hosts.some(({ allow }) => allow) || ruleset.network.loopback.length > 0;
  const [proxy, other] = await Promise.all([listening(), listening()]);
  if (isOpen) egress.serve(proxy);
  other.on('connection', (socket) => socket.destroy());
  const clean = [() => egress.close(), () => proxy.close(), () => other.close()];
  try {
    const port = portOf(proxy);
    const prepared = prepare(request, here, isOpen ? port : undefined, portOf(other), token);
    clean.push(prepared.clean);
    const session = launchSeatbelt(prepared.plan, request.stdio);
    const release = passSignals((name) => void session.process.kill(name));
    clean.push(release);
    const inside = await session.tried;
    if (inside === undefined) throw failed(await session.ended);
    const proofs = proofsOf(inside, await triedOutside(prepared.plan.selfTest));
    const rows = seatbeltManifest(ruleset, proofs, here.hasTerminal, here.isRoot);
    const holes = proofs.filter(({ verdict }) => verdict === 'broken').map(({ name }) => name);
    if (holes.length > 0) {
      session.refuse();
      throw new CliError(
        2,
        `the profile does not hold here: ${holes.join(', ')}`,
        'Nothing was started. Tell us the version of macOS.',
        'no-boundary',
      );
    }
    const shortfalls = prepared.unseen.map((path) => ({ path, what: 'not searched' }));
    const boundary: Boundary = { tier: 'seatbelt', landlock: 0, rows, shortfalls, session: record.session };
    await record.note('enforcement', recorded(ruleset, boundary), 'what holds');
    request.started(boundary);
    session.go();
    const ended = await session.ended;
    request.decided(refused.tallies, []);
    return ended;
  } finally {
    for (const undo of clean) undo();
  }
}

function prepare(
  request: RunRequest,
  here: Here,
  proxyPort: number | undefined,
  otherPort: number,
  token: string,
): ReturnType<typeof prepareSeatbelt> {
  try {
    return prepareSeatbelt({
      ...request,
      variables: proxyPort === undefined ? {} : proxyVariables(`nd7:${token}@127.0.0.1:${proxyPort}`),
      proxyPort,
      otherPort,
      terminal: here.hasTerminal ? '/dev/tty' : undefined,
      ...(here.library === undefined ? {} : { library: here.library }),
    });
  } catch (error) {
    if (error instanceof PrepareError) throw new CliError(2, error.message, error.hint, 'no-boundary');
    throw error;
  }
}

async function listening(): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  return server;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** The same attempts by this process, which is not confined. */
async function triedOutside({ canary, outside, port, front }: SeatbeltPlan['selfTest']): Promise<Tried> {
  const refusal = (attempt: () => void): string | null => {
    try {
      attempt();
      return null;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'error';
    }
  };
  const planted = join(outside, `.nd7~self-test-${process.pid}`);
  return {
    'read-hidden': refusal(() => accessSync(canary, constants.R_OK)),
    'write-outside': refusal(() => {
      closeSync(openSync(planted, 'wx'));
      unlinkSync(planted);
    }),
    tcp: await new Promise((done) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy();
        done(null);
      });
      socket.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? 'error'));
    }),
    signal: refusal(() => process.kill(front, 0)),
  };
}

function failed({ failure }: Ended): CliError {
  return new CliError(
    2,
    `Seatbelt was not applied: ${failure?.what ?? 'the process ended before'}`,
    'Nothing was started.',
    'no-boundary',
  );
}
