import { Controller, Param, Query, Req, Res } from '@nestjs/common';
import { isHex, isSessionId } from '@nd7/entry';
import {
  IncidentListQuery,
  SessionListQuery,
  type Incident,
  type IncidentList,
  type MachineList,
  type SessionList,
  type SessionPage,
} from '@nd7/vault-api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BodyReader } from '../bodies/reader.js';
import { Api } from '../http/api.js';
import { Valid } from '../http/body.js';
import { Problem } from '../http/problem.js';
import type { ReaderIdentity } from '../http/request.js';
import { frameContentSize, inflate } from '../ingest/frame.js';
import { Log } from '../log/log.js';
import { IncidentListStore } from './incident-list.store.js';
import { MachineListStore } from './machine-list.store.js';
import { SessionListStore } from './session-list.store.js';

/** What readers see of their own team. What is another team’s does not exist. */
@Controller()
export class ReaderController {
  constructor(
    private readonly sessionStore: SessionListStore,
    private readonly machineStore: MachineListStore,
    private readonly incidentStore: IncidentListStore,
    private readonly bodies: BodyReader,
    private readonly log: Log,
  ) {}

  @Api('sessions')
  sessions(
    @Req() request: FastifyRequest,
    @Query(new Valid(SessionListQuery)) query: SessionListQuery,
  ): Promise<SessionList> {
    return this.sessionStore.list(teamOf(request), query);
  }

  @Api('session')
  async session(
    @Req() request: FastifyRequest,
    @Param('machine') machine: string,
    @Param('session') session: string,
  ): Promise<SessionPage> {
    const page =
      isHex(machine, 32) && isSessionId(session)
        ? await this.sessionStore.page(teamOf(request), machine, session)
        : undefined;
    if (page === undefined) throw new Problem('not-found', 'your team has no such session');
    return page;
  }

  @Api('body')
  async body(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param() at: { machine: string; session: string; from: string },
  ): Promise<void> {
    const known = isHex(at.machine, 32) && isSessionId(at.session) && /^(0|[1-9][0-9]{0,15})$/.test(at.from);
    const opened = known
      ? await this.bodies.segment(teamOf(request), at.machine, at.session, Number(at.from))
      : undefined;
    if (opened === undefined) throw new Problem('not-found', 'your team has no such segment');
    if ('gone' in opened) {
      if (opened.gone === 'erased')
        throw new Problem('not-found', 'the content of this session was erased; its chain and receipts stay');
      this.log.error('a stored body cannot be opened', {
        machine: at.machine,
        session: at.session,
        from: Number(at.from),
        why: opened.gone,
      });
      throw new Problem(
        'internal',
        `the stored body is ${opened.gone}: its segment is unharmed in the log, its content is not what was taken`,
      );
    }
    void reply
      .header('content-type', 'application/x-ndjson')
      .header('cache-control', 'no-store')
      .header('vary', 'accept-encoding');
    // Whoever can read zstd gets the bytes as the machine sent them.
    if (/\bzstd\b/.test(request.headers['accept-encoding'] ?? ''))
      void reply.header('content-encoding', 'zstd').send(opened.frame);
    else void reply.send(await inflate(opened.frame, frameContentSize(opened.frame) as number));
  }

  @Api('machines')
  async machines(@Req() request: FastifyRequest): Promise<MachineList> {
    return { machines: await this.machineStore.list(teamOf(request)) };
  }

  @Api('incidents')
  incidents(
    @Req() request: FastifyRequest,
    @Query(new Valid(IncidentListQuery)) query: IncidentListQuery,
  ): Promise<IncidentList> {
    return this.incidentStore.list(teamOf(request), query);
  }

  @Api('incident')
  async incident(@Req() request: FastifyRequest, @Param('id') id: string): Promise<Incident> {
    const incident = await this.incidentStore.one(teamOf(request), id);
    if (incident === undefined) throw new Problem('not-found', 'your team has no such incident');
    return incident;
  }
}

function teamOf(request: FastifyRequest): string {
  return (request.reader as ReaderIdentity).team;
}
