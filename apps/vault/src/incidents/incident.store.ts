import { Injectable } from '@nestjs/common';
import type { SignedClaim } from '@nd7/segment';
import type { Seen } from '@nd7/vault-api';
import type { TransactionSql } from 'postgres';
import { newId } from '../access/tokens.js';
import type { Random } from '../ports.js';

export interface NewIncident {
  team: string;
  kind: string;
  machine: string;
  session?: string;
  count?: number;
  evidence?: bigint;
  leafId?: bigint;
  seen?: Seen;
  at: Date;
}

/** What ingest writes when something is wrong: evidence, forks, vault-made closes, incidents. */
@Injectable()
export class IncidentStore {
  async countEvidence(tx: TransactionSql, machine: string, session: string): Promise<number> {
    const [row] = await tx<
      { n: number }[]
    >`select count(*) as n from nd7.evidence where machine = ${machine} and session = ${session}`;
    return row?.n ?? 0;
  }

  /** Keeps a signed claim; undefined when it is kept already. */
  async addEvidence(
    tx: TransactionSql,
    team: string,
    c: SignedClaim,
    body: string | null,
    at: Date,
  ): Promise<bigint | undefined> {
    const [row] = await tx<{ id: string }[]>`
      insert into nd7.evidence (team, machine, session, from_entry, to_entry, prev, head, signature, received, body)
      values (${team}, ${c.machine}, ${c.session}, ${c.from}, ${c.to}, ${c.prev}, ${c.head}, ${c.signature}, ${at}, ${body})
      on conflict do nothing returning id::text`;
    return row === undefined ? undefined : BigInt(row.id);
  }

  async addFork(
    tx: TransactionSql,
    f: {
      team: string;
      machine: string;
      session: string;
      count: number;
      from: number;
      evidence: bigint;
      leafId: bigint;
      at: Date;
    },
  ): Promise<void> {
    await tx`
      insert into nd7.fork (team, machine, session, count, from_entry, evidence, received, leaf_id)
      values (${f.team}, ${f.machine}, ${f.session}, ${f.count}, ${f.from}, ${String(f.evidence)}, ${f.at}, ${String(f.leafId)})`;
  }

  /** True the first time. */
  async markForked(tx: TransactionSql, machine: string, session: string, at: Date): Promise<boolean> {
    const [row] = await tx<{ first: boolean }[]>`select nd7.mark_forked(${machine}, ${session}, ${at}) as first`;
    return row?.first === true;
  }

  /** The vault's own word that a session is over. */
  async addClose(
    tx: TransactionSql,
    c: {
      team: string;
      machine: string;
      session: string;
      entries: number;
      head: string;
      reason: 'forked' | 'lost';
      at: Date;
      leafId: bigint;
    },
  ): Promise<void> {
    await tx`
      insert into nd7.session_statement (team, machine, session, type, entries, head, reason, received, leaf_id)
      values (${c.team}, ${c.machine}, ${c.session}, 'close', ${c.entries}, ${c.head}, ${c.reason}, ${c.at}, ${String(c.leafId)})
      on conflict do nothing`;
  }

  /** Raises an incident that is about a claim, once for what it is about. Those of silence are episodes (episodes.ts). */
  async add(tx: TransactionSql, i: NewIncident, random: Random): Promise<void> {
    await tx`
      insert into nd7.incident (team, id, kind, machine, session, count, evidence, leaf_id, at, seen)
      values (${i.team}, ${newId('i', random)}, ${i.kind}, ${i.machine}, ${i.session ?? null}, ${i.count ?? null},
        ${i.evidence === undefined ? null : String(i.evidence)}, ${i.leafId === undefined ? null : String(i.leafId)}, ${i.at},
        ${i.seen === undefined ? null : tx.json(i.seen)})
      on conflict do nothing`;
  }
}
