// The statements of the table of team policies, each inside a transaction of one team (`Database.tenant`).
import type { TeamPolicy } from '@nd7/vault-api';
import type { TransactionSql } from 'postgres';

export async function newestTeamPolicy(tx: TransactionSql, team: string): Promise<TeamPolicy | undefined> {
  const [row] = await tx<TeamPolicy[]>`
    select version, note, policy from nd7.team_policy where team = ${team} order by version desc limit 1`;
  return row && { version: Number(row.version), note: row.note, policy: row.policy };
}

/** False where another has taken this version meanwhile. */
export async function addTeamPolicy(
  tx: TransactionSql,
  team: string,
  { version, note, policy }: TeamPolicy,
): Promise<boolean> {
  const rows = await tx`
    insert into nd7.team_policy (team, version, note, policy) values (${team}, ${version}, ${note}, ${policy})
    on conflict do nothing returning 1`;
  return rows.length === 1;
}
