import { Inject, Injectable } from '@nestjs/common';
import { VaultConfig } from '../config.js';
import { Database } from '../db/database.js';
import { RANDOM, type Random } from '../ports.js';
import { createSealingKey, KeyFileError, loadSealingKey, sealingKeys } from './key-file.js';
import { unwrapKey, wrapKey, type BodyPlace } from './sealing.js';

export type SessionPlace = Pick<BodyPlace, 'team' | 'machine' | 'session'>;

const KEPT = 2_000;

/** The data key of each session: made once, wrapped by the team's sealing key, kept in memory while it is used. */
@Injectable()
export class DataKeys {
  /** Unwrapped keys, oldest first; written by `of` only. */
  private readonly kept = new Map<string, Buffer>();
  private readonly teamKeys = new Map<string, Buffer>();

  constructor(
    private readonly config: VaultConfig,
    private readonly db: Database,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  /** The session's key, made where there is none yet. Undefined only when `make` is false and there is none: the session was erased. */
  async of(place: SessionPlace, make = true): Promise<Buffer | undefined> {
    const name = `${place.team} ${place.machine} ${place.session}`;
    const kept = this.kept.get(name);
    if (kept !== undefined) return kept;
    const key = (await this.stored(place)) ?? (make ? await this.make(place) : undefined);
    if (key === undefined) return undefined;
    const [oldest] = this.kept.keys();
    if (this.kept.size >= KEPT && oldest !== undefined) this.kept.delete(oldest);
    this.kept.set(name, key);
    return key;
  }

  private async stored(place: SessionPlace): Promise<Buffer | undefined> {
    const [row] = await this.db.tenant(
      place.team,
      (tx) =>
        tx<{ team_key: string; wrapped: Buffer }[]>`
          select team_key, wrapped from nd7.data_key where machine = ${place.machine} and session = ${place.session}`,
    );
    if (row === undefined) return undefined;
    const key = unwrapKey(this.teamKey(place.team, row.team_key), row.wrapped, place);
    if (key === undefined)
      throw new KeyFileError(
        'format',
        `the data key of a session of team ${place.team} was not wrapped by its sealing key ${row.team_key}`,
      );
    return key;
  }

  private async make(place: SessionPlace): Promise<Buffer> {
    const name =
      sealingKeys(this.config.keys, place.team).at(-1) ?? createSealingKey(this.config.keys, place.team, this.random);
    const wrapped = wrapKey(this.teamKey(place.team, name), this.random(32), place, this.random);
    await this.db.tenant(
      place.team,
      (tx) => tx`
        insert into nd7.data_key (team, machine, session, team_key, wrapped)
        values (${place.team}, ${place.machine}, ${place.session}, ${name}, ${wrapped}) on conflict do nothing`,
    );
    // Another replica may have been first: what the table holds is the key.
    const key = await this.stored(place);
    if (key === undefined) throw new Error('a data key that was just stored is not there');
    return key;
  }

  private teamKey(team: string, name: string): Buffer {
    const id = `${team}/${name}`;
    const kept = this.teamKeys.get(id);
    if (kept !== undefined) return kept;
    const key = loadSealingKey(this.config.keys, team, name);
    this.teamKeys.set(id, key);
    return key;
  }
}
