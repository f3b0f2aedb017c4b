import { Body, Controller, Param, Query, Req, Res } from '@nestjs/common';
import { isHex, isSessionId } from '@nd7/entry';
import { CloseRequest, OpenRequest, pathOf, type SessionStatus } from '@nd7/vault-api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Api } from '../http/api.js';
import { Valid } from '../http/body.js';
import { Problem } from '../http/problem.js';
import { sendReceipt } from '../http/receipt-answer.js';
import type { MachineIdentity } from '../http/request.js';
import { TeamLog } from '../log/team-log.js';
import { SessionService } from './session.service.js';
import { SessionStore } from './session.store.js';

/** Routes of machines about their own sessions, and receipts for both machines and readers. */
@Controller()
export class SessionController {
  constructor(
    private readonly service: SessionService,
    private readonly store: SessionStore,
    private readonly log: TeamLog,
  ) {}

  @Api('sessionStatus')
  async status(@Req() request: FastifyRequest, @Param('session') session: string): Promise<SessionStatus> {
    const { team, machine } = request.machine as MachineIdentity;
    const status = isSessionId(session) ? await this.store.status(team, machine, session) : undefined;
    if (status === undefined)
      throw new Problem('not-found', 'the vault holds no entry of this session of this machine', { next: 0 });
    return status;
  }

  @Api('open')
  async open(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('session') session: string,
    @Body(new Valid(OpenRequest)) body: OpenRequest,
  ): Promise<void> {
    const machine = request.machine as MachineIdentity;
    checkSession(session);
    const accepted = await this.service.open(machine, session, body);
    sendReceipt(
      reply,
      accepted,
      pathOf('statementReceipt', { machine: machine.machine, session, statement: 'open', entries: body.entries }),
    );
  }

  @Api('close')
  async close(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('session') session: string,
    @Body(new Valid(CloseRequest)) body: CloseRequest,
  ): Promise<void> {
    const machine = request.machine as MachineIdentity;
    checkSession(session);
    const accepted = await this.service.close(machine, session, body);
    sendReceipt(
      reply,
      accepted,
      pathOf('statementReceipt', { machine: machine.machine, session, statement: 'close', entries: body.entries }),
    );
  }

  @Api('segmentReceipt')
  async segmentReceipt(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param() at: Record<string, string>,
    @Query('checkpoint') checkpoint?: string,
  ): Promise<void> {
    const team = this.teamThatMayRead(request, at['machine']);
    const from = countOf(at['from']);
    const leaf =
      from === undefined
        ? undefined
        : await this.store.segmentLeaf(team, at['machine'] as string, at['session'] as string, from);
    await this.answer(reply, team, leaf, checkpoint);
  }

  @Api('statementReceipt')
  async statementReceipt(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param() at: Record<string, string>,
    @Query('checkpoint') checkpoint?: string,
  ): Promise<void> {
    const team = this.teamThatMayRead(request, at['machine']);
    const entries = countOf(at['entries']);
    const leaf =
      entries === undefined || !/^(open|close)$/.test(at['statement'] ?? '')
        ? undefined
        : await this.store.statementLeaf(
            team,
            at['machine'] as string,
            at['session'] as string,
            at['statement'] as string,
            entries,
          );
    await this.answer(reply, team, leaf, checkpoint);
  }

  @Api('enrolReceipt')
  async enrolReceipt(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('machine') machine: string,
    @Query('checkpoint') checkpoint?: string,
  ): Promise<void> {
    const team = this.teamThatMayRead(request, machine);
    await this.answer(reply, team, await this.store.enrolLeaf(team, machine), checkpoint);
  }

  private async answer(
    reply: FastifyReply,
    team: string,
    leaf: bigint | undefined,
    checkpoint: string | undefined,
  ): Promise<void> {
    if (leaf === undefined) throw new Problem('not-found', 'the vault holds no such statement');
    if (checkpoint !== undefined && checkpoint !== 'latest')
      throw new Problem('bad-request', 'checkpoint can be latest');
    const receipt = await (checkpoint === 'latest' ? this.log.latestReceipt(team, leaf) : this.log.receipt(team, leaf));
    if (receipt === undefined)
      throw new Problem(
        'not-published',
        'the statement is durable and not yet published: ask again',
        {},
        { 'retry-after': '1' },
      );
    void reply
      .header('content-type', 'text/plain; charset=utf-8')
      .header('cache-control', 'private, no-cache')
      .send(receipt);
  }

  /** A machine reads its own receipts, a reader those of the team. What is another's does not exist. */
  private teamThatMayRead(request: FastifyRequest, machine: string | undefined): string {
    const { machine: caller, reader } = request;
    if (!isHex(machine ?? '', 32) || (caller !== undefined && caller.machine !== machine))
      throw new Problem('not-found', 'the vault holds no such statement');
    const team = caller?.team ?? reader?.team;
    if (team === undefined) throw new Problem('unauthorized', 'this route asks for a machine or a reader');
    return team;
  }
}

function checkSession(session: string): void {
  if (!isSessionId(session)) throw new Problem('bad-request', 'the session in the path is not a session id');
}

function countOf(text: string | undefined): number | undefined {
  return /^(0|[1-9][0-9]{0,15})$/.test(text ?? '') ? Number(text) : undefined;
}
