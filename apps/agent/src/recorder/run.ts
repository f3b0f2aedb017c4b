import { appendFileSync, closeSync, ftruncateSync, openSync, readFileSync, statSync, watch, writeSync } from 'node:fs';
import { join } from 'node:path';
import { machineKey, openHome } from '@nd7/journal';
import { tryLock } from '@nd7/kernel';
import { systemClock, systemRandom } from '@nd7/signing';
import { VERSION } from '../cli/version.js';
import { socketOf } from './client.js';
import { HOLD_DOOR } from './inside.js';
import { Recorder } from './recorder.js';
import { Rest } from './rest.js';
import { listen } from './server.js';
import { ConfigReader } from './settings.js';

/** The log a recorder writes about itself; nothing of a payload stands in it. */
const LOG_LIMIT = 1_000_000;

/**
 * Runs the recorder of a home until it is told to stop: SIGTERM, SIGINT, `stop` over the socket, or its socket being removed (its home
 * was deleted). Resolves with true when it served, with false when another recorder of this home is there already; `heartbeatMs` is for tests
 * that cannot wait for the minute of libs/ship. Rejects with
 * JournalError when the home cannot be used.
 */
export async function runRecorder(root: string, { heartbeatMs }: { heartbeatMs?: number } = {}): Promise<boolean> {
  const home = openHome(root);
  const lock = openSync(join(home.run, 'recorder.lock'), 'a+', 0o600);
  if (!tryLock(lock)) {
    closeSync(lock);
    return false;
  }
  ftruncateSync(lock, 0);
  writeSync(lock, `${process.pid}\n`);
  const warn = warner(join(home.run, 'recorder.log'));
  const stopped = new Stop();
  const config = new ConfigReader(home.root);
  config.get();
  const machine = machineKey(home);
  const recorder = new Recorder({
    home,
    clock: systemClock,
    random: systemRandom,
    machine,
    config: () => config.get(),
    version: VERSION,
    warn,
  });
  // What an earlier recorder left is taken up before anything new: entries keep their order.
  await recorder.recover();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stopped.now());
  const rest = new Rest();
  // Shipping brings a vault's client and a compressor with it: only an enrolled machine loads them, also one enrolled while this runs.
  let enrolment: string | undefined;
  const shipping = async (): Promise<void> => {
    const now = textOf(home.vaultFile);
    if (now === enrolment) return;
    enrolment = now;
    if (now === undefined) return recorder.ship(undefined);
    const { shipLoop } = await import('./ship-wiring.js');
    // What is sent after the last hook is work too, and so is the heartbeat that announces rest.
    const onWork = (): void => rest.touch();
    const parts = { home, machine, clock: systemClock, random: systemRandom, host: recorder, warn, onWork };
    recorder.ship(shipLoop({ ...parts, ...(heartbeatMs !== undefined && { heartbeatMs }) }));
  };
  let turn = Promise.resolve();
  const ships = (): Promise<void> => {
    turn = turn.then(shipping).catch((error: unknown) => warn(`shipping is off: ${String(error)}`));
    recorder.shipSoon(turn);
    return turn;
  };
  const server = await listen(socketOf(home.root), async (request, peer, gone) => {
    rest.touch();
    if (request.op === HOLD_DOOR) {
      await Promise.race([gone.then(() => recorder.frontGone(request.meta.get('inside.run') ?? '')), stopped.wait]);
      return { exit: 0, stdout: '', stderr: '' };
    }
    if (request.op === 'stop') {
      await recorder.askedToStop(peer);
      setImmediate(() => stopped.now(request.meta.get('reason') === 'uninstalled' ? 'uninstalled' : 'stopped'));
      return { exit: 0, stdout: `${JSON.stringify({ stopping: true, pid: process.pid })}\n`, stderr: '' };
    }
    if (request.op === 'ship') await ships(); // enrolled a moment ago, perhaps
    return recorder.answer(request, peer);
  });
  void ships();
  const unwatch = [
    whenSocketGoes(home.run, () => stopped.now()),
    whenChanged(home.root, 'vault.json', () => void ships()),
    // A shim that got no answer in time has left a marker.
    whenChanged(home.run, 'missed', () => void recorder.tellMissed()),
  ];
  rest.touch();
  const why = await stopped.wait;
  rest.stop();
  for (const end of unwatch) end();
  await server.close();
  await recorder.stop(why);
  closeSync(lock);
  return true;
}

class Stop {
  now: (why?: StopReason) => void = () => undefined;
  readonly wait = new Promise<StopReason>((resolve) => (this.now = (why = 'stopped') => resolve(why)));
}
type StopReason = 'stopped' | 'uninstalled';

/** A recorder whose socket was removed serves nobody and would stay for ever: a throw-away home must not leave one behind. */
function whenSocketGoes(run: string, gone: () => void): () => void {
  const path = join(run, socketOf('').name);
  const inode = inodeOf(path);
  const look = (): void => {
    if (inode === undefined || inodeOf(path) !== inode) gone();
  };
  // It may have gone before anybody watched, its folder with it.
  setImmediate(look);
  try {
    const watcher = watch(run, { persistent: false }, look);
    watcher.on('error', gone);
    return () => watcher.close();
  } catch {
    return () => undefined; // no watches left on this machine: it then stays until it is stopped
  }
}

/** Calls `changed` when a file of a folder was written, made or removed; without a watch (none left on this machine) never. */
function whenChanged(folder: string, name: string, changed: () => void): () => void {
  try {
    const watcher = watch(folder, { persistent: false }, (_event, file) => {
      if (file === name) changed();
    });
    watcher.on('error', () => watcher.close());
    return () => watcher.close();
  } catch {
    return () => undefined;
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function inodeOf(path: string): number | undefined {
  try {
    return statSync(path).ino;
  } catch {
    return undefined;
  }
}

function warner(path: string): (line: string) => void {
  return (line) => {
    try {
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (size < LOG_LIMIT) appendFileSync(path, `${new Date().toISOString()} ${line}\n`, { mode: 0o600 });
    } catch {
      // A full disk is told by the gap entries.
    }
  };
}
