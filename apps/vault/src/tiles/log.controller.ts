import { Controller, Req } from '@nestjs/common';
import { formatTime } from '@nd7/entry';
import type { LogState } from '@nd7/vault-api';
import type { FastifyRequest } from 'fastify';
import { Database } from '../db/database.js';
import { Api } from '../http/api.js';
import { Problem } from '../http/problem.js';
import { SqlTeamLog } from '../sequence/sql-team-log.js';

/** `GET /v1/log`: where a team's log stands. */
@Controller()
export class LogController {
  constructor(
    private readonly log: SqlTeamLog,
    private readonly db: Database,
  ) {}

  @Api('log')
  async state(@Req() request: FastifyRequest): Promise<LogState> {
    const team = request.reader?.team;
    if (team === undefined) throw new Problem('unauthorized', 'this route asks for a reader');
    const [{ origin, published }, vkey, policy] = await Promise.all([
      this.log.status(team),
      this.log.vkey(team),
      this.policy(team),
    ]);
    return {
      origin,
      vkey,
      size: published?.size ?? 0,
      published: published === undefined ? null : formatTime(published.at),
      policy: policy ?? policyText(vkey),
    };
  }

  private async policy(team: string): Promise<string | undefined> {
    const [row] = await this.db.tenant(
      team,
      (tx) =>
        tx<{ value: string }[]>`select value from nd7.team_setting where name = 'policy' order by id desc limit 1`,
    );
    return row?.value;
  }
}

/** The witness policy (C2SP tlog-policy) of a log that asks for no witness yet. */
export function policyText(vkey: string): string {
  return `log ${vkey}\nquorum none\n`;
}
