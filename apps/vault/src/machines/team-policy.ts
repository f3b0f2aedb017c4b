import { Controller, Injectable, Req } from '@nestjs/common';
import type { TeamPolicy } from '@nd7/vault-api';
import type { FastifyRequest } from 'fastify';
import { Database } from '../db/database.js';
import { Api } from '../http/api.js';
import { Problem } from '../http/problem.js';
import type { MachineIdentity } from '../http/request.js';
import { newestTeamPolicy } from '../policy/store.js';

@Injectable()
export class TeamPolicyStore {
  constructor(private readonly db: Database) {}

  /** The newest version of a team's policy; undefined where it has none. */
  newest(team: string): Promise<TeamPolicy | undefined> {
    return this.db.tenant(team, (tx) => newestTeamPolicy(tx, team));
  }
}

/** `GET /v1/team-policy`: what machines hold confined sessions to, signed by the key that they have pinned. */
@Controller()
export class TeamPolicyController {
  constructor(private readonly store: TeamPolicyStore) {}

  @Api('teamPolicy')
  async policy(@Req() request: FastifyRequest): Promise<TeamPolicy> {
    const found = await this.store.newest((request.machine as MachineIdentity).team);
    if (found === undefined) throw new Problem('not-found', 'the team has no policy');
    return found;
  }
}
