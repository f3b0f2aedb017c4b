// What the service takes from its surroundings, as provider tokens: tests give their own.
import type { Clock, Random } from '@nd7/entry';

export type { Clock, Random };
export const CLOCK = Symbol('clock');
export const RANDOM = Symbol('random');
