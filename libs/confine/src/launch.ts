import { spawn, type ChildProcess, type IOType } from 'node:child_process';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Broker, type CommandFront } from './broker.js';
import { Channel, type Opened } from './channel.js';
import { GrantError, type Widening } from './grant.js';
import type { Supervised } from './manifest.js';
import { Supervision, type Front } from './observe.js';
import { encodePlan, type Plan } from './plan.js';

/** One row of the self-test: `held` was tried inside and failed, and succeeded outside; `not-shown` failed in both. */
export interface Proof {
  name: string;
  verdict: 'held' | 'not-shown' | 'broken';
}

/** A step of the launcher that the kernel refused, before the program was started. */
export interface LaunchFailure {
  /** `namespaces`, `maps`, `proc`, `view`, `landlock`, `filter`, `self-test`, `exec`, … */
  step: string;
  /** Number of errno; 0 where there is none. */
  error: number;
  what: string;
}

export interface Ended {
  /** Exit code, null when a signal ended it. */
  code: number | null;
  signal: NodeJS.Signals | null;
  failure: LaunchFailure | undefined;
}

/** What the launcher found before the program runs. */
export interface Start {
  proofs: Proof[];
  /** Landlock's ABI. */
  landlock: number;
  /** T3: new terminals are given inside. */
  terminals: boolean;
  /** What the supervisor can do here; undefined where there is none. */
  supervised: Supervised | undefined;
}

export interface Launched {
  /** Resolves when the program may run, with what was proved; undefined where it never came to that: see `ended`. Rejects with what `admit` threw. */
  started: Promise<Start | undefined>;
  ended: Promise<Ended>;
  /** The plan's listeners in their order, as soon as they are all there; none where the session ended before. They are the caller's to close. */
  listeners: Promise<Opened[]>;
  /** Connects to a server inside, where the plan has it so. Rejects with an error of the kernel's `code`. */
  connect(port: number): Promise<Socket>;
  /**
   * Gives the living session something that lies outside of it, for every program of it at once. Rejects with `GrantError` where it cannot be
   * given, where the session has ended, and where it has no supervisor.
   */
  widen(widening: Widening): Promise<void>;
  /** Ends a grant. What programs have open stays theirs. */
  narrow(id: number): Promise<void>;
  /** Passes a signal on to the program. */
  signal(name: NodeJS.Signals): void;
  /** The launcher's process. */
  process: ChildProcess;
}

/** Who hears of what a session in T2 connects to: its supervisor makes those connections. */
export interface Doors {
  /** A process inside has opened the door, and this is the other end. */
  opened(socket: Socket, pid: number): void;
  /** A connection to one of the plan's ports is about to come from this port. */
  announced(port: number): void;
}

/** The launcher's process; where its messages are not heard by themselves, `hear` sees to it. */
type Starter = ChildProcess & { hear?(): void };

export interface LaunchOptions {
  /** The program's standard streams; this process's own by default. */
  stdio?: readonly [IOType | number, IOType | number, IOType | number];
  /** Another user to become, for a caller who may. */
  user?: { uid: number; gid: number };
  /** Starts the launcher where it is to be another process's child; its streams are then that one's. Channels and events are as `spawn` would give them. */
  start?(launcher: string): Starter;
  /** Who answers and hears the supervisor; needed where the plan has one. */
  front?: Front;
  /** Who decides about commands; needed where the plan has a broker. */
  commands?: CommandFront;
  /** Hears of connections, where the front listens itself (T2). */
  doors?: Doors;
  /** Looks at what was proved: the program runs when this has resolved, and never where it throws. */
  admit?(start: Start): Promise<void>;
}

/** The byte by which the launcher is told that the program may run. */
const GO = 'g';

/** Starts a plan. The session ends with this process: the launcher sees the pipe close. */
export function launch(launcher: string, plan: Plan, options: LaunchOptions = {}): Launched {
  const child: Starter = options.start?.(launcher) ?? spawned(launcher, plan, options);
  const pipe = child.stdio[3] as Duplex;
  const supervision =
    plan.names === undefined ? undefined : new Supervision(child.stdio.at(5) as Duplex, options.front);
  if (plan.broker !== undefined && options.commands !== undefined)
    new Broker(child.stdio.at(6) as Duplex, options.commands);
  const reports = new Reports();
  let start: (value: Start | undefined) => void = () => undefined;
  const ready = new Promise<Start | undefined>((done) => (start = done));
  pipe.on('data', (bytes: Buffer) => {
    if (reports.take(bytes)) void begin(reports, supervision).then(start);
  });
  // A launcher that refuses the plan closes the pipe while it is still written.
  pipe.on('error', () => undefined);
  pipe.write(encodePlan(plan));
  if (plan.tier === 'T2' && options.doors !== undefined) {
    hearDoors(child, options.doors);
    child.hear?.();
  }
  const end = ended(child, pipe, reports).finally(() => start(undefined));
  const channel = new Channel(child, plan.tier === 'T2' ? 0 : plan.listeners.length, end);
  return {
    started: ready.then((value) => value && admitted(value, pipe, options)),
    ended: end,
    listeners: channel.listeners,
    connect: (port) => channel.connect(port),
    widen: (widening) => supervision?.widen(widening) ?? unsupervised(),
    narrow: (id) => supervision?.narrow(id) ?? unsupervised(),
    signal: (name) => void child.kill(name),
    process: child,
  };
}

function spawned(launcher: string, plan: Plan, { stdio, user }: LaunchOptions): ChildProcess {
  const [stdin, stdout, stderr] = stdio ?? ['inherit', 'inherit', 'inherit'];
  // Listeners come through the channel on which Node takes handles from its children.
  const [listeners, supervisor, broker] = [
    plan.listeners.length > 0 || plan.connects || plan.tier === 'T2' ? 'ipc' : 'ignore',
    plan.names ? 'pipe' : 'ignore',
    plan.broker === undefined ? 'ignore' : 'pipe',
  ] as const;
  // The launcher's own environment is empty: what the program sees is in the plan.
  return spawn(launcher, ['3'], {
    stdio: [stdin, stdout, stderr, 'pipe', listeners, supervisor, broker],
    env: {},
    cwd: '/',
    ...user,
  });
}

function unsupervised(): Promise<never> {
  return Promise.reject(new GrantError('the session has no supervisor, which alone can give it something', 0));
}

/** The supervisor has said what it can do before the launcher says that all is ready; the two come by two ways. */
async function begin({ proofs, landlock, terminals }: Reports, supervision: Supervision | undefined): Promise<Start> {
  return { proofs, landlock, terminals, supervised: await supervision?.ready };
}

async function admitted(start: Start, pipe: Duplex, { admit }: LaunchOptions): Promise<Start> {
  try {
    await admit?.(start);
  } catch (error) {
    pipe.destroy();
    throw error;
  }
  pipe.write(GO);
  return start;
}

function ended(child: ChildProcess, pipe: Duplex, reports: Reports): Promise<Ended> {
  return new Promise((done) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      pipe.destroy();
      done({
        code: null,
        signal: null,
        failure: { step: 'launcher', error: -(error.errno ?? 0), what: error.message },
      });
    });
    child.once('close', (code, signal) => done({ code, signal, failure: reports.failure }));
  });
}

function hearDoors(child: ChildProcess, doors: Doors): void {
  child.on('message', (message: { door?: number; from?: number }, handle) => {
    if (message.from !== undefined) doors.announced(message.from);
    if (message.door !== undefined && handle instanceof Socket) doors.opened(handle, message.door);
  });
}

/** Reads the launcher's records: words separated by tabs, each record ended by NUL. */
class Reports {
  readonly proofs: Proof[] = [];
  landlock = 0;
  terminals = false;
  failure: LaunchFailure | undefined;
  #rest = '';

  /** True when the program is about to run. */
  take(bytes: Buffer): boolean {
    const records = (this.#rest + bytes.toString('latin1')).split('\0');
    this.#rest = records.pop() ?? '';
    return records.map((record) => this.#read(record.split('\t'))).includes(true);
  }

  #read([kind, ...words]: string[]): boolean {
    const [first = '', second = '', ...more] = words;
    if (kind === 'proof') this.proofs.push({ name: first, verdict: second as Proof['verdict'] });
    if (kind === 'landlock') this.landlock = Number(first);
    if (kind === 'terminals') this.terminals = true;
    // The first failure is the cause of the others.
    if (kind === 'failed')
      this.failure ??= { step: first, error: Number(second), what: Buffer.from(more.join('\t'), 'latin1').toString() };
    return kind === 'started';
  }
}
