import { utf8, type Clock, type Random } from '@nd7/entry';
import { checkTeamPolicy } from '@nd7/receipt';
import { sha256Hex } from '@nd7/signing';
import { parseVkey, type Signer } from '@nd7/tlog';
import { TeamPolicy } from '@nd7/vault-api';
import { join } from 'node:path';
import { VaultClient } from './client.js';
import { readText, replaceFile } from './disk.js';
import { ShipError } from './error.js';
import { readVaultFile, writeVaultFile, type VaultFile } from './vault-file.js';

/** A team's policy whose signature was checked against the pinned key. */
export interface HeldTeamPolicy {
  version: number;
  /** The exact text that was signed. */
  policy: string;
  /** Where it is kept. */
  file: string;
}

const fileOf = (home: string): string => join(home, 'team-policy.json');

const refused = (what: string): ShipError =>
  new ShipError(
    'bad-policy',
    `the team's policy ${what}. \`nd7 policy pull\` fetches it anew; if that does not help, ask who runs the vault`,
  );

function checked({ version, note, policy }: TeamPolicy, vault: VaultFile): number {
  const key = parseVkey(vault.vkey);
  if (key === undefined) throw refused('cannot be checked: no key is pinned');
  const verdict = checkTeamPolicy(note, sha256Hex(utf8(policy)), { origin: vault.origin, key });
  if ('fault' in verdict) throw refused(`is not what ${vault.origin} signed (${verdict.fault})`);
  if (verdict.version !== version) throw refused('has another version than was signed');
  const seen = vault.teamPolicy ?? 0;
  if (version < seen) throw refused(`has version ${version}, and this machine has seen ${seen}`);
  return version;
}

/**
 * The team's policy as it is kept here, verified now; undefined where this machine is not enrolled, or has never seen one. Throws ShipError
 * `bad-policy` where it has seen one and what is kept does not stand: nothing may start then.
 */
export function readTeamPolicy(home: string): HeldTeamPolicy | undefined {
  const vault = readVaultFile(home);
  if (vault === undefined) return undefined;
  const text = readText(fileOf(home));
  if (text === undefined) {
    if (vault.teamPolicy === undefined) return undefined;
    throw refused(`is not there, and this machine has seen version ${vault.teamPolicy}`);
  }
  const parsed = TeamPolicy.safeParse(parseJson(text));
  if (!parsed.success) throw refused(`cannot be read from ${fileOf(home)}`);
  return { version: checked(parsed.data, vault), policy: parsed.data.policy, file: fileOf(home) };
}

/**
 * Fetches the team's policy and keeps it where it is newer. `changed`: another is kept now than before. A vault that has none leaves what is
 * here as it is: a policy is taken back by a newer one that says nothing. Throws ShipError `bad-policy`, `not-enrolled`; VaultError.
 */
export async function pullTeamPolicy(parts: {
  home: string;
  signer: Signer;
  clock: Clock;
  random: Random;
  timeoutMs?: number;
}): Promise<{ version: number | undefined; changed: boolean }> {
  const { home, signer, clock, random, timeoutMs = 15_000 } = parts;
  const asked = enrolledAt(home);
  const access = { machine: asked.machine, token: asked.token, signer };
  const found = await new VaultClient({ url: asked.url, access, clock, random, timeoutMs }).teamPolicy();
  // While the vault answered another may have fetched a newer one, or enrolled this machine elsewhere: neither is undone.
  const vault = enrolledAt(home);
  if (found === undefined) return { version: vault.teamPolicy, changed: false };
  const version = checked(found, vault);
  const text = `${JSON.stringify(found)}\n`;
  if (readText(fileOf(home)) === text && vault.teamPolicy === version) return { version, changed: false };
  replaceFile(fileOf(home), text);
  // Behind the policy itself: a machine that has seen a version has it.
  writeVaultFile(home, { ...vault, teamPolicy: version });
  return { version, changed: true };
}

function enrolledAt(home: string): VaultFile {
  const vault = readVaultFile(home);
  if (vault === undefined) throw new ShipError('not-enrolled', 'this machine is not enrolled: `nd7 enrol URL TOKEN`');
  return vault;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
