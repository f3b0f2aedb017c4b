// Whom this machine believes: the vault key and the witness policy pinned at enrolment, or what the command line names.
import { parsePolicy, parseVkey, type VerifierKey, type WitnessPolicy } from '@nd7/tlog';
import { CliError } from '../cli/io.js';
import { safeLine } from '../show/safe.js';

/** Verifier keys as the user wrote them. Throws CliError 2 for one that is none. */
export function keysOf(texts: readonly string[]): VerifierKey[] {
  return texts.map((text) => {
    const key = parseVkey(text.trim());
    if (key === undefined || key.type !== 1) {
      throw new CliError(
        2,
        `not a vault's verifier key: ${safeLine(text.slice(0, 160))}`,
        'it looks like vault.example/acme+e1a324c6+AUHe…',
      );
    }
    return key;
  });
}

/** A witness policy in the C2SP tlog-policy form. Throws CliError 2 naming the line that is wrong. */
export function policyOf(text: string, where: string): WitnessPolicy {
  const parsed = parsePolicy(text);
  if (!parsed.ok)
    throw new CliError(
      2,
      `${where}: the witness policy is wrong in line ${String(parsed.line)}: ${safeLine(parsed.problem)}`,
    );
  return parsed.policy;
}
