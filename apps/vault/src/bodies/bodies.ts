import { Injectable } from '@nestjs/common';
import { sha256Hex } from '@nd7/signing';
import type { TransactionSql } from 'postgres';
import { Database } from '../db/database.js';
import { copyBody, PIECE } from './copy-body.js';

/**
 * Where sealed bodies lie: put and get by the SHA-256 of what is stored. PostgreSQL here; an object store under object lock can take its
 * place, for nothing else reads the table.
 */
export abstract class Bodies {
  /** Stores in the caller's transaction, or so that it is durable before it resolves; returns the name. */
  abstract put(tx: TransactionSql, team: string, sealed: Buffer): Promise<string>;
  /** Undefined where there is none of that name, or it is not what its name says any more. */
  abstract get(team: string, name: string): Promise<Buffer | undefined>;
}

/** The name of a sealed body: SHA-256 of what is stored. */
export function bodyName(sealed: Uint8Array): string {
  return sha256Hex(sealed);
}

@Injectable()
export class PostgresBodies extends Bodies {
  constructor(private readonly db: Database) {
    super();
  }

  async put(tx: TransactionSql, team: string, sealed: Buffer): Promise<string> {
    const name = bodyName(sealed);
    await copyBody(tx, team, name, sealed);
    return name;
  }

  async get(team: string, name: string): Promise<Buffer | undefined> {
    // Up to the first piece that is shorter than a piece can be: what somebody added behind it is none of this body.
    const pieces = await this.db.tenant(
      team,
      (tx) => tx<{ piece: Buffer }[]>`
        select piece from nd7.body where hash = ${name} and place <= (
          select min(place) from nd7.body where hash = ${name} and octet_length(piece) < ${PIECE})
        order by place`,
    );
    const sealed = Buffer.concat(pieces.map(({ piece }) => piece));
    return pieces.length > 0 && bodyName(sealed) === name ? sealed : undefined;
  }
}
