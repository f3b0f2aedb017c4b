import { statSync } from 'node:fs';
import { machineKey, openHome } from '@nd7/journal';
import { isShipError, offeredTeamPolicy, readTeamPolicy, readVaultFile } from '@nd7/ship';
import { systemClock, systemRandom } from '@nd7/signing';
import { safeLine } from '../show/safe.js';
import type { Check } from './checks.js';

/** A person waits for it. */
const ASK_MS = 3_000;
const NAME = 'team policy';

/** The team's policy of an enrolled machine: which one is kept, by whose key, since when, and whether the vault has a newer one. None where it is not enrolled. */
export async function teamPolicyCheck(nd7Home: string): Promise<Check[]> {
  const vault = readVaultFile(nd7Home);
  if (vault === undefined) return [];
  let kept: ReturnType<typeof readTeamPolicy>;
  try {
    kept = readTeamPolicy(nd7Home);
  } catch (error) {
    return [{ name: NAME, state: 'bad', text: `nothing starts here: ${said(error)}`, next: 'nd7 policy pull' }];
  }
  const here =
    kept === undefined
      ? 'none is kept here'
      : `version ${kept.version}, signed by the key of ${vault.origin} that is pinned, here since ${statSync(kept.file).mtime.toISOString().slice(0, 19)}Z`;
  try {
    const signer = machineKey(openHome(nd7Home));
    const parts = { home: nd7Home, signer, clock: systemClock, random: systemRandom, timeoutMs: ASK_MS };
    const offered = await offeredTeamPolicy(parts);
    if (offered !== undefined && offered > (kept?.version ?? 0))
      return [
        { name: NAME, state: 'note', text: `${here}; the vault has version ${offered}`, next: 'nd7 policy pull' },
      ];
    const there = kept === undefined ? 'the team has none' : 'the vault has no newer one';
    return [{ name: NAME, state: 'ok', text: `${here}; ${there}` }];
  } catch (error) {
    const isLie = isShipError(error) && (error.code === 'two-policies' || error.code === 'bad-policy');
    if (isLie) return [{ name: NAME, state: 'bad', text: `${here}; ${said(error)}`, next: 'tell who runs the vault' }];
    return [
      { name: NAME, state: 'note', text: `${here}; the vault could not be asked for a newer one: ${said(error)}` },
    ];
  }
}

function said(error: unknown): string {
  return safeLine(error instanceof Error ? error.message : String(error));
}
