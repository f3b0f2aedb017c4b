import { Inject, Injectable } from '@nestjs/common';
import { Database } from '../db/database.js';
import { Metrics } from '../health/metrics.js';
import type { MachineIdentity, ReaderIdentity } from '../http/request.js';
import { Episodes } from '../incidents/episodes.js';
import { RANDOM, type Random } from '../ports.js';

/** The rows behind tokens, nonces and sign-ins. */
@Injectable()
export class AccessStore {
  constructor(
    private readonly db: Database,
    private readonly metrics: Metrics,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  async machineOfToken(tokenHash: string): Promise<MachineIdentity | undefined> {
    const [row] = await this.db.sql<MachineIdentity[]>`select team, machine from nd7.machine_of_token(${tokenHash})`;
    return row;
  }

  async readerOfToken(tokenHash: string): Promise<ReaderIdentity | undefined> {
    const [row] = await this.db.sql<ReaderIdentity[]>`select team, reader from nd7.reader_of_token(${tokenHash})`;
    return row;
  }

  async readerOfCookie(cookieHash: string): Promise<ReaderIdentity | undefined> {
    const [row] = await this.db.sql<ReaderIdentity[]>`select team, reader from nd7.reader_of_cookie(${cookieHash})`;
    return row;
  }

  async isPublicLog(team: string): Promise<boolean> {
    const [row] = await this.db.sql<{ open: boolean }[]>`select nd7.is_public_log(${team}) as open`;
    return row?.open === true;
  }

  /** Uses a nonce up and looks whether the machine is revoked; one statement and its own transaction (`nd7.use_nonce`). */
  async useNonce(machine: MachineIdentity, nonce: string, now: Date): Promise<{ fresh: boolean; revoked: boolean }> {
    const [row] = await this.db.sql<{ fresh: boolean; revoked: boolean }[]>`
      select fresh, revoked from nd7.use_nonce(${machine.team}, ${machine.machine}, ${nonce}, ${now})`;
    return row ?? { fresh: false, revoked: false };
  }

  /** A request of the machine's own was refused because its clock is too far off to tell it from an old one. */
  async clockDisagrees({ team, machine }: MachineIdentity, said: string, now: number): Promise<void> {
    const episodes = await this.db.tenant(team, async (tx) => {
      const raised = new Episodes(tx, team, new Date(now), this.random);
      await raised.begin(
        { kind: 'clock-disagrees', machine },
        { machine_time: said, off_by_ms: Date.parse(said) - now },
      );
      return raised;
    });
    episodes.count(this.metrics);
  }

  async forgetNonces(): Promise<number> {
    const [row] = await this.db.sql<{ gone: number }[]>`select nd7.forget_nonces(interval '15 minutes') as gone`;
    return row?.gone ?? 0;
  }

  signIn(reader: ReaderIdentity, cookieHash: string, expires: Date): Promise<void> {
    return this.db.tenant(reader.team, async (tx) => {
      await tx`insert into nd7.sign_in (team, cookie_hash, reader, expires) values (${reader.team}, ${cookieHash}, ${reader.reader}, ${expires})`;
    });
  }

  signOut(reader: ReaderIdentity, cookieHash: string): Promise<void> {
    return this.db.tenant(reader.team, async (tx) => {
      await tx`insert into nd7.sign_out (team, cookie_hash) values (${reader.team}, ${cookieHash}) on conflict do nothing`;
    });
  }
}
