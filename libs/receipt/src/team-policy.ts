import { fromHex, utf8 } from '@nd7/entry';
import { isOrigin, parseNote, verifiesNow, type VerifierKey } from '@nd7/tlog';

/*
 * What a vault signs of a team's policy: a note whose text is
 *
 *     <origin>
 *     nd7/team-policy/v1
 *     version <n>
 *     policy <SHA-256 of the policy's exact bytes, 64 hex>
 *
 * Vault keys sign notes whose first line is an origin, so this is one; its second line is no size and it has four lines, so that it can never be read
 * as a checkpoint (docs/receipt.md).
 */

/** A team's policy as it is signed: of this log's team, the n-th, these bytes. */
export interface TeamPolicyStatement {
  origin: string;
  /** From 1; a machine takes no smaller one than it has seen. */
  version: number;
  /** 64 hex. */
  policySha256: string;
}

/** The text of the note, which is what is signed. Throws RangeError for what is no such statement. */
export function formatTeamPolicy({ origin, version, policySha256 }: TeamPolicyStatement): string {
  if (!isOrigin(origin) || !Number.isSafeInteger(version) || version < 1 || fromHex(policySha256)?.length !== 32)
    throw new RangeError('not a team policy');
  return `${origin}\nnd7/team-policy/v1\nversion ${version}\npolicy ${policySha256}\n`;
}

/** Reads the text of a note; undefined for any other. */
export function parseTeamPolicy(text: string): TeamPolicyStatement | undefined {
  const match = /^([^\n]+)\nnd7\/team-policy\/v1\nversion ([1-9][0-9]{0,15})\npolicy ([0-9a-f]{64})\n$/.exec(text);
  const [, origin = '', version = '', policySha256 = ''] = match ?? [];
  if (!isOrigin(origin) || !Number.isSafeInteger(Number(version))) return undefined;
  return { origin, version: Number(version), policySha256 };
}

export type TeamPolicyFault = 'bad-note' | 'bad-signature' | 'wrong-origin' | 'other-bytes';

/**
 * Checks a team's policy against the key that was pinned: the note is one of this origin, that key's line in it is good and none of them bad, and the
 * bytes are those that were signed. `sha256Hex` is of the policy as it came. Any text is safe to hand in.
 */
export function checkTeamPolicy(
  note: string,
  policySha256: string,
  pinned: { origin: string; key: VerifierKey },
): TeamPolicyStatement | { fault: TeamPolicyFault } {
  const parsed = parseNote(note);
  const statement = parsed && parseTeamPolicy(parsed.text);
  if (parsed === undefined || statement === undefined) return { fault: 'bad-note' };
  const message = utf8(parsed.text);
  const own = parsed.signatures.filter(({ name, id }) => name === pinned.key.name && id === pinned.key.id);
  const good = own.filter(({ signature }) => verifiesNow({ key: pinned.key.key, message, signature }));
  if (pinned.key.type !== 1 || own.length === 0 || good.length < own.length) return { fault: 'bad-signature' };
  if (statement.origin !== pinned.origin || pinned.key.name !== pinned.origin) return { fault: 'wrong-origin' };
  return statement.policySha256 === policySha256 ? statement : { fault: 'other-bytes' };
}
