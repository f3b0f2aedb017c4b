import { readFileSync } from 'node:fs';
import { isAlive, processFacts } from '@nd7/kernel';

/** The process that spoke and the agent's client above it; a pid means something only together with its start. */
export interface Speaker {
  /** Goes into the entry as `peer`. */
  peer: Record<string, unknown>;
  /** The client process whose end is the session's end; undefined when it cannot be seen from here. */
  client: Client | undefined;
  /** Whether the hook's environment named that very process, so that it is the client and nothing that wraps it. */
  isNamed: boolean;
}

/** An agent's process; its pid means something only together with its start. */
export interface Client {
  pid: number;
  start: string;
}

/** A hook is at most this many processes below its client (client → shell → hook, with room for wrappers). */
const MAX_HOPS = 8;

/**
 * Finds out who speaks. `pid` and `uid` are what the kernel says of the socket's other end (of a fall-back hook: of itself);
 * `claimed` is the client's pid as the hook's environment has it, believed only if that process really is an ancestor.
 */
export function speaker(pid: number, uid: number | undefined, claimed: string | undefined): Speaker {
  const self = processFacts(pid);
  const peer: Record<string, unknown> = {
    pid,
    ...(self === undefined ? {} : { start: self.start }),
    ...(uid === undefined ? {} : { uid }),
  };
  const client = self === undefined ? undefined : clientAbove(self.parent, claimed);
  if (client !== undefined) peer['client'] = client;
  return { peer, client, isNamed: client !== undefined && String(client.pid) === claimed };
}

function clientAbove(parent: number, claimed: string | undefined): Client | undefined {
  const wanted = claimed !== undefined && /^[1-9]\d{0,9}$/.test(claimed) ? Number(claimed) : undefined;
  const first = factsOf(parent);
  if (first === undefined || parent <= 1) return undefined;
  for (
    let at: ReturnType<typeof processFacts> = first, hops = 0;
    at !== undefined && at.pid > 1 && hops < MAX_HOPS;
    hops++
  ) {
    if (at.pid === wanted) return { pid: at.pid, start: at.start };
    at = factsOf(at.parent);
  }
  return { pid: first.pid, start: first.start };
}

/** A client lives for hours and speaks many times a second: what it is need not be asked each time. A pid does not come back so soon. */
const FRESH_MS = 1_000;
const cache = new Map<number, { facts: ReturnType<typeof processFacts>; until: number }>();

function factsOf(pid: number): ReturnType<typeof processFacts> {
  const now = performance.now();
  const known = cache.get(pid);
  if (known !== undefined && known.until > now) return known.facts;
  if (cache.size > 256) cache.clear();
  const facts = processFacts(pid);
  cache.set(pid, { facts, until: now + FRESH_MS });
  return facts;
}

/** Whether a client still runs. */
export function clientAlive(client: Client): boolean {
  return isAlive(client.pid, client.start);
}

/** How far up the processes above one are looked at. */
const MAX_ABOVE = 64;

/** Whether a process stands somewhere below a client. `otherwise` where more stand above it than are looked at: a program inside makes as many as it likes. */
export function isBelow(pid: number, client: Client, otherwise = false): boolean {
  let at = processFacts(pid);
  for (let hops = 0; at !== undefined && at.pid > 1; hops++) {
    if (at.pid === client.pid) return at.start === client.start;
    if (hops === MAX_ABOVE) return otherwise;
    at = processFacts(at.parent);
  }
  return false;
}

let boot: string | undefined;
/** The same until the machine starts again: process starts are counted from there. */
export function bootId(): string {
  try {
    boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    boot ??= 'boot';
  }
  return boot;
}

/**
 * The session for payloads that name none: one per client process, so that the recorder and the fall-back hook find the same.
 */
export function unnamedSession(agent: string, client: Client | undefined): string {
  const who = client === undefined ? 'unseen' : `${client.pid}-${client.start.replace(/[^A-Za-z0-9]/g, '')}`;
  return `unnamed-${agent}-${bootId().slice(0, 8)}-${who}`.slice(0, 120);
}
