// What ends an incident of silence. Each statement gives the open incidents of one kind that are over, and by what.
import type { TransactionSql } from 'postgres';
import type { SilenceKind, Why } from '../incidents/episodes.js';
import type { Moment } from './facts.js';

export interface Ended {
  id: string;
  why: Why;
}

/** A clock is right again when no heartbeat of so long said otherwise, in milliseconds: one that flaps is one incident. */
const AGREES_FOR = 15 * 60_000;

/** How to find the ends of each kind. */
export const ENDS: Readonly<Record<SilenceKind, (tx: TransactionSql, moment: Moment) => Promise<Ended[]>>> = {
  'machine-quiet': machineHeard,
  'session-quiet': sessionShipped,
  'session-unclosed': sessionClosed,
  'tail-shrank': tailRegrown,
  'clock-disagrees': clockAgrees,
};

/** A heartbeat came that is newer than the one the incident rests on, or a segment did. That it slept is the machine's word. */
function machineHeard(tx: TransactionSql, { now }: Moment): Promise<Ended[]> {
  return tx<Ended[]>`
    select i.id, case
        when exists (select from nd7.machine_revocation r where r.machine = i.machine and r.since <= ${now}) then 'revoked'
        when h.slept_from is not null then 'slept' else 'heard' end as why
    from nd7.open_incident i
      left join lateral (
        select b.id, b.slept_from from nd7.heartbeat b
        where b.machine = i.machine and b.id > (i.seen ->> 'heartbeat')::bigint order by b.id limit 1
      ) h on true
    where i.kind = 'machine-quiet' and (
      h.id is not null
      or exists (select from nd7.session s where s.machine = i.machine and s.received > (i.seen ->> 'heard')::timestamptz)
      or exists (select from nd7.machine_revocation r where r.machine = i.machine and r.since <= ${now})
    )`;
}

/** What was named came, or the session goes on elsewhere. */
function sessionShipped(tx: TransactionSql): Promise<Ended[]> {
  return tx<Ended[]>`
    select i.id, case when s.forked is not null then 'forked' else 'shipped' end as why
    from nd7.open_incident i join nd7.session s on s.machine = i.machine and s.session = i.session
    where i.kind = 'session-quiet' and (s.forked is not null or s.entries >= (i.seen ->> 'entries')::bigint)`;
}

/** It was closed after all, went on, or a later heartbeat of a machine that is there names it. */
function sessionClosed(tx: TransactionSql): Promise<Ended[]> {
  return tx<Ended[]>`
    select * from (
      select i.id, case
          when s.forked is not null then 'forked'
          when exists (
            select from nd7.session_statement c
            where c.machine = i.machine and c.session = i.session and c.type = 'close' and c.reason <> 'lost' and c.entries >= s.entries
          ) then 'closed'
          when s.entries > i.count then 'resumed'
          when h.id > coalesce((i.seen ->> 'heartbeat')::bigint, 0) and h.away is null and i.session = any (h.sessions) then 'listed'
        end as why
      from nd7.open_incident i
        join nd7.session s on s.machine = i.machine and s.session = i.session
        left join lateral (select b.* from nd7.heartbeat b where b.machine = i.machine order by b.id desc limit 1) h on true
      where i.kind = 'session-unclosed'
    ) ended where why is not null`;
}

/** As many entries as before were shipped, or are named again. Whether they are the same is for `verify` to say. */
function tailRegrown(tx: TransactionSql): Promise<Ended[]> {
  return tx<Ended[]>`
    select * from (
      select i.id, case
          when s.entries >= (i.seen ->> 'was')::bigint and s.entries > coalesce((i.seen ->> 'held')::bigint, 0) then 'shipped'
          when exists (
            select from unnest(h.sessions, h.entries) as o (session, entries)
            where h.id > (i.seen ->> 'heartbeat')::bigint and o.session = i.session and o.entries >= (i.seen ->> 'was')::bigint
          ) then 'regrown'
        end as why
      from nd7.open_incident i
        left join nd7.session s on s.machine = i.machine and s.session = i.session
        left join lateral (select b.* from nd7.heartbeat b where b.machine = i.machine order by b.id desc limit 1) h on true
      where i.kind = 'tail-shrank'
    ) ended where why is not null`;
}

/** The machine was heard, and all it said for a while was right. */
function clockAgrees(tx: TransactionSql, { now, patience }: Moment): Promise<Ended[]> {
  const since = new Date(now.getTime() - AGREES_FOR);
  return tx<Ended[]>`
    select i.id, 'agrees' as why
    from nd7.open_incident i
      cross join lateral (
        select count(*) as said, bool_and(abs(extract(epoch from b.machine_time - b.received)) * 1000 <= ${patience.clockTolerance}::float8) as right
        from nd7.heartbeat b where b.machine = i.machine and b.received > ${since}
      ) h
    where i.kind = 'clock-disagrees' and i.at <= ${since} and h.said > 0 and h.right`;
}
