import type { Property } from '@nd7/policy';
import type { World } from './world.js';

export type Does = (world: World) => (string | undefined)[];

/** One attempt to get out, and how it is seen from outside whether it did. */
export interface Attack {
  name: string;
  /** The row of the manifest that says that it fails. */
  property: Property;
  /** What is tried, for a person. */
  tried: string;
  /** What inside.ts is told to do; undefined stands for what there is none of here: it is then not tried. */
  does: Does;
  /**
   * `canary`: what was read has the canary in it. `word`: it worked, by its own word; nothing outside shows it. Else by what is found outside.
   */
  shows: 'canary' | 'word' | ((world: World) => boolean);
  /** What the manifest says about its row where this gets out and was announced. */
  admitted?: RegExp;
}

export type Shows = Attack['shows'];

/** One row of the tables. */
export const attack = (
  property: Property,
  name: string,
  tried: string,
  does: Does,
  shows: Shows,
  admitted?: RegExp,
): Attack => ({
  property,
  name,
  tried,
  does,
  shows,
  ...(admitted === undefined ? {} : { admitted }),
});
