import { Body, Controller, HttpCode, Inject, Injectable, Req } from '@nestjs/common';
import { formatTime, isTime } from '@nd7/entry';
import { HeartbeatRequest, type HeartbeatAnswer } from '@nd7/vault-api';
import type { FastifyRequest } from 'fastify';
import { Database } from '../db/database.js';
import { Api } from '../http/api.js';
import { Valid } from '../http/body.js';
import { Problem } from '../http/problem.js';
import type { MachineIdentity } from '../http/request.js';
import { IncidentStore } from '../incidents/incident.store.js';
import { CLOCK, RANDOM, type Clock, type Random } from '../ports.js';

/** A machine's clock may differ by so much before it is an incident, in milliseconds. */
const CLOCK_TOLERANCE = 300_000;
/** How long a heartbeat may take from being written to being taken, in milliseconds. */
const IN_TRANSIT = 60_000;

@Injectable()
export class HeartbeatStore {
  constructor(
    private readonly db: Database,
    private readonly incidents: IncidentStore,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  /** Keeps what the machine said, and raises what does not fit what it said (signed) before: a tail that shrank, a clock that disagrees. */
  take({ team, machine }: MachineIdentity, said: HeartbeatRequest, now: Date): Promise<void> {
    const [sessions, entries, heads] = [
      said.sessions.map((s) => s.session),
      said.sessions.map((s) => s.entries),
      said.sessions.map((s) => s.head),
    ];
    return this.db.tenant(team, async (tx) => {
      await tx`
        insert into nd7.heartbeat (team, machine, received, machine_time, sessions, entries, heads)
        values (${team}, ${machine}, ${now}, ${new Date(said.time)}, ${sessions}, ${entries}, ${heads})`;
      // What was shipped since the heartbeat was written is no shrinking.
      const before = new Date(now.getTime() - IN_TRANSIT);
      const shrunk = await tx<{ session: string; count: number }[]>`
        select h.session, h.entries as count from unnest(${sessions}::text[], ${entries}::bigint[]) as h (session, entries)
        where h.entries < (
          select max(g.to_entry) from nd7.segment g where g.machine = ${machine} and g.session = h.session and g.received < ${before}
        )`;
      for (const { session, count } of shrunk) {
        await this.incidents.add(tx, { team, kind: 'tail-shrank', machine, session, count, at: now }, this.random);
      }
      if (Math.abs(Date.parse(said.time) - now.getTime()) > CLOCK_TOLERANCE) {
        await this.incidents.add(tx, { team, kind: 'clock-disagrees', machine, at: now }, this.random);
      }
    });
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
    if (!isTime(said.time)) throw new Problem('bad-request', 'time: must be RFC 3339 in UTC with milliseconds');
    const now = this.clock.now();
    await this.store.take(request.machine as MachineIdentity, said, new Date(now));
    return { time: formatTime(now) };
  }
}
