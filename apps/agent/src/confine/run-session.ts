// A session: its record, its door and its grants, and the attempts at it, the strongest first. One attempt is in attempt.ts.
import { adviceFor, findLauncher, type Ended } from '@nd7/confine';
import { reasonOf } from '../cli/full-disk.js';
import { CliError } from '../cli/io.js';
import type { SessionGrants } from '../grants/session-grants.js';
import { safeLine } from '../show/safe.js';
import { acceptAlone, offerAlone, tooWeak } from './alone.js';
import { attempt, isRoot, type Inside, type Way } from './attempt.js';
import { brokered, type Brokered } from './brokered.js';
import { Door } from './door.js';
import { openGrants } from './open-grants.js';
import { openOutside } from './outside-programs.js';
import type { Reach } from './reach.js';
import { RunRecord, unrecorded } from './record.js';
import type { RunRequest } from './session-request.js';

/**
 * Runs a program inside and answers how it ended. Throws `CliError`: 2 where this system cannot give what the policy requires, before
 * anything is started; 1 where the policy requires a record and it cannot be written, of the boundary before the program runs, of its end
 * afterwards.
 */
export async function runSession(request: RunRequest): Promise<Ended> {
  if (process.platform === 'darwin') return (await import('./run-seatbelt.js')).runSeatbelt(request);
  const launcher = await findLauncher();
  if ('problem' in launcher) throw new CliError(2, launcher.problem, undefined, 'no-launcher');
  const record = RunRecord.begin(request.nd7Home, request.ruleset.recording, request.warn);
  let door: Door | undefined;
  let grants: SessionGrants | undefined;
  let reach: Reach | undefined;
  try {
    const outside = await openOutside(request, record);
    reach = outside.reach;
    door = await openDoor(request, record);
    grants = door && (await openGrants(request, record, door, outside));
    const broker =
      door === undefined || request.attachment === undefined
        ? undefined
        : brokered(request.nd7Home, door, request.attachment, request.warn);
    const ended = await attemptTiers(request, launcher.path, { record, door, grants, outside }, broker);
    if (!ended.hasRun) throw refusal(ended, request, launcher.path);
    await grants?.close();
    await door?.close();
    await request.beforeEnd?.(record);
    await record.end(ended);
    // What is left to do adds nothing to what is recorded, and would keep this thread from letting go.
    await request.front?.release(ended);
    await record.close();
    door?.release();
    return ended;
  } catch (error) {
    // What went wrong first is what is told.
    await grants?.close().catch(() => undefined);
    await door?.close().catch(() => undefined);
    await record.close().catch(() => undefined);
    door?.release();
    throw error;
  } finally {
    reach?.close();
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
  const without = (tier: 'T2' | 'T3'): Promise<Ended & { hasRun: boolean }> => {
    const taken = tier === 'T2' ? broker : undefined;
    if (inside.door !== undefined) taken?.place(inside.door.placeIn(tier));
    inside.door?.lay(request.attachment?.files ?? {}, tier, taken !== undefined);
    const way: Way = { tier, userNamespace: false, isObserved: tier === 'T2', broker: taken };
    return attempt(tier === 'T3' ? acceptAlone(request) : request, launcher, inside, way);
  };
  if (tier === 'T3') return without('T3');
  if (tier === 'T2') {
    if (ruleset.weakestTier === 'T1') throw tooWeak(ruleset);
    return without('T2');
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
  if (!ended.hasRun && mayWeaken && REFUSES_T1.includes(ended.failure?.step ?? '')) {
    ended = await without('T2');
    return !ended.hasRun && ended.failure?.step === 'observe' && ruleset.weakestTier === 'T3' ? without('T3') : ended;
  }
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
    if (attachment === undefined) door.hold();
    else door.prepare();
    return door;
  } catch (error) {
    if (ruleset.recording === 'required') throw unrecorded('what hooks inside say', error, nd7Home);
    const why = reasonOf(error, nd7Home);
    request.warn(`hooks inside are not recorded: ${why}`);
    await record.note('alarm', { reason: 'no door', detail: why }, 'that hooks inside are not recorded');
    return undefined;
  }
}

/** Why nothing was started, and what could be. */
function refusal(ended: Ended, { tier = 'auto', ruleset, learning }: RunRequest, launcher: string): CliError {
  const error = failed(ended);
  const isOffered = tier === 'auto' && ruleset.weakestTier === 'T2' && learning === undefined;
  return (isOffered && ended.failure?.step === 'observe' ? offerAlone(launcher, error) : undefined) ?? error;
}

function failed({ failure }: Ended): CliError {
  if (failure === undefined)
    return new CliError(1, 'the launcher ended before the program was started', undefined, 'no-boundary');
  const { message, hint } = adviceFor(failure);
  // It may name a path, and paths are what somebody chose.
  return new CliError(2, safeLine(message), hint, 'no-boundary');
}
