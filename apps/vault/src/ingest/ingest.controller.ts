import { Controller, Param, Req, Res } from '@nestjs/common';
import { isSessionId } from '@nd7/entry';
import { pathOf } from '@nd7/vault-api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Api } from '../http/api.js';
import { bodyBytes } from '../http/body.js';
import { Problem } from '../http/problem.js';
import type { MachineIdentity } from '../http/request.js';
import { sendReceipt } from '../http/receipt-answer.js';
import { IngestService } from './ingest.service.js';

@Controller()
export class IngestController {
  constructor(private readonly service: IngestService) {}

  @Api('segment')
  async put(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('session') session: string,
    @Param('from') from: string,
  ): Promise<void> {
    const machine = request.machine as MachineIdentity;
    if (!isSessionId(session)) throw new Problem('bad-request', 'the session in the path is not a session id');
    if (!/^(0|[1-9][0-9]{0,15})$/.test(from))
      throw new Problem('bad-request', 'the last part of the path is the number of the first entry');
    const accepted = await this.service.ingest({
      machine,
      session,
      from: Number(from),
      encoding: headerOf(request, 'content-encoding'),
      claim: headerOf(request, 'nd7-claim'),
      signature: headerOf(request, 'nd7-signature'),
      body: bodyBytes(request),
      ...(request.releasePlace === undefined ? {} : { stored: request.releasePlace }),
    });
    sendReceipt(reply, accepted, pathOf('segmentReceipt', { machine: machine.machine, session, from }));
  }
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}
