import { Injectable } from '@nestjs/common';
import type { SessionList, SessionListQuery, SessionPage, SessionRow } from '@nd7/vault-api';
import type { Fragment, TransactionSql } from 'postgres';
import { Database } from '../db/database.js';
import { readCursor, writeCursor } from './cursor.js';

interface Row {
  machine: string;
  machine_name: string | null;
  session: string;
  agent: string | null;
  started: Date | null;
  last_time: Date | null;
  received: Date;
  entries: number;
  head: string;
  segments: number;
  counts: number[];
  forked: boolean;
  close_reason: string | null;
  incidents: number;
}

/** Sessions as readers see them. */
@Injectable()
export class SessionListStore {
  constructor(private readonly db: Database) {}

  /** One page, newest first; the cursor is the last row’s place, so that new sessions neither repeat nor hide old ones. */
  list(team: string, query: SessionListQuery): Promise<SessionList> {
    const after = query.cursor === undefined ? undefined : readCursor(query.cursor, 2);
    return this.db.tenant(team, async (tx) => {
      const rows = await this.rows(
        tx,
        tx`
          ${after === undefined ? tx`true` : tx`(s.received < ${after.at} or (s.received = ${after.at} and (s.machine::text, s.session::text) > (${after.names[0] ?? ''}, ${after.names[1] ?? ''})))`}
          and ${query.machine === undefined ? tx`true` : tx`s.machine = ${query.machine}`}
          and ${query.agent === undefined ? tx`true` : tx`s.agent = ${query.agent}`}
          and ${stateIs(tx, query.state)}`,
        query.limit + 1,
      );
      const page = rows.slice(0, query.limit);
      const last = page.at(-1);
      const more = rows.length > query.limit && last !== undefined;
      return {
        sessions: page.map(rowOf),
        ...(more ? { next_cursor: writeCursor(last.received, [last.machine, last.session]) } : {}),
      };
    });
  }

  page(team: string, machine: string, session: string): Promise<SessionPage | undefined> {
    return this.db.tenant(team, async (tx) => {
      const [row] = await this.rows(tx, tx`s.machine = ${machine} and s.session = ${session}`, 1);
      if (row === undefined) return undefined;
      const segments = await tx<
        {
          from: number;
          to: number;
          prev: string;
          head: string;
          received: Date;
          bytes: number;
          leaf_index: number | null;
          receipt: boolean;
        }[]
      >`
        select g.from_entry as "from", g.to_entry as "to", g.prev, g.head, g.received, g.bytes, l.leaf_index,
          coalesce(l.leaf_index < (select max(size) from nd7.log_publication), false) as receipt
        from nd7.segment g left join nd7.log_leaf l on l.team = g.team and l.leaf_id = g.leaf_id
        where g.machine = ${machine} and g.session = ${session} order by g.from_entry`;
      return {
        ...rowOf(row),
        segments: segments.map(({ received, leaf_index: index, ...rest }) => ({
          ...rest,
          received: received.toISOString(),
          ...(index === null ? {} : { leaf_index: index }),
        })),
      };
    });
  }

  private rows(tx: TransactionSql, where: Fragment, limit: number): Promise<Row[]> {
    return tx<Row[]>`
      select s.machine, n.name as machine_name, s.session, s.agent, s.started, s.last_time, s.received, s.entries, s.head, s.segments, s.counts,
        s.forked is not null as forked, c.reason as close_reason,
        (select count(*) from nd7.incident i where i.machine = s.machine and i.session = s.session) as incidents
      from nd7.session s
        left join nd7.machine_name n on n.machine = s.machine
        left join lateral (
          select reason from nd7.session_statement c
          where c.machine = s.machine and c.session = s.session and c.type = 'close' and c.entries >= s.entries
            -- What was lost may have been found again.
            and (c.reason <> 'lost' or exists (
              select from nd7.open_incident i where i.kind = 'session-unclosed' and i.machine = s.machine and i.session = s.session
            ))
          order by c.leaf_id desc limit 1
        ) c on true
      where ${where}
      order by s.received desc, s.machine::text, s.session::text limit ${limit}`;
  }
}

function stateIs(tx: TransactionSql, state: SessionListQuery['state']): Fragment {
  if (state === undefined) return tx`true`;
  if (state === 'forked') return tx`s.forked is not null`;
  return state === 'closed'
    ? tx`(s.forked is null and c.reason is not null)`
    : tx`(s.forked is null and c.reason is null)`;
}

function rowOf(row: Row): SessionRow {
  const [intent = 0, effect = 0, decision = 0, recorder = 0, unclassified = 0] = row.counts;
  const { machine, session, agent, entries, head, segments, incidents } = row;
  return {
    machine,
    machine_name: row.machine_name ?? '',
    session,
    agent,
    started: row.started?.toISOString() ?? null,
    last_time: row.last_time?.toISOString() ?? null,
    received: row.received.toISOString(),
    entries,
    head,
    segments,
    counts: { intent, effect, decision, recorder, unclassified },
    state: row.forked ? 'forked' : row.close_reason === null ? 'open' : 'closed',
    ...(row.close_reason === null ? {} : { close_reason: row.close_reason }),
    incidents,
  };
}
