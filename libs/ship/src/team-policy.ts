import { utf8, type Clock, type Random } from '@nd7/entry';
import { checkTeamPolicy } from '@nd7/receipt';
import { sha256Hex } from '@nd7/signing';
import { parseVkey, type Signer } from '@nd7/tlog';
import { TeamPolicy } from '@nd7/vault-api';
import { join } from 'node:path';
import { closeSync, constants, openSync } from 'node:fs';
import { tryLock } from '@nd7/kernel';
import { VaultClient } from './client.js';
import { io, readText, replaceFile } from './disk.js';
import { isShipError, ShipError } from './error.js';
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

interface Checked {
  version: number;
  /** SHA-256 of the exact bytes. */
  hash: string;
}

/** Throws ShipError `bad-policy` for what the pinned key has not signed and what is older than what was seen; `two-policies` for another one of a version that was seen. */
function checked({ version, note, policy }: TeamPolicy, vault: VaultFile): Checked {
  const key = parseVkey(vault.vkey);
  if (key === undefined) throw refused('cannot be checked: no key is pinned');
  const hash = sha256Hex(utf8(policy));
  const verdict = checkTeamPolicy(note, hash, { origin: vault.origin, key });
  if ('fault' in verdict) throw refused(`is not what ${vault.origin} signed (${verdict.fault})`);
  if (verdict.version !== version) throw refused('has another version than was signed');
  const seen = vault.teamPolicy ?? 0;
  if (version < seen) throw refused(`has version ${version}, and this machine has seen ${seen}`);
  if (version === seen && vault.teamPolicyHash !== undefined && vault.teamPolicyHash !== hash)
    throw new ShipError(
      'two-policies',
      `${vault.origin} has signed two policies of version ${version}: this machine holds ${vault.teamPolicyHash.slice(0, 12)}…, the other is ${hash.slice(0, 12)}…. Nothing of it is taken until a newer version comes: show both to who runs the vault`,
    );
  return { version, hash };
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
  return { version: checked(parsed.data, vault).version, policy: parsed.data.policy, file: fileOf(home) };
}

export interface PullParts {
  home: string;
  signer: Signer;
  clock: Clock;
  random: Random;
  timeoutMs?: number;
}

/**
 * Fetches the team's policy and keeps it where it is newer. `changed`: another is kept now than before. A vault that has none leaves what is
 * here as it is: a policy is taken back by a newer one that says nothing. Of two policies of one version the one that was seen first stays, and the other is
 * kept beside it (`team-policy.other.json`) for who asks the vault's admin. Throws ShipError `bad-policy`, `two-policies`, `not-enrolled`; VaultError.
 */
export async function pullTeamPolicy(parts: PullParts): Promise<{ version: number | undefined; changed: boolean }> {
  const { home } = parts;
  const found = await ask(parts);
  // While the vault answered another may have fetched a newer one, or enrolled this machine elsewhere: neither is undone, and nobody does so while this is written.
  return alone(home, () => {
    const vault = withHash(home, enrolledAt(home));
    if (found === undefined) return { version: vault.teamPolicy, changed: false };
    const text = `${JSON.stringify(found)}\n`;
    const { version, hash } = keepingOther(home, text, () => checked(found, vault));
    const isKept = readText(fileOf(home)) === text && vault.teamPolicy === version;
    if (isKept && readVaultFile(home)?.teamPolicyHash === hash) return { version, changed: false };
    if (!isKept) replaceFile(fileOf(home), text);
    // Behind the policy itself: a machine that has seen a version has it.
    writeVaultFile(home, { ...vault, teamPolicy: version, teamPolicyHash: hash });
    return { version, changed: !isKept };
  });
}

/** The version that the vault has now, checked as one that is fetched, and not kept; undefined where the team has none. Throws as `pullTeamPolicy`. */
export async function offeredTeamPolicy(parts: PullParts): Promise<number | undefined> {
  const found = await ask(parts);
  return found && checked(found, withHash(parts.home, enrolledAt(parts.home))).version;
}

async function ask({ home, signer, clock, random, timeoutMs = 15_000 }: PullParts): Promise<TeamPolicy | undefined> {
  const asked = enrolledAt(home);
  const access = { machine: asked.machine, token: asked.token, signer };
  return new VaultClient({ url: asked.url, access, clock, random, timeoutMs }).teamPolicy();
}

/** What an earlier nd7 has kept counts as what was seen, where it stands. */
function withHash(home: string, vault: VaultFile): VaultFile {
  if (vault.teamPolicy === undefined || vault.teamPolicyHash !== undefined) return vault;
  try {
    const kept = readTeamPolicy(home);
    return kept?.version === vault.teamPolicy ? { ...vault, teamPolicyHash: sha256Hex(utf8(kept.policy)) } : vault;
  } catch {
    return vault;
  }
}

function keepingOther<T>(home: string, text: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (isShipError(error) && error.code === 'two-policies') replaceFile(join(home, 'team-policy.other.json'), text);
    throw error;
  }
}

/** Between two looks at a lock that another has, milliseconds, and so many of them. */
const LOOK_MS = 20;
const LOOKS = 250;

/** Does what changes the kept policy while no other process of this home does. Throws ShipError `io` where another has been at it for seconds. */
async function alone<T>(home: string, work: () => T): Promise<T> {
  const path = join(home, 'team-policy.lock');
  const lock = openLock(path);
  try {
    for (let looks = 0; !tryLock(lock); looks++) {
      if (looks === LOOKS) throw io(path, new Error('another nd7 holds it'));
      await new Promise((done) => setTimeout(done, LOOK_MS));
    }
    return work();
  } finally {
    closeSync(lock);
  }
}

function openLock(path: string): number {
  try {
    return openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (cause) {
    throw io(path, cause);
  }
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
