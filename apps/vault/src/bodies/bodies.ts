import { Injectable } from '@nestjs/common';
import { sha256Hex } from '@nd7/signing';
import type { TransactionSql } from 'postgres';
import { Database } from '../db/database.js';
import { copyBody } from './copy-body.js';

/**
 * Where sealed bodies lie: put and get by the SHA-256 of what is stored. PostgreSQL here; an object store under object lock can take its
 * place, for nothing else reads the table.
 */
export abstract class Bodies {
  /** Stores in the caller's transaction, or so that it is durable before it resolves; returns the name. */
  abstract put(tx: TransactionSql, team: string, sealed: Uint8Array): Promise<string>;
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

  async put(tx: TransactionSql, team: string, sealed: Uint8Array): Promise<string> {
    const name = bodyName(sealed);
    await copyBody(tx, team, name, sealed);
    return name;
  }

  async get(team: string, name: string): Promise<Buffer | undefined> {
    const [row] = await this.db.tenant(
      team,
      (tx) => tx<{ sealed: Buffer }[]>`select sealed from nd7.body where hash = ${name}`,
    );
    return row !== undefined && bodyName(row.sealed) === name ? row.sealed : undefined;
  }
}
