import { Injectable } from '@nestjs/common';
import { Database } from '../db/database.js';
import { Bodies } from './bodies.js';
import { DataKeys } from './data-keys.js';
import { openBody, type BodyPlace } from './sealing.js';

/** A stored segment's zstd frame, why it cannot be had, or undefined where there is no such segment. */
export type OpenedBody = { frame: Buffer } | { gone: 'erased' | 'missing' | 'changed' } | undefined;

/** Opens sealed bodies. A body that is missing and one that was changed are told apart: they are different incidents. */
@Injectable()
export class BodyReader {
  constructor(
    private readonly db: Database,
    private readonly bodies: Bodies,
    private readonly keys: DataKeys,
  ) {}

  async segment(team: string, machine: string, session: string, from: number): Promise<OpenedBody> {
    const [row] = await this.db.tenant(
      team,
      (tx) => tx<{ to: number; head: string; body: string }[]>`
        select to_entry as "to", head, body from nd7.segment where machine = ${machine} and session = ${session} and from_entry = ${from}`,
    );
    return row === undefined
      ? undefined
      : this.open({ team, machine, session, from, to: row.to, head: row.head }, row.body);
  }

  async open(place: BodyPlace, name: string): Promise<Exclude<OpenedBody, undefined>> {
    const [key, sealed] = await Promise.all([this.keys.of(place, false), this.bodies.get(place.team, name)]);
    if (key === undefined) return { gone: 'erased' };
    if (sealed === undefined) return { gone: 'missing' };
    const frame = openBody(key, sealed, place);
    return frame === undefined ? { gone: 'changed' } : { frame };
  }
}
