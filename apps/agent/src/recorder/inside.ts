import { readFileSync } from 'node:fs';
import { processFacts, type Peer, type ProcessFacts } from '@nd7/kernel';
import { clientAlive, isBelow } from './peer.js';
import type { Client, Speaker } from './peer.js';
import { holdsDoor } from './doors.js';
import type { RecorderConfig } from './config.js';
import type { Request } from './frames.js';

/** The operation by which the front of a confined session hands a hook's payload on. */
export const HOOK_INSIDE = 'hook-inside';
/** The operation by which it has the recorder notice its end: the answer never comes, the connection breaks. */
export const HOLD_DOOR = 'hold-door';

/** A hook that spoke through the door of a confined session. */
export interface Inside {
  /** Chain of `nd7 run`. */
  run: string;
  /** How far that chain was when the hook spoke. */
  entries: number;
  head: string;
  /** The process that spoke, as it is called outside. */
  pid: number;
  /** The session's first process outside: all that is inside stands below it, and nothing else. */
  first: Client;
  /** What the session's policy says of what cannot be recorded. */
  recording: RecorderConfig['recording'];
  /** Whether the session was started with settings that go before those of person and project: "disableAllHooks" in these does not hold. */
  isAttached: boolean;
}

/** Where a chain was joined by a confined session, for the chain of `nd7 run`. */
export interface Joined {
  session: string;
  agent: string;
  entries: number;
  head: string;
}

/** As the front writes it beside the meta of a hook, and `insideOf` reads it. */
export function insideMeta({ run, entries, head, pid, first, recording, isAttached }: Inside): Record<string, string> {
  return {
    'inside.run': run,
    'inside.entries': String(entries),
    'inside.head': head,
    'inside.pid': String(pid),
    'inside.first': String(first.pid),
    'inside.recording': recording,
    'inside.attached': isAttached ? 'yes' : 'no',
  };
}

/**
 * What a front says of a hook, held against the kernel: the session's first process is a child of the front that speaks, or whoever speaks
 * keeps the door of that session for a front that is another process (a session host), and who spoke inside stands below it. Throws where that
 * is not so.
 */
export function insideOf({ meta }: Request, front: Peer, home: string): Inside {
  const text = (name: string): string => meta.get(`inside.${name}`) ?? '';
  const [pid, firstPid] = [Number(text('pid')), Number(text('first'))];
  const first = processFacts(firstPid);
  const isFronts = first?.parent === front.pid || holdsDoor(home, text('run'), front.pid);
  if (first === undefined || !isFronts)
    throw new Error(`process ${firstPid} is not the first of a session of process ${front.pid}`);
  if (!isRunChain(text('run'))) throw new Error('no chain of nd7 run is named');
  const inside: Inside = {
    run: text('run'),
    entries: Number(text('entries')) || 0,
    head: text('head'),
    pid,
    first: { pid: first.pid, start: first.start },
    recording: text('recording') === 'best-effort' ? 'best-effort' : 'required',
    isAttached: text('attached') === 'yes',
  };
  if (lineage(pid, inside.first) === undefined)
    throw new Error(`process ${pid} is not inside the session of process ${firstPid}`);
  return inside;
}

/** More processes than one stands below another. */
const MAX_ABOVE = 256;

/**
 * A process and those above it up to the session's first, undefined where it does not stand below that. A parent that began after its child is
 * another process by the same number; a pid of 0 is somebody who cannot be seen from here.
 */
export function lineage(pid: number, first: Client): ProcessFacts[] | undefined {
  const line: ProcessFacts[] = [];
  for (let at = processFacts(pid); at !== undefined && line.length < MAX_ABOVE; at = processFacts(at.parent)) {
    const below = line.at(-1);
    if (below !== undefined && Number(at.start) > Number(below.start)) return undefined;
    line.push(at);
    if (at.pid === first.pid) return at.start === first.start && line.length > 1 ? line : undefined;
  }
  return undefined;
}

/** Who spoke inside. `claimed` is the client's pid as it is called in there. */
export function speakerInside(
  { run, pid, first }: Inside,
  uid: number | undefined,
  claimed: string | undefined,
): Speaker {
  const [self, ...above] = (lineage(pid, first) ?? []).slice(0, -1);
  const named = claimed === undefined ? undefined : above.find((one) => pidInside(one.pid) === claimed);
  const found = named ?? above[0];
  const client = found === undefined ? undefined : { pid: found.pid, start: found.start };
  const peer = {
    pid,
    ...(self === undefined ? {} : { start: self.start }),
    ...(uid === undefined ? {} : { uid }),
    ...(client === undefined ? {} : { client }),
    run,
  };
  return { peer, client, isNamed: named !== undefined };
}

/** What a process is called in the innermost pid namespace that it is in (proc(5), NSpid). */
function pidInside(pid: number): string | undefined {
  try {
    return /^NSpid:.*\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  } catch {
    return undefined;
  }
}

const RUN_CHAIN = /^run-[0-9a-f]{16}$/;

/** Whether a chain is one of `nd7 run` itself: no hook speaks there. */
function isRunChain(session: string): boolean {
  return RUN_CHAIN.test(session);
}

/**
 * Whether a hook from inside may go on with the session that it names: not with one of nd7's own, nor with one whose client lives and stands
 * outside. `client` is that of the session as it is open, undefined where it is not.
 */
export function mayName(session: string, { first }: Inside, client: Client | undefined): boolean {
  if (isRunChain(session)) return false;
  return client === undefined || !clientAlive(client) || isBelow(client.pid, first);
}

/** The rules for a hook from inside: a confined session's policy makes the recorder's only stricter. */
export function configFor(config: RecorderConfig, from: Inside | undefined): RecorderConfig {
  return from?.recording === 'required' ? { ...config, recording: 'required' } : config;
}
