import { Injectable } from '@nestjs/common';
import type { SessionStatus } from '@nd7/vault-api';
import type { TransactionSql } from 'postgres';
import { Database } from '../db/database.js';

export interface StoredStatement {
  leafId: bigint;
  head: string;
  key: string | null;
}

/** What machines ask and state of their own sessions. */
@Injectable()
export class SessionStore {
  constructor(private readonly db: Database) {}

  status(team: string, machine: string, session: string): Promise<SessionStatus | undefined> {
    return this.db.tenant(team, async (tx) => {
      const [row] = await tx<(Omit<SessionStatus, 'session' | 'next' | 'sealed_to'> & { first_key: string })[]>`
        select s.entries, s.head, s.key, s.forked is not null as forked,
          exists (
            select from nd7.session_statement c where c.machine = s.machine and c.session = s.session and c.type = 'close' and c.entries >= s.entries
          ) as closed
        from nd7.session s where s.machine = ${machine} and s.session = ${session}`;
      if (row === undefined) return undefined;
      const { entries, head, key, forked, closed } = row;
      // Every segment ends with a seal.
      return { session, entries, head, key, sealed_to: entries - 1, closed, forked, next: entries };
    });
  }

  /** The head after a count that is a segment's end, undefined elsewhere. */
  async headAt(tx: TransactionSql, machine: string, session: string, entries: number): Promise<string | undefined> {
    const [row] = await tx<{ head: string }[]>`
      select head from nd7.segment where machine = ${machine} and session = ${session} and to_entry = ${entries}`;
    return row?.head;
  }

  async statement(
    tx: TransactionSql,
    machine: string,
    session: string,
    type: 'open' | 'close',
    entries: number,
    reason: string,
  ): Promise<StoredStatement | undefined> {
    const [row] = await tx<{ leaf_id: string; head: string; key: string | null }[]>`
      select leaf_id::text, head, key from nd7.session_statement
      where machine = ${machine} and session = ${session} and type = ${type} and entries = ${entries} and reason = ${reason}`;
    return row === undefined ? undefined : { leafId: BigInt(row.leaf_id), head: row.head, key: row.key };
  }

  async addStatement(
    tx: TransactionSql,
    s: {
      team: string;
      machine: string;
      session: string;
      type: 'open' | 'close';
      entries: number;
      head: string;
      key: string | null;
      reason: string;
      signature: string;
      received: Date;
      leafId: bigint;
    },
  ): Promise<boolean> {
    const rows = await tx`
      insert into nd7.session_statement (team, machine, session, type, entries, head, key, reason, signature, received, leaf_id)
      values (${s.team}, ${s.machine}, ${s.session}, ${s.type}, ${s.entries}, ${s.head}, ${s.key}, ${s.reason}, ${s.signature}, ${s.received}, ${String(s.leafId)})
      on conflict do nothing returning 1`;
    return rows.length === 1;
  }

  /** Leaf of a segment's statement. */
  segmentLeaf(team: string, machine: string, session: string, from: number): Promise<bigint | undefined> {
    return this.leaf(
      team,
      (tx) =>
        tx`select leaf_id::text from nd7.segment where machine = ${machine} and session = ${session} and from_entry = ${from}`,
    );
  }

  /** Leaf of an open or close statement; of several at one count the newest. */
  statementLeaf(
    team: string,
    machine: string,
    session: string,
    type: string,
    entries: number,
  ): Promise<bigint | undefined> {
    return this.leaf(
      team,
      (tx) => tx`
        select leaf_id::text from nd7.session_statement
        where machine = ${machine} and session = ${session} and type = ${type} and entries = ${entries} order by leaf_id desc limit 1`,
    );
  }

  enrolLeaf(team: string, machine: string): Promise<bigint | undefined> {
    return this.leaf(team, (tx) => tx`select leaf_id::text from nd7.machine where machine = ${machine}`);
  }

  private async leaf(
    team: string,
    query: (tx: TransactionSql) => PromiseLike<readonly unknown[]>,
  ): Promise<bigint | undefined> {
    const [row] = (await this.db.tenant(team, async (tx) => query(tx))) as readonly { leaf_id: string }[];
    return row === undefined ? undefined : BigInt(row.leaf_id);
  }
}
