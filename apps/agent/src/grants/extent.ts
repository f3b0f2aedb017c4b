// How far a grant comes, by what holds the session: what cannot act is neither offered nor given.
import { shellWord, type Wanted } from './wanted.js';

export interface Extent {
  /** Who reads what was hidden and is granted: everything inside, only the agent's commands that begin from then on, or nothing. */
  reads: 'all' | 'commands' | 'none';
  /** The program that asks, as it is called inside. */
  ask: string;
  /** What refuses where it is not the supervisor. */
  refuser: string;
  /** A box of another program, which is made once: only the proxy is nd7's own. */
  box?: string;
}

/** With a mount view, which can be changed while the session lives. */
export const IN_VIEW: Extent = { reads: 'all', ask: '/run/nd7/nd7', refuser: 'the mount view' };

/** Without one: Landlock’s rules stay as they are, and what is granted is opened by the supervisor, where it is asked. */
export function withoutView(door: string, asksReads: boolean, isBrokered: boolean): Extent {
  return { reads: asksReads ? 'all' : isBrokered ? 'commands' : 'none', ask: `${door}/nd7`, refuser: 'Landlock' };
}

/** A box of another program's. */
export const inBox = (box: string, door: string): Extent => ({
  reads: 'none',
  ask: `${door}/nd7`,
  refuser: `the box of ${box}`,
  box,
});

/** Why a grant would do nothing; undefined: it would. */
export function unreached({ right }: Wanted, { reads, box }: Extent): string | undefined {
  if (box !== undefined && right !== 'net')
    return `the box of ${box} was made at the start, and is given no path or socket while it lives`;
  return right === 'read' && reads === 'none'
    ? 'programs of this session read by themselves (tier T2), and no command of an agent is run by nd7'
    : undefined;
}

/** What can be done in place of such a grant. */
export function insteadOf({ right, what }: Wanted, { box }: Extent): string {
  if (box === undefined)
    return 'Say --allow at the start (nd7 run --allow …), or run with "patterns": "strict", where everything that is read is asked about.';
  if (right === 'socket')
    return 'A box has the sockets that your own arguments give it: nd7 run --in-arg … (nd7 run --help).';
  const next = `End the session, and start it anew with it: nd7 run --in ${box} --allow ${shellWord(`${right}:${what}`)} …`;
  return box === 'bwrap' ? next : `${next} (outside of home and project: --in-arg=--mount=…)`;
}

/** What a person and a model have to know of where a grant acts; undefined: everywhere inside. */
export function actsFor({ right }: Wanted, { reads }: Extent): string | undefined {
  return right === 'read' && reads === 'commands' ? 'shell commands of the agent that begin afterwards' : undefined;
}
