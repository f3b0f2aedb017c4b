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

/** A row of `nd7.standing`: the session in each, beside one segment. Null where there is none. */
type StandingRow = (SessionColumns | { entries: null }) & (SegmentColumns | { from_entry: null });

interface SessionColumns {
  entries: number;
  head: string;
  key: string;
  first_key: string;
  forked: boolean;
}

interface SegmentColumns {
  from_entry: number;
  to_entry: number;
  prev: string;
  segment_head: string;
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

  /** The session's head, and every stored segment whose claim speaks of a count that this one speaks of; one statement (`nd7.standing`). */
  async standing(
    team: string,
    claim: SignedClaim,
  ): Promise<{ held: HeldSession | undefined; touching: StoredSegment[] }> {
    const rows = await this.db.sql<StandingRow[]>`
      select entries, head, key, first_key, forked, from_entry, to_entry, prev, segment_head, signature, leaf_id::text, key_before
      from nd7.standing(${team}, ${claim.machine}, ${claim.session}, ${claim.from}, ${claim.to})`;
    const [first] = rows;
    return {
      held: first?.entries == null ? undefined : heldOf(first),
      touching: rows.flatMap((row) => (row.from_entry === null ? [] : [segmentOf(row, claim)])),
    };
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
        ${arrayText(index.times)}::text::bigint[], ${arrayText(index.label)}::text::smallint[], ${index.labels}) as outcome`;
    return row?.outcome ?? 'moved';
  }
}

function heldOf({ entries, head, key, first_key: firstKey, forked }: SessionColumns): HeldSession {
  return { entries, head, key, firstKey, forked };
}

function segmentOf(row: SegmentColumns, claim: SignedClaim): StoredSegment {
  const { from_entry: from, to_entry: to, prev, segment_head: head, signature } = row;
  return {
    claim: { ...claim, from, to, prev, head, signature },
    leafId: BigInt(row.leaf_id),
    keyBefore: row.key_before,
  };
}

/** Numbers as PostgreSQL writes an array. The driver would quote and escape each. */
function arrayText(numbers: readonly number[]): string {
  return `{${numbers.join(',')}}`;
}
