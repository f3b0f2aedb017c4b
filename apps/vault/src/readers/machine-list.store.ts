import { Injectable } from '@nestjs/common';
import type { MachineRow } from '@nd7/vault-api';
import { Database } from '../db/database.js';

@Injectable()
export class MachineListStore {
  constructor(private readonly db: Database) {}

  async list(team: string): Promise<MachineRow[]> {
    const rows = await this.db.tenant(
      team,
      (tx) => tx<
        {
          machine: string;
          name: string | null;
          enrolled: Date;
          last_seen: Date | null;
          revoked: Date | null;
          sessions: number;
        }[]
      >`
        select m.machine, n.name, m.enrolled,
          greatest(
            (select h.received from nd7.heartbeat h where h.machine = m.machine order by h.id desc limit 1), -- it beats every minute: not max
            (select max(s.received) from nd7.session s where s.machine = m.machine)
          ) as last_seen,
          (select min(r.since) from nd7.machine_revocation r where r.machine = m.machine) as revoked,
          (select count(*) from nd7.session s where s.machine = m.machine) as sessions
        from nd7.machine m left join nd7.machine_name n on n.machine = m.machine
        order by m.enrolled desc, m.machine`,
    );
    return rows.map(({ name, enrolled, last_seen: seen, revoked, ...rest }) => ({
      ...rest,
      name: name ?? '',
      enrolled: enrolled.toISOString(),
      last_seen: seen?.toISOString() ?? null,
      ...(revoked === null ? {} : { revoked: revoked.toISOString() }),
    }));
  }
}
