// A session in a box of somebody else's: the same record, hooks and proxy, and no word of nd7's about what the box holds.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, Server } from 'node:net';
import { accessSync, chmodSync, constants, realpathSync, rmdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { layOut, recordLeaves, type Ended, type ManifestRow } from '@nd7/confine';
import { peerOfSocket, processFacts, socketAddress } from '@nd7/kernel';
import { environmentInside, PROPERTIES, type Property } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { lineage } from '../recorder/inside.js';
import type { Client } from '../recorder/peer.js';
import { recorded, refuseMissing, type Boundary } from './boundary.js';
import { bwrapArguments } from './box-bwrap.js';
import { Door, DOOR } from './door.js';
import { listenersOf, wayOut } from './egress.js';
import { RefusedHosts } from './hosts.js';
import { tellLate } from './late-leaves.js';
import { openOutside } from './outside-programs.js';
import { RunRecord } from './record.js';
import type { RunRequest } from './session-request.js';
import { passSignals } from './signals.js';

/** Which box, and a person's own arguments for it. */
export interface Box {
  kind: 'bwrap';
  /** Undefined: nd7 makes the view of the policy. */
  args: readonly string[] | undefined;
}

/** On the box's own loopback, where nothing else listens at the start. */
const FIRST_PORT = 3128;
const LIMIT = 'not shown by nd7’s self-test: what the box holds is its own word';

/** Runs a program in a box and answers how it ended. Throws `CliError` as `runSession` does, and 2 where the box's program is not there. */
export async function runInBox(request: RunRequest, box: Box): Promise<Ended> {
  const program = findProgram(box.kind, request.environment['PATH'] ?? '');
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
  const made: string[] = [];
  try {
    const outside = await openOutside(request, record);
    // What is run first, outside, is none that a session can have laid there.
    if (outside.reach.isOpen(program))
      throw new CliError(
        2,
        `${program} lies where a session may write: it could be anything`,
        'Install it in a folder of the system’s.',
        'open-box',
      );
    door = await Door.open(request.nd7Home, record, ruleset.recording, request.attachment);
    if (request.attachment !== undefined) door.prepare();
    const first = door.layBox();
    if (first === undefined)
      throw new CliError(
        2,
        'the shim could not be laid beside the door: no box has a way out without it',
        'nd7 doctor says why.',
        'no-shim',
      );
    const refused = new RefusedHosts();
    const ports = Array.from({ length: listenersOf(ruleset) }, (_, i) => FIRST_PORT + i);
    const out = wayOut({
      ...{
        ruleset,
        nd7Home: request.nd7Home,
        environment: request.environment,
        outside,
        own: ports,
        servesLoopback: true,
      },
      record: (decision, isRepeated) => {
        refused.add(decision);
        return record.answer(decision, isRepeated);
      },
    });
    ways = await Ways.open(
      door.path,
      out.listeners.map(({ port }) => port),
    );
    out.serve(ways.served);
    made.push(...layOut(ruleset, request.environment['PATH'] ?? ''));
    const leaves = recordLeaves(ruleset);
    const boundary: Boundary = { tier: box.kind, landlock: 0, rows, shortfalls: [], session: record.session };
    await record.note(
      'enforcement',
      { ...recorded(ruleset, boundary), box: { program, args: box.args ?? null } },
      'what holds',
    );
    const argv = [first, ...ways.words, '--', ...(request.attachment?.argv ?? request.argv)];
    const shows = [...door.showsIn('T1'), ...out.shows];
    const { nd7Home, cwd } = request;
    const args = bwrapArguments({ ruleset, nd7Home, shows, cwd, given: box.args, argv });
    request.started(boundary);
    const ended = await run(
      program,
      args,
      { ...environmentInside(ruleset.environment, request.environment), ...out.environment, ...door.variablesIn('T1') },
      (pid) => {
        door?.admit(pid);
        ways?.admit(pid);
      },
    );
    out.close();
    await tellLate(ruleset, leaves, (...entry) => record.note(...entry), warn, `a box of ${box.kind}`);
    request.decided(refused.tallies, []);
    outside.reach.close();
    await door.close();
    await record.end(ended);
    await record.close();
    return ended;
  } catch (error) {
    await door?.close().catch(() => undefined);
    await record.close().catch(() => undefined);
    throw error;
  } finally {
    ways?.close();
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

async function run(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
  started: (pid: number) => void,
): Promise<Ended> {
  const child = spawn(program, args, { stdio: 'inherit', env });
  const failure = once(child, 'error').then(([error]) => error as Error);
  if (child.pid === undefined)
    throw new CliError(2, `${program} could not be started: ${(await failure).message}`, undefined, 'no-box');
  started(child.pid);
  const release = passSignals((name) => void child.kill(name));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  release();
  return { code, signal, failure: undefined };
}

/** Sockets in the door's folder that stand for ports of the box's loopback, and hear who stands below the box's first process. */
class Ways {
  readonly served: Server[] = [];
  /** As `nd7-box` is told of them. */
  readonly words: string[] = [];
  readonly #listening: Server[] = [];
  readonly #addresses: { close(): void }[] = [];
  #first: Client | undefined;

  static async open(folder: string, ports: readonly number[]): Promise<Ways> {
    const ways = new Ways();
    for (const port of ports) await ways.#listen(folder, port);
    return ways;
  }

  admit(pid: number): void {
    const facts = processFacts(pid);
    this.#first = facts && { pid: facts.pid, start: facts.start };
  }

  close(): void {
    for (const server of this.#listening) server.close();
    for (const address of this.#addresses) address.close();
  }

  async #listen(folder: string, port: number): Promise<void> {
    const name = `way-${port}`;
    const inner = new Server();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const { pid, uid } = peerOfSocket(socket);
      const isInside = this.#first !== undefined && lineage(pid, this.#first) !== undefined;
      if (uid !== process.geteuid?.() || !isInside) socket.destroy();
      else inner.emit('connection', socket);
    });
    const address = socketAddress(folder, name);
    server.listen({ path: address.path, backlog: 511 });
    await once(server, 'listening');
    chmodSync(join(folder, name), 0o600);
    this.#listening.push(server);
    this.#addresses.push(address);
    this.served.push(inner);
    this.words.push(`${port}=${DOOR}/${name}`);
  }
}
