// How far a grant comes, by what holds the session: what cannot act is neither offered nor given.
import type { Wanted } from './wanted.js';

export interface Extent {
  /** Who reads what was hidden and is granted: everything inside, only the agent's commands that begin from then on, or nothing. */
  reads: 'all' | 'commands' | 'none';
  /** The program that asks, as it is called inside. */
  ask: string;
  /** What refuses where it is not the supervisor. */
  refuser: string;
}

/** With a mount view, which can be changed while the session lives. */
export const IN_VIEW: Extent = { reads: 'all', ask: '/run/nd7/nd7', refuser: 'the mount view' };

/** Without one: Landlock’s rules stay as they are, and what is granted is opened by the supervisor, where it is asked. */
export function withoutView(door: string, asksReads: boolean, isBrokered: boolean): Extent {
  return { reads: asksReads ? 'all' : isBrokered ? 'commands' : 'none', ask: `${door}/nd7`, refuser: 'Landlock' };
}

/** Why a grant would do nothing; undefined: it would. */
export function unreached({ right }: Wanted, { reads }: Extent): string | undefined {
  return right === 'read' && reads === 'none'
    ? 'programs of this session read by themselves (tier T2), and no command of an agent is run by nd7'
    : undefined;
}

/** What a person and a model have to know of where a grant acts; undefined: everywhere inside. */
export function actsFor({ right }: Wanted, { reads }: Extent): string | undefined {
  return right === 'read' && reads === 'commands' ? 'shell commands of the agent that begin afterwards' : undefined;
}
