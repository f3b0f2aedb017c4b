import { Injectable } from '@nestjs/common';
import type { TransactionSql } from 'postgres';
import { Database } from '../db/database.js';

/** Rows of enrolment: secrets, machines, their tokens and names. */
@Injectable()
export class EnrolStore {
  constructor(private readonly db: Database) {}

  /** The team of an enrolment secret, whatever became of it. */
  async teamOf(secretHash: string): Promise<string | undefined> {
    const [row] = await this.db.sql<{ team: string | null }[]>`select nd7.team_of_enrolment(${secretHash}) as team`;
    return row?.team ?? undefined;
  }

  /** The secret's state: by whom it was used, and whether it has expired. */
  async secret(
    tx: TransactionSql,
    secretHash: string,
    now: Date,
  ): Promise<{ usedBy: string | null; expired: boolean } | undefined> {
    const [row] = await tx<{ usedBy: string | null; expired: boolean }[]>`
      select u.machine as "usedBy", e.expires <= ${now} as expired
      from nd7.enrolment e left join nd7.enrolment_use u using (team, secret_hash)
      where e.secret_hash = ${secretHash}`;
    return row;
  }

  /** Whether a key is known in any team in a role that a machine key must not have. */
  async isOtherRole(tx: TransactionSql, key: string): Promise<boolean> {
    const [row] = await tx<{ other: boolean }[]>`
      select nd7.is_session_key(${key}) or nd7.is_vault_key(decode(${key}, 'hex')) as other`;
    return row?.other === true;
  }

  /** What the team knows of a machine key already. */
  async known(tx: TransactionSql, machine: string): Promise<'new' | 'enrolled' | 'revoked'> {
    const [row] = await tx<{ known: 'new' | 'enrolled' | 'revoked' }[]>`
      select case
        when exists (select from nd7.machine_revocation where machine = ${machine}) then 'revoked'
        when exists (select from nd7.machine where machine = ${machine}) then 'enrolled' else 'new' end as known`;
    return row?.known ?? 'new';
  }

  async addMachine(
    tx: TransactionSql,
    m: {
      team: string;
      machine: string;
      name: string;
      nameHash: string;
      signature: string;
      enrolled: Date;
      leafId: bigint;
    },
  ): Promise<void> {
    await tx`
      insert into nd7.machine (team, machine, name_hash, signature, enrolled, leaf_id)
      values (${m.team}, ${m.machine}, ${m.nameHash}, ${m.signature}, ${m.enrolled}, ${String(m.leafId)})`;
    await tx`insert into nd7.machine_name (team, machine, name) values (${m.team}, ${m.machine}, ${m.name})`;
  }

  /** Uses the secret up; false when somebody was first. */
  async use(tx: TransactionSql, team: string, secretHash: string, machine: string): Promise<boolean> {
    const rows = await tx`
      insert into nd7.enrolment_use (team, secret_hash, machine) values (${team}, ${secretHash}, ${machine}) on conflict do nothing returning 1`;
    return rows.length === 1;
  }

  async addToken(tx: TransactionSql, team: string, machine: string, hash: string): Promise<void> {
    await tx`insert into nd7.machine_token (team, token_hash, machine) values (${team}, ${hash}, ${machine})`;
  }

  /** The witness policy a person set for the team, if any. */
  async policy(tx: TransactionSql): Promise<string | undefined> {
    const [row] = await tx<
      { value: string }[]
    >`select value from nd7.team_setting where name = 'policy' order by id desc limit 1`;
    return row?.value;
  }
}
