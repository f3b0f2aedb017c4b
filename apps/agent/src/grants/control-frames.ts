// The questions of a control socket, read strictly: what is not exactly one of them is refused as a whole.
import { parseScope, type Scope } from './scope.js';
import { hostText, isRight, MAX_WHAT, type Wanted } from './wanted.js';

/** What came is no question of this protocol. */
export class FrameFault extends Error {}

/** So many things are granted at once. */
const MOST = 50;
const ID = /^[gdr][1-9]\d{0,8}$/;

export interface AllowFrame {
  wanted: Wanted[];
  scope: Scope;
  /** The person has seen the warnings. */
  yes: boolean;
  /** The request that is answered by it. */
  request: string | null;
}

export function readAllow(payload: Buffer): AllowFrame {
  const { wanted, for: scope, yes, request } = objectOf(payload, ['wanted', 'for', 'yes', 'request']);
  if (!Array.isArray(wanted) || wanted.length === 0 || wanted.length > MOST)
    throw new FrameFault(`"wanted" is no list of 1 to ${MOST}`);
  const read = typeof scope === 'string' ? parseScope(scope) : undefined;
  if (read === undefined) throw new FrameFault('"for" is no time: call, session, 90s, 10m, 2h, 1d (30 days at most)');
  if (typeof yes !== 'boolean') throw new FrameFault('"yes" is not true or false');
  if (request !== undefined && request !== null && !isId(request)) throw new FrameFault('"request" is no id');
  return { wanted: wanted.map((one) => readWanted(one)), scope: read, yes, request: request ?? null };
}

export function readDeny(payload: Buffer): { wanted: Wanted } | { request: string } {
  const { wanted, request } = objectOf(payload, ['wanted', 'request']);
  if (isId(request) && wanted === undefined) return { request };
  if (request !== undefined) throw new FrameFault('"request" is no id');
  return { wanted: readWanted(wanted, '*') };
}

export function readRevoke(payload: Buffer): string[] | 'all' {
  const { ids, all } = objectOf(payload, ['ids', 'all']);
  if (all === true && ids === undefined) return 'all';
  if (all === undefined && Array.isArray(ids) && ids.length > 0 && ids.length <= 1_000 && ids.every(isId)) return ids;
  throw new FrameFault('neither "all" nor a list of ids');
}

/** One thing that is wanted, from a control socket, a door or a command line. `port`: which is meant where a host has none. */
export function readWanted(value: unknown, port = '443'): Wanted {
  const { right, what, below = false, raw = false } = membersOf(value, ['right', 'what', 'below', 'raw']);
  if (!isRight(right)) throw new FrameFault('"right" is not read, write, net or socket');
  if (typeof what !== 'string' || what === '' || what.length > MAX_WHAT || /[\0\p{Surrogate}]/u.test(what))
    throw new FrameFault('"what" is no text of 1 to 4095 characters without NUL');
  if (typeof below !== 'boolean' || typeof raw !== 'boolean')
    throw new FrameFault('"below" and "raw" are true or false');
  if (below && (right === 'net' || right === 'socket')) throw new FrameFault('"below" is said of a path only');
  if (raw && right !== 'net') throw new FrameFault('"raw" is said of a host only');
  if (right === 'net') return { right, what: hostText(what, port), below, raw };
  if (right === 'socket' && /^[a-z0-9][a-z0-9-]*$/.test(what)) return { right, what, below, raw };
  if (!isNormal(what)) throw new FrameFault('"what" is no absolute path without "." and ".."');
  return { right, what, below, raw };
}

function isNormal(path: string): boolean {
  const parts = path.split('/');
  return (
    path === '/' || (parts[0] === '' && parts.slice(1).every((part) => part !== '' && part !== '.' && part !== '..'))
  );
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value);
}

function objectOf(payload: Buffer, names: readonly string[]): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch {
    throw new FrameFault('the question is no JSON');
  }
  return membersOf(value, names);
}

/** The members of an object that has no others; a name that is not known may mean what nobody here does. */
function membersOf(value: unknown, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new FrameFault('no object');
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new FrameFault(`nothing is called "${unknown.slice(0, 40)}" in it`);
  return value as Record<string, unknown>;
}
