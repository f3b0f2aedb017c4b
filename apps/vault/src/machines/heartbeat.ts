import { Body, Controller, HttpCode, Inject, Injectable, Req } from '@nestjs/common';
import { formatTime, isTime } from '@nd7/entry';
import { HeartbeatRequest, type HeartbeatAnswer } from '@nd7/vault-api';
import type { FastifyRequest } from 'fastify';
import type { TransactionSql } from 'postgres';
import { VaultConfig } from '../config.js';
import { Database } from '../db/database.js';
import { Metrics } from '../health/metrics.js';
import { Api } from '../http/api.js';
import { Valid } from '../http/body.js';
import { Problem } from '../http/problem.js';
import type { MachineIdentity } from '../http/request.js';
import { Episodes } from '../incidents/episodes.js';
import { IncidentStore } from '../incidents/incident.store.js';
import { CLOCK, RANDOM, type Clock, type Random } from '../ports.js';

/** How long a heartbeat may take from being written to being taken, in milliseconds. */
const IN_TRANSIT = 60_000;
/** A heartbeat is held against so many before it. */
const BEFORE = 20;
/** Open incidents of a kind about sessions that a machine only named: it can name as many as it likes, and those of real ones must be seen. */
const MOST_NAMED = 100;

/**
 * Keeps what machines say of themselves, and raises at once what does not fit what they said (signed) before: a tail that shrank, a head that
 * is another one, a clock that disagrees. What they do not say is the watch's (watch/).
 */
@Injectable()
export class HeartbeatStore {
  constructor(
    private readonly db: Database,
    private readonly config: VaultConfig,
    private readonly incidents: IncidentStore,
    private readonly metrics: Metrics,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  async take({ team, machine }: MachineIdentity, said: HeartbeatRequest, now: Date): Promise<void> {
    const episodes = await this.db.tenant(team, async (tx) => {
      const [row] = await tx<{ id: number }[]>`
        insert into nd7.heartbeat (team, machine, received, machine_time, sessions, entries, heads, interval_s, away, slept_from, slept_to)
        values (${team}, ${machine}, ${now}, ${new Date(said.time)}, ${said.sessions.map((s) => s.session)}, ${said.sessions.map((s) => s.entries)},
          ${said.sessions.map((s) => s.head)}, ${said.interval ?? null}, ${said.away?.reason ?? null},
          ${said.slept === undefined ? null : new Date(said.slept.from)}, ${said.slept === undefined ? null : new Date(said.slept.to)})
        returning id`;
      const heartbeat = row?.id ?? 0;
      const raised = new Episodes(tx, team, now, this.random);
      for (const one of await this.limited(
        tx,
        machine,
        'tail-shrank',
        await this.shrunk(tx, machine, heartbeat, now),
      )) {
        const { session, entries, was, held } = one;
        const seen = { heartbeat, entries, was, ...(held === null ? {} : { held }) };
        await raised.begin({ kind: 'tail-shrank', machine, session }, seen, { count: entries });
      }
      const disagreeing = await this.disagreeing(tx, machine, heartbeat);
      for (const { session, entries } of await this.limited(tx, machine, 'disagrees', disagreeing))
        await this.incidents.add(
          tx,
          { team, kind: 'disagrees', machine, session, count: entries, at: now, seen: { heartbeat, entries } },
          this.random,
        );
      const off = Date.parse(said.time) - now.getTime();
      if (Math.abs(off) > this.config.patience.clockTolerance)
        await raised.begin(
          { kind: 'clock-disagrees', machine },
          { heartbeat, machine_time: said.time, off_by_ms: off },
        );
      return raised;
    });
    episodes.count(this.metrics);
    this.metrics.heartbeats.inc({ said: said.away?.reason ?? 'here' });
  }

  /** All of those that the vault holds entries of, and of the others as many as are not too many. */
  private async limited<T extends { held: number | null }>(
    tx: TransactionSql,
    machine: string,
    kind: string,
    found: T[],
  ): Promise<T[]> {
    const held = found.filter((one) => one.held !== null);
    if (held.length === found.length) return found;
    const [row] = await tx<{ n: number }[]>`
      select count(*)::integer as n from nd7.open_incident i where i.machine = ${machine} and i.kind = ${kind}
        and not exists (select from nd7.segment g where g.machine = i.machine and g.session = i.session)`;
    const room = Math.max(0, MOST_NAMED - (row?.n ?? 0));
    return [...held, ...found.filter((one) => one.held === null).slice(0, room)];
  }

  /** Sessions that a heartbeat says are shorter than an earlier one said, or than what the vault holds. */
  private shrunk(
    tx: TransactionSql,
    machine: string,
    heartbeat: number,
    now: Date,
  ): Promise<{ session: string; entries: number; was: number; held: number | null }[]> {
    // What was shipped since the heartbeat was written is no shrinking; nor is one that another, written later, has overtaken.
    const before = new Date(now.getTime() - IN_TRANSIT);
    return tx`
      with said as (
        select h.machine_time, o.session, o.entries from nd7.heartbeat h, unnest(h.sessions, h.entries) as o (session, entries)
        where h.machine = ${machine} and h.id = ${heartbeat}
      ), earlier as (
        select o.session, max(o.entries) as entries
        from (select * from nd7.heartbeat h where h.machine = ${machine} and h.id < ${heartbeat} order by h.id desc limit ${BEFORE}) h,
          unnest(h.sessions, h.entries) as o (session, entries)
        where h.machine_time < (select machine_time from said limit 1)
        group by o.session
      ), held as (
        select s.session, s.entries,
          (select max(g.to_entry) from nd7.segment g where g.machine = ${machine} and g.session = s.session and g.received < ${before}) as held
        from said s
      )
      select h.session, h.entries, greatest(h.held, e.entries) as was, h.held
      from held h left join earlier e on e.session = h.session
      where h.entries < greatest(h.held, e.entries)`;
  }

  /** Sessions of which a heartbeat names another head than was stored, or said before, for the same count. */
  private disagreeing(
    tx: TransactionSql,
    machine: string,
    heartbeat: number,
  ): Promise<{ session: string; entries: number; held: number | null }[]> {
    // What was said before is gathered once: looked up for each session, it is twenty lists of a thousand a thousand times.
    return tx`
      with said as (
        select o.* from nd7.heartbeat h, unnest(h.sessions, h.entries, h.heads) as o (session, entries, head)
        where h.machine = ${machine} and h.id = ${heartbeat}
      ), earlier as materialized (
        select o.session, o.entries, min(o.head) as one, max(o.head) as other
        from (select * from nd7.heartbeat h where h.machine = ${machine} and h.id < ${heartbeat} order by h.id desc limit ${BEFORE}) h,
          unnest(h.sessions, h.entries, h.heads) as o (session, entries, head)
        group by o.session, o.entries
      ), stored as materialized (
        select s.session, s.entries, (select g.head from nd7.segment g where g.machine = ${machine} and g.session = s.session and g.to_entry = s.entries) as head,
          (select max(g.to_entry) from nd7.segment g where g.machine = ${machine} and g.session = s.session) as held
        from said s
      )
      select s.session, s.entries, g.held
      from said s join stored g on g.session = s.session left join earlier e on e.session = s.session and e.entries = s.entries
      where g.head <> s.head or e.one <> s.head or e.other <> s.head`;
  }
}

@Controller()
export class HeartbeatController {
  constructor(
    private readonly store: HeartbeatStore,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @Api('heartbeat')
  @HttpCode(200)
  async beat(
    @Req() request: FastifyRequest,
    @Body(new Valid(HeartbeatRequest)) said: HeartbeatRequest,
  ): Promise<HeartbeatAnswer> {
    const times = { time: said.time, 'slept.from': said.slept?.from, 'slept.to': said.slept?.to };
    for (const [name, time] of Object.entries(times))
      if (time !== undefined && !isTime(time))
        throw new Problem('bad-request', `${name}: must be RFC 3339 in UTC with milliseconds`);
    const now = this.clock.now();
    await this.store.take(request.machine as MachineIdentity, said, new Date(now));
    return { time: formatTime(now) };
  }
}
