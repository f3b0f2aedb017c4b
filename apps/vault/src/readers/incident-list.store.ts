import { Injectable } from '@nestjs/common';
import type { Incident, IncidentList, IncidentListQuery, Seen } from '@nd7/vault-api';
import type { Fragment, TransactionSql } from 'postgres';
import { Database } from '../db/database.js';
import { readCursor, writeCursor } from './cursor.js';

interface Row {
  id: string;
  kind: string;
  machine: string;
  session: string | null;
  count: number | null;
  at: Date;
  leaf_index: number | null;
  stored: string[] | null;
  second: string[] | null;
  seen: Seen | null;
  over: Date | null;
  why: string | null;
}

/** Incidents with the claims that prove them, the stored one first. */
@Injectable()
export class IncidentListStore {
  constructor(private readonly db: Database) {}

  /** One page, newest first, and how many are open in all: those must not be lost behind a page's end. */
  list(team: string, query: IncidentListQuery): Promise<IncidentList> {
    const after = query.cursor === undefined ? undefined : readCursor(query.cursor, 1);
    return this.db.tenant(team, async (tx) => {
      const rows = await this.rows(
        tx,
        tx`
          ${after === undefined ? tx`true` : tx`(i.at < ${after.at} or (i.at = ${after.at} and i.id > ${after.names[0] ?? ''}))`}
          and ${query.state === undefined ? tx`true` : query.state === 'open' ? tx`c.state is null` : tx`c.state = ${query.state}`}`,
        query.limit + 1,
      );
      const [sum] = await tx<{ open: number }[]>`select count(*) as open from nd7.open_incident`;
      const page = rows.slice(0, query.limit);
      const last = page.at(-1);
      return {
        incidents: page.map(incidentOf),
        open: sum?.open ?? 0,
        ...(rows.length > query.limit && last !== undefined ? { next_cursor: writeCursor(last.at, [last.id]) } : {}),
      };
    });
  }

  async one(team: string, id: string): Promise<Incident | undefined> {
    const [row] = await this.db.tenant(team, (tx) => this.rows(tx, tx`i.id = ${id}`, 1));
    return row === undefined ? undefined : incidentOf(row);
  }

  private rows(tx: TransactionSql, where: Fragment, limit: number): Promise<Row[]> {
    return tx<Row[]>`
      select i.id, i.kind, i.machine, i.session, i.count, i.at, l.leaf_index,
        case when g.head is not null then array[g.from_entry::text, g.to_entry::text, g.prev, g.head, g.signature] end as stored,
        case when e.id is not null then array[e.from_entry::text, e.to_entry::text, e.prev, e.head, e.signature] end as second,
        i.seen, c.at as over, c.why
      from nd7.incident i
        left join nd7.evidence e on e.id = i.evidence
        left join nd7.fork f on f.evidence = i.evidence and f.machine = i.machine and f.session = i.session and f.count = i.count
        left join nd7.segment g on g.machine = f.machine and g.session = f.session and g.from_entry = f.from_entry
        left join nd7.log_leaf l on l.leaf_id = i.leaf_id
        left join nd7.incident_change c on c.incident = i.id and c.state = 'over'
      where ${where} order by i.at desc, i.id limit ${limit}`;
  }
}

function incidentOf(row: Row): Incident {
  const claims = [row.stored, row.second].flatMap((fields) => {
    const [from, to, prev, head, signature] = fields ?? [];
    if (prev === undefined || head === undefined || signature === undefined) return [];
    return [{ from: Number(from), to: Number(to), prev, head, signature }];
  });
  return {
    id: row.id,
    kind: row.kind,
    machine: row.machine,
    ...(row.session === null ? {} : { session: row.session }),
    ...(row.count === null ? {} : { count: row.count }),
    at: row.at.toISOString(),
    ...(claims.length === 0 ? {} : { claims }),
    ...(row.leaf_index === null ? {} : { leaf_index: row.leaf_index }),
    ...(row.seen === null ? {} : { seen: row.seen }),
    ...(row.over === null
      ? { state: 'open' }
      : { state: 'over', over: { at: row.over.toISOString(), why: row.why ?? '' } }),
  };
}
