import { Injectable } from '@nestjs/common';
import type { SignedClaim } from '@nd7/segment';
import type { TransactionSql } from 'postgres';
import { Database } from '../db/database.js';
import type { ClearIndex } from './entry-index.js';
import type { HeldSession, StoredSegment } from './decide.js';

/** A verified segment, ready to be stored. */
export interface NewSegment {
  claim: SignedClaim;
  firstKey: string | undefined;
  keyAfter: string;
  sessionKeys: readonly string[];
  index: ClearIndex;
  received: Date;
  leafId: bigint;
  body: string;
  bytes: number;
}

interface SegmentRow {
  from_entry: number;
  to_entry: number;
  prev: string;
  head: string;
  signature: string;
  leaf_id: string;
  key_before: string | null;
}

export interface StoredBody {
  from: number;
  to: number;
  head: string;
  body: string;
}

/** Sessions and segments as ingest reads and moves them. */
@Injectable()
export class IngestStore {
  constructor(private readonly db: Database) {}

  /** The session's head, and every stored segment whose claim speaks of a count that this one speaks of. */
  standing(team: string, claim: SignedClaim): Promise<{ held: HeldSession | undefined; touching: StoredSegment[] }> {
    return this.db.tenant(team, async (tx) => {
      const [held, touching] = await Promise.all([
        this.held(tx, claim.machine, claim.session),
        this.touching(tx, claim),
      ]);
      return { held, touching };
    });
  }

  /** Whether the machine may still add to the log; holds its revocation off until the transaction has ended. */
  async stands(tx: TransactionSql, machine: string, at: Date): Promise<boolean> {
    const [row] = await tx<{ stands: boolean }[]>`select nd7.machine_stands(${machine}, ${at}) as stands`;
    return row?.stands === true;
  }

  async held(tx: TransactionSql, machine: string, session: string): Promise<HeldSession | undefined> {
    const [row] = await tx<HeldSession[]>`
      select entries, head, key, first_key as "firstKey", forked is not null as forked from nd7.session
      where machine = ${machine} and session = ${session}`;
    return row;
  }

  private async touching(tx: TransactionSql, claim: SignedClaim): Promise<StoredSegment[]> {
    const ends = [claim.from, claim.to];
    const rows = await tx<SegmentRow[]>`
      select s.from_entry, s.to_entry, s.prev, s.head, s.signature, s.leaf_id::text,
        (select b.key from nd7.segment b where b.machine = s.machine and b.session = s.session and b.to_entry = s.from_entry) as key_before
      from nd7.segment s
      where s.machine = ${claim.machine} and s.session = ${claim.session} and (s.from_entry = any (${ends}) or s.to_entry = any (${ends}))
      order by s.from_entry`;
    return rows.map((row) => ({
      claim: {
        ...claim,
        from: row.from_entry,
        to: row.to_entry,
        prev: row.prev,
        head: row.head,
        signature: row.signature,
      },
      leafId: BigInt(row.leaf_id),
      keyBefore: row.key_before,
    }));
  }

  /** The stored bodies that hold any entry of [from, to), in order. */
  bodiesOf(team: string, machine: string, session: string, from: number, to: number): Promise<StoredBody[]> {
    return this.db.tenant(
      team,
      (tx) => tx<StoredBody[]>`
        select from_entry as "from", to_entry as "to", head, body from nd7.segment
        where machine = ${machine} and session = ${session} and from_entry < ${to} and to_entry > ${from} order by from_entry`,
    );
  }

  /** Moves the head and stores the segment, in one statement; or says why not. */
  async take(tx: TransactionSql, s: NewSegment): Promise<'stored' | 'moved' | 'revoked'> {
    const { claim: c, index } = s;
    const [row] = await tx<{ outcome: 'stored' | 'moved' | 'revoked' }[]>`
      select nd7.take_segment(
        ${c.machine}, ${c.session}, ${c.from}, ${c.to}, ${c.prev}, ${c.head}, ${c.signature}, ${s.firstKey ?? null}, ${s.keyAfter},
        ${s.sessionKeys as string[]}, ${s.received}, ${String(s.leafId)}::bigint, ${s.body}, ${s.bytes}, ${index.agent}, ${index.counts as number[]},
        ${index.times}, ${index.label}, ${index.labels}) as outcome`;
    return row?.outcome ?? 'moved';
  }
}
