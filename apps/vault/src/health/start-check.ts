// What the service looks at before it starts, besides the guards: whether it could keep what it is about to promise.
import type { VaultConfig } from '../config.js';
import { GuardError } from '../db/boot-check.js';
import { connect } from '../db/database.js';
import { whyNotPolicy } from '../log/witness-policy.js';

/** Throws GuardError, one line for each thing in the way. */
export async function checkStart(config: Pick<VaultConfig, 'databaseUrl'>): Promise<void> {
  const sql = connect(config.databaseUrl, { max: 1, role: 'nd7_app' });
  try {
    const [server] = await sql<{ standby: boolean }[]>`select pg_is_in_recovery() as standby`;
    if (server?.standby === true)
      throw new GuardError([
        'the database is a standby that follows another: it takes nothing. Promote it, or set ND7_DATABASE_URL to the primary',
      ]);
    const lines: string[] = [];
    for (const { team } of await sql<{ team: string }[]>`select team from nd7.teams() as t (team)`) {
      const [row] = await sql.begin(async (tx) => {
        await tx`select set_config('nd7.team', ${team}, true)`;
        return tx<{ value: string }[]>`
          select value from nd7.team_setting where name = 'policy' order by id desc limit 1`;
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
