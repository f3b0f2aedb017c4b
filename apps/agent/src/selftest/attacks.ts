import type { Attack } from './attack.js';
import { FILES } from './attacks-on-files.js';
import { OTHERS } from './attacks-on-others.js';
import { WIDENING } from './attacks-on-widening.js';

/** All attempts, in the order in which they are made. */
export const ATTACKS: readonly Attack[] = [...FILES, ...OTHERS, ...WIDENING];
