import type { ManifestRow } from '@nd7/confine';
import { nodeAt, type Property, type Ruleset } from '@nd7/policy';
import type { Attack } from './attack.js';
import type { World } from './world.js';

/** What came back of an attempt; see inside.ts. */
export interface Came {
  code: number;
  said: string;
  error: string;
}

/**
 * `held`: it failed, and its twin outside succeeded. `admitted`: it got out as the manifest says. `not-held`: it got out. `not-shown`: it failed,
 * and outside too. `skipped`: it could not be tried.
 */
export type Verdict = 'held' | 'admitted' | 'not-held' | 'not-shown' | 'skipped';

export interface Judged {
  name: string;
  property: Property;
  tried: string;
  verdict: Verdict;
  /** What refused it, what admits it, why nothing is shown. */
  why: string;
}

/** One side of an attempt: inside, or the twin. */
export interface Side {
  world: World;
  came: ReadonlyMap<string, Came>;
}

/** Properties that tier T3 does not hold at all, as its manifest says so: whatever is tried against them may get out. */
const OPEN_IN_T3: Partial<Record<Property, RegExp>> = {
  'files.metadata': /can be changed anywhere: nobody answers calls/,
  'files.masks': /what is hidden in writable folders can be read/,
  'files.leaves': /protected names are made and changed/,
  'network.loopback': /servers inside listen where they say/,
  'processes.signal': /other processes can be signalled/,
  'ipc.memory': /programs share in \/dev\/shm/,
};

/** Whether an attempt of a side got through. */
export function gotThrough({ shows, name }: Attack, { world, came }: Side): boolean {
  // What is found outside says more than the attempt's own word.
  if (typeof shows === 'function') return shows(world);
  const own = came.get(name);
  return shows === 'word' ? own?.code === 0 : own?.said.includes(world.canary) === true;
}

/** Judges one attempt by what was found on both sides and what the manifest of the session says. */
export function judge(
  attack: Attack,
  inside: Side,
  twin: Side,
  row: ManifestRow | undefined,
  ruleset: Ruleset,
): Judged {
  const { name, property, tried } = attack;
  const judged = (verdict: Verdict, why: string): Judged => ({ name, property, tried, verdict, why });
  if (gotThrough(attack, inside)) {
    const limit = row?.limit ?? '';
    const isAnnounced =
      row !== undefined &&
      row.status !== 'full' &&
      [attack.admitted, OPEN_IN_T3[property]].some((words) => words?.test(limit) === true);
    return isAnnounced ? judged('admitted', limit) : judged('not-held', gap(attack, inside.world, ruleset));
  }
  const lacking = lacks(attack, inside.world);
  if (lacking !== undefined) return judged('skipped', lacking);
  const own = inside.came.get(name);
  if (own === undefined) return judged('not-shown', 'nothing came back of it');
  if (own.code === 2) return judged('skipped', own.error || 'it cannot be tried here');
  if (gotThrough(attack, twin)) return judged('held', own.error || 'nothing of it was found outside');
  return judged('not-shown', `outside it fails too${reasonOf(twin.came.get(name))}`);
}

/** Where the rules let it, that is a matter of the rules. */
function gap({ property }: Attack, { places }: World, ruleset: Ruleset): string {
  const isWrite = property === 'files.write' || property === 'files.metadata';
  return isWrite && nodeAt(ruleset, places.outside).access.write
    ? `it got out: the rules let ${ruleset.home} be written, and nd7 why ${ruleset.home} says which does`
    : 'it got out';
}

function reasonOf(came: Came | undefined): string {
  return came === undefined || came.error === '' ? '' : `: ${came.error}`;
}

/** What an attempt needs and there is none of. */
export function lacks(attack: Attack, world: World): string | undefined {
  const does = attack.does(world);
  if (!does.includes(undefined)) return undefined;
  return world.probes === undefined
    ? 'the program for it could not be built (native/probes takes a C compiler)'
    : 'there is no place for it here';
}
