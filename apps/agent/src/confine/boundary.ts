import { missing, type ManifestRow, type PlanTier } from '@nd7/confine';
import { rulesetHash, type Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import type { EngineKind } from './box-engine.js';

/** What holds while a session runs. */
export interface Boundary {
  tier: PlanTier | 'seatbelt' | 'bwrap' | EngineKind;
  /** Landlock's ABI; 0 where there is none. */
  landlock: number;
  rows: ManifestRow[];
  /** Paths that the policy names and the view could not treat as it says. */
  shortfalls: { path: string; what: string }[];
  /** Chain that the manifest and the end are recorded in; undefined where that failed and the policy lets it. */
  session: string | undefined;
}

/** Throws `CliError` where rows of the manifest do not hold that the policy requires. */
export function refuseMissing(ruleset: Ruleset, rows: readonly ManifestRow[], by = 'tier T1'): void {
  const [first, ...others] = missing(ruleset, rows);
  if (first === undefined) return;
  const names = [first, ...others].map(({ property }) => property).join(', ');
  const isOwn = ruleset.required.some(({ property, source }) => property === first.property && source.file !== null);
  const mend = isOwn
    ? 'Take it out of "require"'
    : `A profile of your own need not require it (docs/policy.md), --without ${first.property} starts all the same`;
  throw new CliError(
    2,
    `the policy requires what ${by} does not give here: ${names}`,
    `${first.property}: ${first.limit ?? 'nothing makes it hold'}. ${mend}, or run elsewhere.`,
    'missing-property',
  );
}

/** What a boundary is told as in the record. */
export function recorded(ruleset: Ruleset, boundary: Boundary): Record<string, unknown> {
  return {
    tier: boundary.tier,
    landlock: boundary.landlock,
    ruleset: rulesetHash(ruleset),
    project: ruleset.project,
    properties: Object.fromEntries(
      boundary.rows.map(({ property, status, provider, proofs, limit }) => [
        property,
        {
          status,
          provider,
          shown: proofs.filter(({ verdict }) => verdict === 'held').map(({ name }) => name),
          ...(limit === undefined ? {} : { limit }),
        },
      ]),
    ),
    shortfalls: boundary.shortfalls.slice(0, 100),
  };
}
