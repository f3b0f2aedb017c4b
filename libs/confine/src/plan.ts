/** What `nd7-launch` is told: docs/protocol/launch-plan.md. Paths are absolute and normal, and lead through no symbolic link. */
export interface Plan {
  /** What holds the session; in T2 and T3 there is no view to be made: docs/protocol/launch-plan.md, "Tier T2". */
  tier: PlanTier;
  /** Make a user namespace; `false` only for a caller with CAP_SYS_ADMIN on a machine that gives none. */
  userNamespace: boolean;
  /** /proc stays writable: only for users whom the kernel refuses /proc/sys anyway. */
  writableProc: boolean;
  /** The process that starts the launcher is what a shell waits for: it is stopped together with the agent. */
  stopFront: boolean;
  /** Least Landlock ABI to start under. */
  landlock: number;
  /** Nothing of a newer ABI is used; undefined: all that the kernel has. */
  landlockMost?: number | undefined;
  /** T2: the filter asks about every open, also to read. */
  asksReads?: boolean;
  /** T3: the filter asks about the other end of a new terminal, and where the kernel lets somebody answer, that is given. */
  givesTerminals?: boolean;
  cwd: string;
  argv: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Instructions of classic BPF. */
  filter: Uint8Array;
  /** T2 with a broker: the filter of commands for which everything that is read is asked about, where `filter` does not. */
  asking?: Uint8Array | undefined;
  /** In this order, each upon what the ones before it made. */
  view: readonly View[];
  rules: readonly Rule[];
  /** T3: ports that may be connected to, whatever the address; at most 256 runs of them. */
  ports?: readonly Ports[];
  /** Sockets of the session that are handed to the front, at most 64 and none in T3; in T2 ports of this machine's loopback that may be connected to. */
  listeners: readonly Listener[];
  /** The front is given connections to servers inside, as it asks for them. */
  connects: boolean;
  /** IPv4 addresses that are the session's own besides its loopback's, at most 32. */
  routes: readonly Route[];
  /** The table of masks and protected names that a supervisor holds; undefined: there is none, and the filter asks nobody. */
  names: Uint8Array | undefined;
  /** The supervisor tells what is read, run and connected to; only with one. */
  learns: boolean;
  /** Folder of the door in which commands are taken to be run for the programs inside; undefined: none are. */
  broker?: string | undefined;
  /** What the self-test aims at: a file that is hidden inside and a folder that is read-only inside. Undefined: no self-test. */
  selfTest: { canary: string; outside: string } | undefined;
}

export type PlanTier = 'T1' | 'T2' | 'T3';

/** TCP ports: the first, and each that is `step` further, up to the last. */
export interface Ports {
  first: number;
  last: number;
  step: number;
}

export type View =
  /** What lay at `path` at the start is put there again: writable, or read-only. It cannot be renamed. */
  | { kind: 'writable'; path: string; noExec?: boolean }
  | { kind: 'show'; path: string; source: string; noExec?: boolean }
  /** An empty folder or file that nobody may read. T2, `closed`: Landlock hides it, and grants above it leave it so. */
  | { kind: 'cover'; path: string; closed?: boolean }
  /** An empty file system in memory. `frozen`: once the rest of the view lies in it, it is read-only. */
  | { kind: 'scratch'; path: string; mode: number; mebibytes: number; frozen: boolean; noExec?: boolean };

/** A socket inside that the front serves from outside. */
export interface Listener {
  kind: 'stream' | 'datagrams';
  /** IPv4, four decimal numbers; `0.0.0.0`: every address of the session. */
  address: string;
  port: number;
}

/** All addresses that share the first `prefix` bits with this one, whose other bits are 0. */
export interface Route {
  address: string;
  prefix: number;
}

/** A Landlock rule: the rights of LANDLOCK_ACCESS_FS_* that hold for everything beneath. */
export interface Rule {
  path: string;
  rights: number;
}

/** Rights of Landlock, numbered as in linux/landlock.h; the launcher leaves out what the kernel does not know. */
export const RIGHTS = {
  execute: 1 << 0,
  writeFile: 1 << 1,
  readFile: 1 << 2,
  readDir: 1 << 3,
  makeChar: 1 << 6,
  makeBlock: 1 << 11,
  truncate: 1 << 14,
  ioctlDevice: 1 << 15,
  all: (1 << 16) - 1,
} as const;

const MAGIC = 'nd7-plan';
const VERSION = 4;
const RECORD = {
  flags: 1,
  landlock: 2,
  cwd: 3,
  argument: 4,
  variable: 5,
  filter: 6,
  canary: 7,
  outside: 8,
  rights: 9,
  listen: 10,
  names: 11,
  tier: 12,
  route: 13,
  landlockMost: 15,
  broker: 24,
  asking: 25,
  ports: 30,
  writable: 16,
  show: 17,
  cover: 18,
  scratch: 19,
} as const;
const FLAG = {
  userNamespace: 1,
  writableProc: 2,
  stopFront: 4,
  selfTest: 8,
  learns: 64,
  asksReads: 128,
  connects: 256,
  givesTerminals: 512,
} as const;
const TIER = { T1: 1, T2: 2, T3: 3 } as const;
const ATTRIBUTE = { noExec: 1, frozen: 2, closed: 4 } as const;

/** The bytes of a plan. Throws RangeError for a string with a NUL in it: it would end there. */
export function encodePlan(plan: Plan): Uint8Array {
  const parts: Buffer[] = [];
  const record = (type: keyof typeof RECORD, ...body: Uint8Array[]): void => {
    parts.push(
      u32(
        RECORD[type],
        body.reduce((sum, part) => sum + part.length, 0),
      ),
      ...body.map((part) => Buffer.from(part)),
    );
  };
  const flags =
    (plan.userNamespace ? FLAG.userNamespace : 0) |
    (plan.writableProc ? FLAG.writableProc : 0) |
    (plan.stopFront ? FLAG.stopFront : 0) |
    (plan.selfTest === undefined ? 0 : FLAG.selfTest) |
    (plan.learns ? FLAG.learns : 0) |
    (plan.connects ? FLAG.connects : 0) |
    (plan.asksReads === true ? FLAG.asksReads : 0) |
    (plan.givesTerminals === true ? FLAG.givesTerminals : 0);
  if (plan.tier !== 'T1') record('tier', u32(TIER[plan.tier]));
  if (plan.landlockMost !== undefined) record('landlockMost', u32(plan.landlockMost));
  record('flags', u32(flags));
  record('landlock', u32(plan.landlock));
  record('cwd', text(plan.cwd));
  for (const value of plan.argv) record('argument', text(value));
  for (const [name, value] of Object.entries(plan.environment)) record('variable', text(`${name}=${value}`));
  record('filter', plan.filter);
  if (plan.asking !== undefined) record('asking', plan.asking);
  if (plan.selfTest !== undefined) {
    record('canary', text(plan.selfTest.canary));
    record('outside', text(plan.selfTest.outside));
  }
  for (const { kind, address, port } of plan.listeners)
    record('listen', u32(ipv4(address), port, kind === 'datagrams' ? 1 : 0));
  for (const { first, last, step } of plan.ports ?? []) record('ports', u32(first, last, step));
  for (const { address, prefix } of plan.routes) record('route', u32(ipv4(address), prefix));
  if (plan.names !== undefined) record('names', plan.names);
  if (plan.broker !== undefined) record('broker', text(plan.broker));
  for (const { path, rights } of plan.rules) record('rights', u32(rights, 0), text(path));
  for (const view of plan.view) {
    const attributes = u32(
      ('noExec' in view && view.noExec === true ? ATTRIBUTE.noExec : 0) |
        ('frozen' in view && view.frozen ? ATTRIBUTE.frozen : 0) |
        ('closed' in view && view.closed === true ? ATTRIBUTE.closed : 0),
    );
    if (view.kind === 'show') record('show', attributes, text(view.source), text(view.path));
    else if (view.kind === 'scratch') record('scratch', attributes, u32(view.mode, view.mebibytes), text(view.path));
    else record(view.kind, attributes, text(view.path));
  }
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(MAGIC), u32(VERSION, 16 + body.length), body]);
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32LE(value, 4 * i));
  return bytes;
}

function ipv4(address: string): number {
  return Buffer.from(address.split('.').map(Number)).readUInt32BE(0);
}

function text(value: string): Buffer {
  if (value.includes('\0')) throw new RangeError(`a string of the plan has a NUL in it: ${JSON.stringify(value)}`);
  return Buffer.from(`${value}\0`);
}
