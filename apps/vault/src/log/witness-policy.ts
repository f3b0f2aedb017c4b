import { parsePolicy } from '@nd7/tlog';
import type { VaultConfig } from '../config.js';
import { GuardError } from '../db/boot-check.js';
import { connect } from '../db/database.js';

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

/** Throws GuardError naming each team whose policy in force this vault cannot keep. */
export async function checkPolicies(config: Pick<VaultConfig, 'databaseUrl'>): Promise<void> {
  const sql = connect(config.databaseUrl, { max: 1, role: 'nd7_app' });
  try {
    const lines: string[] = [];
    for (const { team } of await sql<{ team: string }[]>`select team from nd7.teams() as t (team)`) {
      const [row] = await sql.begin(async (tx) => {
        await tx`select set_config('nd7.team', ${team}, true)`;
        return tx<
          { value: string }[]
        >`select value from nd7.team_setting where name = 'policy' order by id desc limit 1`;
      });
      const why = row === undefined ? undefined : whyNotPolicy(row.value);
      if (why !== undefined)
        lines.push(
          `the witness policy of team ${team} cannot be kept: ${why} (\`nd7-vault team set policy FILE --team ${team}\`)`,
        );
    }
    if (lines.length > 0) throw new GuardError(lines);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
