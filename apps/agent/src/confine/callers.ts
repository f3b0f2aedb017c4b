// Who makes the connections of a session: which process, and for which tool call of the agent.
import type { Connected, Front } from '@nd7/confine';
import type { Asker, Ends } from '@nd7/egress';
import type { Client } from '../recorder/peer.js';
import type { Owner } from './commands.js';
import type { OpenCalls } from './open-calls.js';

/** How a connection is tied to a call: by the process that made it; by being made while one call alone was open; or not at all. */
export type Tie = 'process' | 'hooks' | 'none';

export interface Caller extends Asker {
  tied: Tie;
  /** The agent's call, where it is tied to one. */
  call: string | undefined;
  /** Its process stands neither below the agent nor in the tree of a command (whoever was above it has gone), or is not known though it should be. */
  isStray: boolean;
}

/** The supervisor's word and the connection come by two ways; this is more than one can be late. */
const LATE_MS = 1_000;
/** What was told and never came to the proxy holds no longer: its end may be another connection's by then. */
const HOLDS_MS = 2_000;
/** Told and not asked for at once; more are a program's that floods. */
const MOST_TOLD = 8_192;

export interface CallersParts {
  /** Whether a supervisor makes the session's connections, and tells of each. */
  isTold: boolean;
  /** How many of nd7's own processes stand above all of the session's. */
  above?: number;
  calls?: Pick<OpenCalls, 'only'> | undefined;
}

export class Callers {
  readonly #told = new Map<string, { connected: Connected; at: number }>();
  readonly #waiting = new Map<string, (connected: Connected) => void>();
  /** In whose command's tree the first process of a line stands, where commands are seen one by one. */
  ownerIn: (line: readonly Client[]) => Promise<Owner | undefined> = () => Promise.resolve(undefined);
  /** The agent's process, below which all stands that it has started itself. */
  #agent: Client | undefined;

  constructor(private readonly parts: CallersParts) {}

  /** A front that hears what another hears, and who connects. */
  beside(front: Front): Front {
    return {
      judge: (question) => front.judge(question),
      heard: (event) => front.heard(event),
      dropped: (count) => front.dropped?.(count),
      learned: (seen) => front.learned?.(seen),
      connected: (connected) => this.connected(connected),
    };
  }

  /** A program has connected to what nd7 serves. */
  connected(connected: Connected): void {
    if (connected.from.address === '0.0.0.0') return this.#forget(connected.from.port);
    const key = keyOf(connected);
    const wanted = this.#waiting.get(key);
    if (wanted !== undefined) return wanted(connected);
    this.#told.delete(key);
    const [oldest] = this.#told.keys();
    if (this.#told.size >= MOST_TOLD && oldest !== undefined) this.#told.delete(oldest);
    this.#told.set(key, { connected, at: performance.now() });
  }

  /** A hook has spoken, from this process and those above it: the first that does is the agent's own. */
  spoke(line: readonly Client[]): void {
    if (this.#agent !== undefined) return;
    void this.#ownerIn(line).then((owner) => {
      // Above it all is the launcher.
      if (owner === undefined) this.#agent ??= line.at(-2 - (this.parts.above ?? 0));
    });
  }

  /** Who has made a connection. */
  async askerOf(ends: Ends): Promise<Caller> {
    const isTold = this.parts.isTold && ends.isDatagram !== true;
    const connected = isTold ? await this.#find(ends) : undefined;
    const line = connected?.line ?? [];
    const owner = await this.#ownerIn(line);
    const process = line[0] && { pid: line[0].pid, program: connected?.program ?? '' };
    const of = { ...(owner && { command: owner.command }), ...process };
    // Where all is told, what was not told of could be anybody's.
    const isStray = isTold && owner === undefined && (line.length === 0 || this.#isStray(line));
    if (owner?.call !== undefined) return caller('process', owner.call, of, isStray);
    const only = isStray ? undefined : this.parts.calls?.only;
    return caller(only === undefined ? 'none' : 'hooks', only, of, isStray);
  }

  async #ownerIn(line: readonly Client[]): Promise<Owner | undefined> {
    return line.length === 0 ? undefined : this.ownerIn(line);
  }

  #isStray(line: readonly Client[]): boolean {
    const top = line.at(-1 - (this.parts.above ?? 0));
    return this.#agent !== undefined && (top?.pid !== this.#agent.pid || top.start !== this.#agent.start);
  }

  #find(ends: Ends): Promise<Connected | undefined> {
    const key = keyOf(ends);
    const told = this.#told.get(key);
    this.#told.delete(key);
    if (told !== undefined && performance.now() - told.at < HOLDS_MS) return Promise.resolve(told.connected);
    return new Promise((resolve) => {
      const done = (connected?: Connected): void => {
        clearTimeout(late);
        this.#waiting.delete(key);
        resolve(connected);
      };
      const late = setTimeout(done, LATE_MS);
      // Two of the same ends are not open at once.
      this.#waiting.set(key, done);
    });
  }

  /** A program takes this port: what was told of others that had it is over. */
  #forget(port: number): void {
    for (const [key, { connected }] of this.#told) if (connected.from.port === port) this.#told.delete(key);
  }
}

function keyOf({ from, to }: Pick<Connected, 'from' | 'to'>): string {
  return `${from.address} ${from.port} ${to.address} ${to.port}`;
}

function caller(tied: Tie, call: string | undefined, of: Record<string, unknown>, isStray: boolean): Caller {
  const entry = { tied, ...(call === undefined ? {} : { tool_use_id: call }), ...of };
  return { entry, key: JSON.stringify([tied, call, of['command']]), tied, call, isStray };
}
