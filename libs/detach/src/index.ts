/**
 * What the log may not hold of a payload, or should not show (docs/format.md, "Detached values"): decided and taken out before an entry is made of it.
 *
 * Promises: what stays is byte for byte what was said (white space between tokens aside) and fits a line with room for the rest of the entry; each
 * value taken out is committed to by a salted hash over its exact JSON text; cost is linear in the payload, whatever it says; memory is bounded by what may stay.
 * Does not promise that every secret is found: the rules know well-known token shapes, values beside a secret's name, env files, what a policy
 * names, and what any of them has found in the session before. A password in plain prose passes. SecretMemory holds secrets in memory, nowhere else.
 *
 * Called by the recorder and by the fall-back hook, on every payload.
 */
export { detachValues, type DetachOptions, type DetachResult, type DetachRules } from './detach.js';
export { SecretMemory } from './memory.js';
export { DetachError } from './failure.js';
