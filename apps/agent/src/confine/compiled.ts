import { compile, type CompileInput, type Note, type Ruleset } from '@nd7/policy';

type Compiled = { ruleset: Ruleset; notes: Note[] };

/** Somebody works in one or two projects at a time. */
const MOST = 4;
const known = new Map<string, Compiled>();

/**
 * What `compile` makes of policies; of the same ones again what it made before, in a host that keeps one session after the other. The policies
 * are compared as they were read this time, with every variable that a rule could name. Throws PolicyError.
 */
export function compiled(input: CompileInput): Compiled {
  const key = JSON.stringify(input, (_, value: unknown) =>
    value instanceof Map ? [...(value as Map<unknown, unknown>)] : value,
  );
  const found = known.get(key) ?? compile(input);
  known.delete(key);
  known.set(key, found);
  for (const oldest of [...known.keys()].slice(0, -MOST)) known.delete(oldest);
  return found;
}
