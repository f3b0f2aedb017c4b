import { parsePolicy } from '@nd7/tlog';

/**
 * Why this vault cannot serve machines under a witness policy (C2SP tlog-policy); undefined when it can. It gathers no cosignatures in this
 * release: under a quorum every machine would refuse every receipt, and a quorum that is not kept must not look like one that is.
 */
export function whyNotPolicy(text: string): string | undefined {
  const parsed = parsePolicy(text);
  if (!parsed.ok) return `line ${String(parsed.line)}: ${parsed.problem}`;
  const { quorum } = parsed.policy;
  if (quorum === 'none') return undefined;
  return `it asks for the quorum ${quorum}, and this release gathers no cosignatures: every receipt would be refused by every machine. Write \`quorum none\``;
}
