// What a look rests on: statements inside a transaction of one team. `now` is the vault's clock; lengths of time are milliseconds.
import type { TransactionSql } from 'postgres';
import { HEARTBEAT_SESSIONS } from '@nd7/vault-api';
import type { Patience } from '../config.js';

/** The moment of a look. */
export interface Moment {
  now: Date;
  /** Since when the vault could be heard by machines without a break. */
  awake: Date;
  patience: Patience;
}

/** A machine whose silence is longer than it promised. */
export interface QuietMachine {
  machine: string;
  heartbeat: number;
  heard: Date;
  interval_s: number | null;
  away: string | null;
}

const seconds = (ms: number): number => ms / 1000;

/**
 * Machines that promised to be heard again and were not, and those that announced a sleep and did not wake. A segment is as good as a
 * heartbeat. Where the vault itself could not be heard, silence is counted from there.
 */
export function quietMachines(tx: TransactionSql, { now, awake, patience }: Moment): Promise<QuietMachine[]> {
  return tx<QuietMachine[]>`
    select m.machine, h.id as heartbeat, k.heard, h.interval_s, h.away
    from nd7.machine m
      cross join lateral (
        select b.id, b.received, b.interval_s, b.away from nd7.heartbeat b where b.machine = m.machine order by b.id desc limit 1
      ) h
      cross join lateral (
        select case
          when h.away is null then h.interval_s * ${patience.quietAfter}::float8
          when h.away = 'sleep' then ${seconds(patience.awayLimit)}::float8
        end * interval '1 second' as patience
      ) p
      cross join lateral (
        -- Only where the heartbeat is too old: a machine has many sessions.
        select case when h.received >= ${now}::timestamptz - p.patience then h.received
          else greatest(h.received, (select max(s.received) from nd7.session s where s.machine = m.machine)) end as heard
      ) k
    where p.patience is not null and k.heard < ${now}::timestamptz - p.patience
      and ${awake}::timestamptz < ${now}::timestamptz - coalesce(h.interval_s, 60) * ${patience.quietAfter}::float8 * interval '1 second'
      and not exists (select from nd7.machine_revocation r where r.machine = m.machine and r.since <= ${now})
      and not exists (select from nd7.open_incident i where i.kind = 'machine-quiet' and i.machine = m.machine)`;
}

/** An open session that nobody vouches for any more. */
export interface UnclosedSession {
  machine: string;
  session: string;
  entries: number;
  head: string;
  heartbeat: number | null;
  away: string | null;
  /** When its machine last named it, or an entry of it came. */
  heard: Date;
  /** The leaf in which the vault said before that it is lost with so many entries. */
  leaf_id: string | null;
}

/** So many sessions in one look; the rest in the next. */
const MOST = 100;
/** Sessions that were silent longer before the vault began to watch are history, not silence. In milliseconds. */
const HISTORY = 30 * 86_400_000;

/**
 * Sessions without a close that no heartbeat has named, and of which nothing has come, for longer than the grace. A sleeping machine's
 * sessions sleep with it; a machine that never sent a heartbeat gets as long as a sleeping one.
 */
export function unclosedSessions(tx: TransactionSql, { now, awake, patience }: Moment): Promise<UnclosedSession[]> {
  const grace = new Date(now.getTime() - patience.sessionGrace);
  // Most sessions are closed: those are left out before anything is asked about a machine.
  return tx<UnclosedSession[]>`
    with unclosed as materialized (
      select s.machine, s.session, s.entries, s.head, s.received
      from nd7.session s
        left join nd7.session_statement c
          on c.machine = s.machine and c.session = s.session and c.type = 'close' and c.reason <> 'lost' and c.entries >= s.entries
      where s.forked is null and s.received < ${grace} and c.session is null
        and s.received > ${new Date(now.getTime() - patience.awayLimit - HISTORY)}
    )
    select s.machine, s.session, s.entries, s.head, h.id as heartbeat, h.away, k.heard,
      (select c.leaf_id::text from nd7.session_statement c
        where c.machine = s.machine and c.session = s.session and c.type = 'close' and c.reason = 'lost' and c.entries = s.entries) as leaf_id
    from unclosed s
      left join lateral (
        select b.id, b.received, b.interval_s, b.away, s.session = any (b.sessions) as names, cardinality(b.sessions) as sessions
        from nd7.heartbeat b where b.machine = s.machine order by b.id desc limit 1
      ) h on true
      cross join lateral (
        select greatest(s.received, case when h.names then h.received else (
          select max(b.received) from nd7.heartbeat b where b.machine = s.machine and b.received > ${grace} and s.session = any (b.sessions)
        ) end) as heard
      ) k
      cross join lateral (
        select case when h.id is null or (h.names and h.away = 'sleep') then ${seconds(patience.awayLimit)}::float8
          else greatest(${seconds(patience.sessionGrace)}::float8, coalesce(h.interval_s, 0) * ${patience.quietAfter}::float8)
        end * interval '1 second' as patience
      ) p
    where k.heard < ${now}::timestamptz - p.patience
      and ${awake}::timestamptz < ${now}::timestamptz - coalesce(h.interval_s, 60) * ${patience.quietAfter}::float8 * interval '1 second'
      and (h.id is null or h.names or h.sessions < ${HEARTBEAT_SESSIONS})
      and not exists (select from nd7.machine_revocation r where r.machine = s.machine and r.since <= ${now})
      and not exists (
        select from nd7.open_incident i where i.kind = 'session-unclosed' and i.machine = s.machine and i.session = s.session
      )
    order by s.received limit ${MOST}`;
}

/** A session of which its machine named more entries than have come. */
export interface LaggingSession {
  machine: string;
  session: string;
  /** What a heartbeat of a while ago named. */
  named: number;
  held: number;
  /** What the newest heartbeat names; null: it is complete and does not name the session any more. */
  names: number | null;
  heartbeat: number;
  /** When the newest entry came, null where none ever did. */
  received: Date | null;
}

/**
 * Sessions of which a heartbeat of at least `sessionLag` ago named more entries than the vault holds even now, though nothing has come since:
 * named still, by a machine that has been there all the while, or not named any more.
 */
export function laggingSessions(tx: TransactionSql, { now, awake, patience }: Moment): Promise<LaggingSession[]> {
  const before = new Date(now.getTime() - patience.sessionLag);
  if (awake >= before) return Promise.resolve([]);
  return tx<LaggingSession[]>`
    select m.machine, o.session, o.entries as named, coalesce(s.entries, 0) as held, h.id as heartbeat, s.received, n.entries as names
    from nd7.machine m
      cross join lateral (select b.* from nd7.heartbeat b where b.machine = m.machine order by b.id desc limit 1) h
      cross join lateral (
        select b.* from nd7.heartbeat b where b.machine = m.machine and b.received <= ${before} order by b.received desc, b.id desc limit 1
      ) b
      cross join lateral (select coalesce(h.interval_s, 60) * ${patience.quietAfter}::float8 * interval '1 second' as patience) p
      cross join lateral unnest(b.sessions, b.entries) as o (session, entries)
      left join lateral unnest(h.sessions, h.entries) as n (session, entries) on n.session = o.session
      left join nd7.session s on s.machine = m.machine and s.session = o.session
    where h.id > b.id and o.entries > coalesce(s.entries, 0) and s.forked is null and (s.received is null or s.received < ${before})
      and case when n.session is null then cardinality(h.sessions) < ${HEARTBEAT_SESSIONS}
        -- A machine that was away until a moment ago has yet to ship.
        else h.away is null and n.entries > coalesce(s.entries, 0) and h.received > ${now}::timestamptz - p.patience and b.received > ${before}::timestamptz - p.patience end
      and not exists (select from nd7.machine_revocation r where r.machine = m.machine and r.since <= ${now})
      and not exists (
        select from nd7.open_incident i where i.kind in ('session-quiet', 'tail-shrank') and i.machine = m.machine and i.session = o.session
      )
    order by m.machine, o.session limit ${MOST}`;
}
