import { isHex } from '@nd7/entry';
import type { Trust } from '@nd7/receipt';
import { isOrigin, parsePolicy, parseVkey, type Signer } from '@nd7/tlog';
import { join } from 'node:path';
import { readText, replaceFile } from './disk.js';
import { ShipError } from './error.js';

/** `vault.json`: where this machine ships to, and what it pinned when it enrolled. */
export interface VaultFile {
  url: string;
  team: string;
  /** The log's name, `<vault>/<team>`. */
  origin: string;
  /** The verifier key that signs receipts. */
  vkey: string;
  /** This machine's public key, 64 hex. */
  machine: string;
  /** The bearer token, worth nothing without the machine key. */
  token: string;
  /** Witness policy (C2SP tlog-policy). */
  policy: string;
  /** Highest version of the team's policy that this machine has seen; absent: the team had none. */
  teamPolicy?: number;
  /** SHA-256 of that version's exact bytes, 64 hex; absent where an earlier nd7 fetched it. */
  teamPolicyHash?: string;
}

const MEMBERS = ['url', 'team', 'origin', 'vkey', 'machine', 'token', 'policy'] as const;

/** Reads `vault.json`; undefined where the machine is not enrolled. Throws ShipError `io` for a file that is none. */
export function readVaultFile(home: string): VaultFile | undefined {
  const path = join(home, 'vault.json');
  const text = readText(path);
  if (text === undefined) return undefined;
  const broken = (what: string): ShipError =>
    new ShipError('io', `${path} ${what}: put it back from a copy, or remove it and enrol this machine again`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw broken('is not JSON');
  }
  const file = value as Partial<Record<(typeof MEMBERS)[number], unknown>> | null;
  for (const member of MEMBERS) if (typeof file?.[member] !== 'string') throw broken(`has no ${member}`);
  const vault = file as VaultFile;
  if (vault.teamPolicy !== undefined && !(Number.isSafeInteger(vault.teamPolicy) && vault.teamPolicy > 0))
    throw broken('has a teamPolicy that is no version');
  if (vault.teamPolicyHash !== undefined && !isHex(vault.teamPolicyHash, 32))
    throw broken('has a teamPolicyHash that is none');
  if (!URL.canParse(vault.url) || !isOrigin(vault.origin) || !isHex(vault.machine, 32))
    throw broken('has a url, origin or machine that is none');
  if (parseVkey(vault.vkey)?.type !== 1 || !parsePolicy(vault.policy).ok)
    throw broken('has a key or a witness policy that is none');
  return vault;
}

/** Writes `vault.json`, 0600, whole or not at all. */
export function writeVaultFile(home: string, vault: VaultFile): void {
  replaceFile(join(home, 'vault.json'), `${JSON.stringify(vault, [...MEMBERS, 'teamPolicy', 'teamPolicyHash'], 2)}\n`);
}

/** Throws ShipError `wrong-key` where a machine signs with another key than it was enrolled with: a vault takes nothing from it. */
export function checkKey(vault: Pick<VaultFile, 'machine' | 'url'>, signer: Pick<Signer, 'publicKey'>): void {
  if (signer.publicKey === vault.machine) return;
  const text = `keys/machine.key is ${signer.publicKey.slice(0, 12)}…, and this machine was enrolled at ${vault.url} with ${vault.machine.slice(0, 12)}…: put that key back from a copy, or enrol anew with \`nd7 enrol URL TOKEN --replace\``;
  throw new ShipError('wrong-key', text);
}

/** Whom an enrolled machine believes: the pinned key, and the pinned policy's quorum. */
export function trustOf(vault: Pick<VaultFile, 'vkey' | 'policy'>): Trust {
  const [key, policy] = [parseVkey(vault.vkey), parsePolicy(vault.policy)];
  if (key === undefined || !policy.ok) throw new TypeError('a vault file that was not checked');
  return { keys: [key], policy: policy.policy };
}
