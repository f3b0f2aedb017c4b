// Tier T3 is taken by who has accepted it: by --tier T3, or "weakestTier": "T3" in a policy of their own.
import { release } from 'node:os';
import { landlockOf, NOT_OF_T3, probeKernel, tiersOf } from '@nd7/confine';
import type { Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import type { RunRequest } from './session-request.js';

/** What of it a person should know before they say so. */
const NOT_COVERED =
  'It does not refuse that protected names (.envrc, .git/hooks, settings of agents) are made or changed, but compares them and tells at the end; ' +
  'programs reach any address at the ports that this machine gives to servers; modes and times can be changed anywhere: docs/limits.md.';

/** Version of Landlock from which it tells ports apart, and an agent’s hooks and requests have a way out. */
const TELLS_PORTS = 4;

/**
 * A request as tier T3 takes it: who accepts the tier does without what it does not give by its nature and nd7’s own profiles require. What a
 * person, project or team requires in a policy of theirs still holds. Throws `CliError` where the policy takes nothing so weak, or an agent could not speak.
 */
export function acceptAlone(request: RunRequest): RunRequest {
  const { ruleset, attachment } = request;
  if (ruleset.weakestTier !== 'T3') throw tooWeak(ruleset);
  const landlock = landlockOf(release());
  if (attachment !== undefined && landlock < TELLS_PORTS)
    throw new CliError(
      2,
      `in tier T3 an agent speaks to its recorder and its service by ports, which takes Landlock ${TELLS_PORTS} (Linux 6.7); this kernel has ${landlock}`,
      'Use a newer kernel, or tier T1 or T2: nd7 doctor.',
      'no-door',
    );
  const without = ruleset.required.filter(({ property, source }) => isNature(property) && source.file === null);
  const lacking = without.map(({ property }) => property).join(', ');
  request.warn(
    `tier T3, Landlock and the call filter alone${lacking === '' ? '' : `, does not hold ${lacking}`}: nd7 run --verbose says what is left of each property`,
  );
  return { ...request, ruleset: { ...ruleset, required: ruleset.required.filter((one) => !without.includes(one)) } };
}

function isNature(property: Ruleset['required'][number]['property']): boolean {
  return NOT_OF_T3.includes(property);
}

/** Nothing weaker than the policy says. */
export function tooWeak({ weakestTier }: Ruleset): CliError {
  return new CliError(
    2,
    `your policy takes nothing weaker than tier ${weakestTier}`,
    'Leave --tier out, or change "weakestTier" in the policy that says so: nd7 policy show.',
    'weak-tier',
  );
}

/** Where no stronger tier can be had: what would, and what it does not cover. Undefined where that cannot be had either. */
export function offerAlone(launcher: string, why: CliError): CliError | undefined {
  if (!tiersOf(probeKernel(launcher)).given.includes('T3')) return undefined;
  return new CliError(
    2,
    `neither tier T1 nor T2 can be had here: ${why.message}`,
    `Tier T3 can: nd7 run --tier T3, or "weakestTier": "T3" in your policy. ${NOT_COVERED}`,
    'no-boundary',
  );
}
