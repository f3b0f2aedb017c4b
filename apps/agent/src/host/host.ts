import { closeSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Home } from '@nd7/journal';
import { makeFolders, nativePath, receiveDescriptors } from '@nd7/kernel';
import type { ExitCode } from '../cli/io.js';
import { endDeadSessions } from '../recorder/doors.js';
import { Chores } from './chores.js';
import { runCommand } from './command.js';
import { FrameError, FrameReader, OLDEST_PROTOCOL, PROTOCOL, refuse, type FrontRequest } from './frames.js';
import type { Channels } from './launcher.js';
import { Place, type Guest } from './place.js';
import { Seat, type Host } from './seat.js';

/** Somebody who works starts another session within minutes. */
const IDLE_MS = 10 * 60_000;
/** So long a second host waits for the first to get somebody: both were started at once. */
const TURN_MS = 5_000;
/** A front has sent its request before it waits. */
const REQUEST_MS = 5_000;
/** Nobody has come by then. */
const QUIET_MS = 20_000;
const ATTEMPTS = 6;
const CHANNELS = 4;
const BUILD = ['../main.js', '../.tsbuildinfo', '../bundle/made-of.json'].map((name) =>
  fileURLToPath(new URL(name, import.meta.url)),
);
const KEEP_CODE = Symbol.for('nd7.keep-code');
/** Node reads these at its start: a front that has others needs a Node of its own. */
const AT_START = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'] as const;

/**
 * Keeps sessions for fronts of this user, one at a time: while it has one, its socket is gone, and the next front starts another host. It ends
 * after ten idle minutes, when another idle one is there, and when nd7 was built anew. Answers with the exit code.
 */
export async function runHost(home: string, { idleMs = IDLE_MS } = {}): Promise<number> {
  const run = join(home, 'run');
  makeFolders(run, 0o700);
  const build = buildOf();
  const mayServe = (): string | undefined => (buildOf() === build ? undefined : 'nd7 was built anew');
  const own = { ...process.env };
  // Loaded before anybody waits for it.
  await Promise.all([import('../confine/run-session.js'), import('../confine/attach-agent.js')]);
  const chores = new Chores();
  // A session that was killed with its host has nobody else, where no other follows.
  const quiet = setTimeout(() => void sweep(home), QUIET_MS).unref();
  for (let place = await Place.take(run, TURN_MS); place !== undefined;) {
    const guest = await place.guest(idleMs, mayServe);
    if (guest === undefined) break;
    clearTimeout(quiet);
    chores.pause();
    let next: Promise<Place | undefined> | undefined;
    // The end of a front is what its shell waits for: the next one finds a host then.
    const follow = (): Promise<Place | undefined> =>
      (next ??= mayServe() === undefined ? nextPlace(run) : Promise.resolve(undefined));
    await serve(guest, own, { opened: async () => void (await follow()), later: (work) => chores.later(work) });
    place = await follow();
    keepCode(chores);
    chores.resume();
  }
  chores.finish();
  await sweep(home);
  return 0;
}

/** Writes the end of sessions that were killed, and takes away what they have left. */
async function sweep(home: string): Promise<void> {
  await endDeadSessions(new Home(home), 'a host had nothing to do').catch(() => undefined);
}

/** Has the code kept that a session runs through, where this start had none: bin/with-code.js. */
function keepCode(chores: Chores): void {
  const named = globalThis as { [KEEP_CODE]?: () => void };
  const keep = named[KEEP_CODE];
  Reflect.deleteProperty(named, KEEP_CODE);
  if (keep !== undefined) chores.later(keep);
}

/** Undefined where another host has it, or the home has gone: what was done for the last front stands all the same. */
async function nextPlace(run: string): Promise<Place | undefined> {
  try {
    const place = await Place.take(run, 0);
    await place?.open();
    return place;
  } catch {
    return undefined;
  }
}

/** Runs what a front asks for, to its end and the front's. */
async function serve({ passing, control }: Guest, own: NodeJS.ProcessEnv, host: Host): Promise<void> {
  const reader = new FrameReader();
  let seat: Seat | undefined;
  const asked = new Promise<FrontRequest>((resolve, reject) => {
    control.on('data', (bytes: Buffer) => {
      try {
        for (const frame of reader.push(bytes))
          if (seat !== undefined) seat.take(frame);
          else if (frame.kind === 'request') resolve(frame);
          else throw new FrameError('no request');
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        reject(error);
        if (seat !== undefined) control.destroy();
      }
    });
    control.once('close', () => {
      reject(new FrameError('the front has gone'));
      seat?.lost();
    });
    setTimeout(() => reject(new FrameError('nothing was asked')), REQUEST_MS).unref();
  });
  control.resume();
  try {
    const request = await asked;
    const whyNot = whyNotServe(request, own);
    if (whyNot !== undefined) throw new FrameError(whyNot);
    const sitting = new Seat(control, request, channelsFrom(passing), host);
    seat = sitting;
    const launcher = nativePath('nd7-launch');
    if (existsSync(launcher)) sitting.prepare(launcher);
    const exit = await asAsked(request, own, () => runCommand(sitting, request.argv));
    await sitting.leave(exit);
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    await host.opened();
    control.end(refuse(error.message));
  } finally {
    passing.destroy();
  }
}

function whyNotServe({ protocol, environment }: FrontRequest, own: NodeJS.ProcessEnv): string | undefined {
  if (protocol < OLDEST_PROTOCOL || protocol > PROTOCOL) return `its protocol is ${protocol}`;
  const differs = AT_START.find((name) => environment[name] !== own[name]);
  return differs === undefined ? undefined : `${differs} is another`;
}

/** The open files that a front has sent before it asked. Throws FrameError. */
function channelsFrom(passing: Guest['passing']): Channels[] {
  const { fd = -1 } = (passing as unknown as { _handle?: { fd?: number } })._handle ?? {};
  const received = receiveDescriptors(fd);
  const descriptors = received?.descriptors ?? [];
  if (descriptors.length !== ATTEMPTS * CHANNELS) {
    for (const one of descriptors) closeSync(one);
    throw new FrameError('other channels than are needed');
  }
  return Array.from(
    { length: ATTEMPTS },
    (_, i) => descriptors.slice(CHANNELS * i, CHANNELS * (i + 1)) as unknown as Channels,
  );
}

/** This process is for the while where the front is: its environment, folder and umask. */
async function asAsked(
  request: FrontRequest,
  own: NodeJS.ProcessEnv,
  work: () => Promise<ExitCode>,
): Promise<ExitCode> {
  try {
    process.chdir(request.cwd);
  } catch {
    throw new FrameError('its folder cannot be entered');
  }
  setEnvironment(request.environment);
  const umask = process.umask(request.umask);
  try {
    return await work();
  } finally {
    process.umask(umask);
    setEnvironment(own);
    process.chdir('/');
  }
}

function setEnvironment(environment: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env))
    if (environment[name] === undefined) Reflect.deleteProperty(process.env, name);
  Object.assign(process.env, environment);
}

/** Changes when nd7 is built: a host of the old one keeps no more sessions. */
function buildOf(): string {
  return BUILD.map((path) => statSync(path, { throwIfNoEntry: false }))
    .map((found) => `${found?.ino ?? 0} ${found?.mtimeMs ?? 0} ${found?.size ?? 0}`)
    .join();
}
