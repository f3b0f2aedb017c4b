import type { Clock, Random } from '@nd7/entry';
import { toBase64, utf8 } from '@nd7/entry';
import { checkReceiptItself } from '@nd7/receipt';
import { enrolMessage } from '@nd7/segment';
import { createKeyFile, loadKeyFile, sha256Hex, SigningError, verifySignatures, type KeyPair } from '@nd7/signing';
import { isOrigin, parsePolicy, parseVkey } from '@nd7/tlog';
import { type EnrolAnswer, type Enrolment, EnrolRequest, parseEnrolmentToken } from '@nd7/vault-api';
import { join } from 'node:path';
import { VaultClient } from './client.js';
import { makeFolder, replaceFile } from './disk.js';
import { ShipError, VaultError, isVaultError } from './error.js';
import { pause, type Sleep } from './retry.js';
import { readVaultFile, trustOf, writeVaultFile, type VaultFile } from './vault-file.js';

export interface EnrolOptions {
  /** The vault's address. */
  url: string;
  /** `nd7e1_<secret>_<hash of the vault's verifier key>`, as the team's admin gave it. */
  token: string;
  /** What people call this machine; it stands in an erasable table of the vault, never in its log. */
  name: string;
  /** `$ND7_HOME`. */
  home: string;
  clock: Clock;
  random: Random;
  /** Allow http:// to another host: for a vault behind a tunnel or in a test network. */
  insecure?: boolean;
  /** Put another vault in place of the one this machine is enrolled at. */
  replace?: boolean;
  /** How long to wait for the enrol leaf's receipt, milliseconds. */
  receiptWaitMs?: number;
  sleep?: Sleep;
}

export interface Enrolled {
  vault: VaultFile;
  /** The verified receipt of the enrol leaf (kept as `enrolment.tlog-proof`); undefined where the vault had not published it in time. */
  receipt?: string;
}

/** Salted with the one-time secret: a name can be guessed, and what stands in a log stands there for ever. */
export function nameHash(secret: string, name: string): string {
  return sha256Hex(utf8(`nd7/name/v1\n${secret}\n${name}\n`));
}

/**
 * Enrols this machine at a vault: the token's hash says which verifier key the vault must show before it is shown the secret; the machine key is made
 * where there is none; what is pinned goes to `vault.json`. Throws ShipError (`bad-token`, `bad-name`, `wrong-vault`, `insecure-url`, `enrolled`, `bad-receipt`),
 * VaultError, SigningError. Nothing is written before the vault has said yes, the machine key excepted.
 */
export async function enrol(options: EnrolOptions): Promise<Enrolled> {
  const { token, name, home, clock, random, sleep = pause } = options;
  const parts = parseEnrolmentToken(token);
  if (parts === undefined)
    throw new ShipError(
      'bad-token',
      'this is no enrolment token: it has the form nd7e1_<43 characters>_<64 hex digits>, without spaces; ask for a new one',
    );
  if (!EnrolRequest.shape.name.safeParse(name).success)
    throw new ShipError(
      'bad-name',
      `${JSON.stringify(name.slice(0, 40))} cannot be this machine's name: give 1 to 128 characters that neither begin nor end with a space (--name)`,
    );
  const url = vaultUrl(options.url, options.insecure === true);
  const present = readVaultFile(home);
  if (present !== undefined && options.replace !== true) {
    throw new ShipError(
      'enrolled',
      `this machine is enrolled already, at ${present.url} for team ${present.team}: enrol it anew only to put another vault in its place (--replace)`,
    );
  }
  const client = new VaultClient({ url, clock, random });
  const offered = await client.enrolment(sha256Hex(utf8(parts.secret))).catch((error: unknown) => {
    if (isVaultError(error) && error.code === 'not-found')
      throw new VaultError(
        'bad-enrolment',
        404,
        `${url} does not know this enrolment token: it was used, has expired, or is another vault's. Ask the team's admin for a new one (nd7-vault enrolment create)`,
      );
    throw error;
  });
  checkOffer(offered, parts.vkeyHash, url);

  const key = machineKey(home);
  const claim = { origin: offered.origin, machine: key.publicKey, nameHash: nameHash(parts.secret, name) };
  const signature = toBase64(key.sign(enrolMessage(claim)));
  const answer = await client.enrol({
    secret: parts.secret,
    machine: claim.machine,
    name,
    name_hash: claim.nameHash,
    signature,
  });
  checkAnswer(answer, offered, claim.machine, url);
  const vault: VaultFile = {
    url,
    team: answer.team,
    origin: answer.origin,
    vkey: answer.vkey,
    machine: answer.machine,
    token: answer.token,
    policy: answer.policy,
    ...seenOf(present, answer),
  };
  writeVaultFile(home, vault);

  const access = { machine: vault.machine, token: vault.token, signer: key };
  const enrolled = new VaultClient({ url, clock, random, access });
  const receipt = await awaitReceipt(enrolled, answer.receipt_location, clock, sleep, options.receiptWaitMs ?? 5000);
  if (receipt === undefined) return { vault };
  await checkEnrolReceipt(receipt, vault);
  replaceFile(join(home, 'enrolment.tlog-proof'), receipt);
  return { vault, receipt };
}

/** An address that can be shipped to: https, or http on this machine. Throws ShipError `insecure-url`. */
export function vaultUrl(text: string, insecure: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    (url.protocol !== 'https:' && url.protocol !== 'http:') ||
    url.username !== '' ||
    url.search !== '' ||
    url.hash !== ''
  ) {
    throw new ShipError(
      'insecure-url',
      `${JSON.stringify(text)} is no address of a vault: it looks like https://vault.example`,
    );
  }
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
  if (url.protocol === 'http:' && !local && !insecure) {
    throw new ShipError(
      'insecure-url',
      `${text} is not encrypted, and what is shipped would be readable on the way: use https (or --insecure where the way is safe by other means)`,
    );
  }
  return url.href.replace(/\/+$/, '');
}

function checkOffer(offered: Enrolment, vkeyHash: string, url: string): void {
  if (sha256Hex(utf8(offered.vkey)) !== vkeyHash) {
    throw new ShipError(
      'wrong-vault',
      `${url} shows another key than the one this enrolment token was made for (${offered.vkey}): it is not the vault it should be, or the token is another vault's. The secret was not sent.`,
    );
  }
  const key = parseVkey(offered.vkey);
  if (key?.type !== 1 || !isOrigin(offered.origin) || key.name !== offered.origin) {
    throw new ShipError(
      'wrong-vault',
      `${url} shows a key that does not sign for its log ${JSON.stringify(offered.origin)}: ${offered.vkey}`,
    );
  }
  const policy = parsePolicy(offered.policy);
  if (!policy.ok)
    throw new ShipError(
      'wrong-vault',
      `${url} shows a witness policy that cannot be read (line ${String(policy.line)}): ${policy.problem}`,
    );
}

/** What the vault says after the secret must be what it said before. */
function checkAnswer(answer: EnrolAnswer, offered: Enrolment, machine: string, url: string): void {
  for (const member of ['origin', 'vkey', 'team', 'policy'] as const) {
    if (answer[member] !== offered[member])
      throw new ShipError(
        'wrong-vault',
        `${url} shows another ${member} after enrolment than before: nothing was kept; ask the team's admin`,
      );
  }
  if (answer.machine !== machine || !/^nd7m1_[A-Za-z0-9_-]{43}$/.test(answer.token)) {
    throw new ShipError(
      'wrong-vault',
      `${url} enrolled another machine than this one, or gave no machine token: nothing was kept; ask the team's admin`,
    );
  }
}

function machineKey(home: string): KeyPair {
  const path = join(home, 'keys', 'machine.key');
  try {
    return loadKeyFile(path);
  } catch (error) {
    if (!(error instanceof SigningError) || error.code !== 'missing') throw error;
  }
  makeFolder(join(home, 'keys'));
  return createKeyFile(path);
}

async function awaitReceipt(
  client: VaultClient,
  location: string,
  clock: Clock,
  sleep: Sleep,
  waitMs: number,
): Promise<string | undefined> {
  const until = clock.now() + waitMs;
  for (let delay = 100; ; delay = Math.min(delay * 2, 1000)) {
    try {
      const receipt = await client.receipt(location);
      if (receipt !== undefined) return receipt;
    } catch (error) {
      // The machine is enrolled all the same; its receipt can be fetched later.
      if (!isVaultError(error) || !error.isTransient) throw error;
    }
    if (clock.now() + delay > until) return undefined;
    await sleep(delay);
  }
}

async function checkEnrolReceipt(text: string, vault: VaultFile): Promise<void> {
  const verdict = await checkReceiptItself(text, trustOf(vault), verifySignatures, { anyType: true });
  if (!verdict.ok)
    throw new ShipError(
      'bad-receipt',
      `the vault's receipt for this machine's enrolment does not hold: ${verdict.reason}`,
      { reason: verdict.reason },
    );
  const { statement } = verdict.receipt;
  // By which name is between this machine's signature and an earlier enrolment of it.
  if (statement.type !== 'enrol' || statement.machine !== vault.machine) {
    throw new ShipError('bad-receipt', "the vault's receipt for this machine's enrolment speaks of something else", {
      reason: 'receipt-mismatch',
    });
  }
}

/** The version of the team's policy that was seen counts on where the same key speaks for the same log: it takes no older one either. */
function seenOf(
  present: VaultFile | undefined,
  { origin, vkey }: Pick<VaultFile, 'origin' | 'vkey'>,
): Pick<VaultFile, 'teamPolicy' | 'teamPolicyHash'> {
  const isSame = present?.origin === origin && present.vkey === vkey;
  if (!isSame || present.teamPolicy === undefined) return {};
  const { teamPolicy, teamPolicyHash } = present;
  return { teamPolicy, ...(teamPolicyHash === undefined ? {} : { teamPolicyHash }) };
}
