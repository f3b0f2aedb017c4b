// A session in a box of somebody else's: the same record, hooks and proxy, and no word of nd7's about what the box holds.
import { accessSync, constants, realpathSync, rmdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { layOut, recordLeaves, type Ended, type ManifestRow } from '@nd7/confine';
import { environmentInside, PROPERTIES, type NetworkRules, type Property } from '@nd7/policy';
import { reasonOf } from '../cli/full-disk.js';
import { CliError } from '../cli/io.js';
import type { Client } from '../recorder/peer.js';
import { recorded, refuseMissing, type Boundary } from './boundary.js';
import { inBox } from '../grants/extent.js';
import type { SessionGrants } from '../grants/session-grants.js';
import { runBwrap } from './run-bwrap.js';
import { runContainer, type Inside } from './box-container.js';
import { programOf, type EngineKind } from './box-engine.js';
import { Ways } from './box-ways.js';
import { Callers, type Caller } from './callers.js';
import { DOOR, Door } from './door.js';
import { listenersOf, wayOut, type WayOut } from './egress.js';
import { RefusedHosts } from './hosts.js';
import { tellLate } from './late-leaves.js';
import { keepNames } from './left-names.js';
import { openGrants } from './open-grants.js';
import { openOutside, type OutsidePrograms } from './outside-programs.js';
import { RunRecord } from './record.js';
import type { RunRequest } from './session-request.js';
import { Traffic } from './traffic.js';

/** Which box, and a person's own arguments for it: for bubblewrap in place of the view that nd7 makes of the policy, for an engine besides. */
export type Box =
  | { kind: 'bwrap'; args: readonly string[] | undefined }
  | { kind: EngineKind; image: string; args: readonly string[] | undefined };

/** On the box's own loopback, where nothing else listens at the start. */
const FIRST_PORT = 3128;
const LIMIT = 'not shown by nd7’s self-test: what the box holds is its own word';

/** Runs a program in a box and answers how it ended. Throws `CliError` as `runSession` does, and 2 where the box's program is not there. */
export async function runInBox(request: RunRequest, box: Box): Promise<Ended> {
  const program = findProgram(box.kind === 'bwrap' ? 'bwrap' : programOf(box.kind), request.environment['PATH'] ?? '');
  const { ruleset: said, warn } = request;
  const required = said.required.filter(({ source }) => source.file !== null);
  const ruleset = { ...said, required };
  const rows = rowsOf(box);
  refuseMissing(ruleset, rows, `a box of ${box.kind}`);
  warn(
    `the box is ${box.kind}’s: nd7 records and is the way out, and says nothing of what the box holds (docs/limits.md)`,
  );
  const record = await RunRecord.open(request.nd7Home, ruleset.recording, warn);
  let door: Door | undefined;
  let ways: Ways | undefined;
  let outside: OutsidePrograms | undefined;
  let out: WayOut | undefined;
  let grants: SessionGrants | undefined;
  const made: string[] = [];
  try {
    outside = await openOutside(request, record);
    // What is run first, outside, is none that a session can have laid there.
    if (outside.reach.isOpen(program))
      throw new CliError(
        2,
        `${program} lies where a session may write: it could be anything`,
        'Install it in a folder of the system’s.',
        'open-box',
      );
    door = await openDoor(request, record);
    if (request.attachment !== undefined) door.prepare();
    const first = door.layBox();
    if (first === undefined)
      throw new CliError(
        2,
        'the shim could not be laid beside the door: no box has a way out without it',
        'nd7 doctor says why.',
        'no-shim',
      );
    grants = await openGrants(request, record, door, outside);
    const refused = new RefusedHosts();
    const ports = Array.from({ length: listenersOf(ruleset) }, (_, i) => FIRST_PORT + i);
    const traffic = new Traffic((kind, data) =>
      record.traffic(kind, data).catch((error: Error) => warn(error.message)),
    );
    const callers = new Callers({ isTold: false, calls: grants?.calls });
    out = wayOut({
      ...{
        ruleset,
        nd7Home: request.nd7Home,
        environment: request.environment,
        outside,
        own: ports,
        servesLoopback: true,
      },
      rules: (asker): NetworkRules => grants?.networkFor(asker as Caller | undefined) ?? ruleset.network,
      record: (decision, isRepeated) => {
        refused.add(decision);
        grants?.answered(decision);
        return record.answer(decision, isRepeated);
      },
      ended: (connection) => traffic.ended(connection),
      // Nobody makes the connections of a box for it: there are the hooks.
      askerOf: (ends) => callers.askerOf(ends),
    });
    grants?.reach(out);
    ways = await Ways.open(
      door.path,
      out.listeners.map(({ port }) => port),
    );
    out.serve(ways.served);
    made.push(...layOut(ruleset, request.environment['PATH'] ?? ''));
    const leaves = recordLeaves(ruleset);
    const by = `a box of ${box.kind}`;
    const compared = keepNames(request.nd7Home, record.id, { ruleset, before: leaves, by });
    const boundary: Boundary = { tier: box.kind, landlock: 0, rows, shortfalls: [], session: record.session };
    await record.note(
      'enforcement',
      {
        ...recorded(ruleset, boundary),
        box: { program, args: box.args ?? null, ...('image' in box ? { image: box.image } : {}) },
      },
      'what holds',
    );
    const shows = [...door.showsIn('T1'), ...out.shows];
    const variables: Record<string, string> & { PATH?: string } = {
      ...environmentInside(ruleset.environment, request.environment),
      ...out.environment,
      ...door.variablesIn('T1'),
    };
    // What asks is found by its name, where the search path is not an image's own.
    if (variables.PATH !== undefined) variables.PATH += `:${DOOR}`;
    const argv = request.attachment?.argv ?? request.argv;
    const [atDoor, atWays, widened] = [door, ways, grants];
    const admit = (one: Client): void => {
      atDoor.admit(one.pid);
      atWays.admit(one);
      widened?.admit(one.pid, undefined, inBox(box.kind, DOOR));
    };
    request.started(boundary);
    const inside: Inside = { request, ruleset, door, words: ways.words, first, shows, variables, argv, admit };
    const ended =
      box.kind === 'bwrap' ? await runBwrap(program, box, inside) : await runContainer(program, box, inside);
    await out.finish();
    await traffic.flush();
    out.close();
    await tellLate(ruleset, leaves, (...entry) => record.note(...entry), warn, { by });
    compared();
    request.decided(refused.tallies, grants?.made ?? []);
    await grants?.close();
    await door.close();
    await record.end(ended);
    await record.close();
    return ended;
  } catch (error) {
    await grants?.close().catch(() => undefined);
    await door?.close().catch(() => undefined);
    await record.close().catch(() => undefined);
    throw error;
  } finally {
    // What still listens would keep nd7 from ending.
    out?.close();
    ways?.close();
    outside?.reach.close();
    if (door?.hasOthers === false) made.toReversed().forEach(removeIfEmpty);
    door?.release();
  }
}

function rowsOf({ kind }: Box): ManifestRow[] {
  return (Object.keys(PROPERTIES) as Property[]).map((property) => ({
    property,
    status: 'none',
    provider: kind,
    proofs: [],
    limit: LIMIT,
  }));
}

function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Something lies in it now, or somebody has taken it away.
  }
}

function findProgram(name: string, path: string): string {
  for (const folder of path.split(delimiter).filter((one) => one.startsWith('/'))) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return realpathSync(join(folder, name));
    } catch {
      // The next one.
    }
  }
  throw new CliError(
    2,
    `${name} is not there`,
    `Install ${name === 'bwrap' ? 'bubblewrap' : name}, or leave --in out: nd7 run makes a boundary of its own.`,
    'no-box',
  );
}

/** A box has its way out through the door's folder, whatever the policy says of recording. Throws `CliError` where there can be none. */
async function openDoor({ nd7Home, ruleset, attachment }: RunRequest, record: RunRecord): Promise<Door> {
  try {
    return await Door.open(nd7Home, record, ruleset.recording, attachment);
  } catch (error) {
    throw new CliError(
      1,
      `the box can have no door, and no way out: ${reasonOf(error, nd7Home)}`,
      `Its sockets lie in a folder in ${nd7Home}: mend that, or set ND7_HOME to another.`,
      'no-door',
    );
  }
}
