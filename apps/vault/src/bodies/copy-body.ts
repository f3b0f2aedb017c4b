// The one hot statement that does not go through a parameter: the driver sends bytea as hex text, twice its size, so the bytes of a body come in by
// COPY … FORMAT BINARY (docs/adr/0003 has the figures).
import { once } from 'node:events';
import type { TransactionSql } from 'postgres';

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

/** One row of (team, hash, sealed) in PostgreSQL's binary COPY format: header, tuple, trailer. */
function copyRow(fields: readonly Uint8Array[]): Buffer[] {
  const head = Buffer.alloc(SIGNATURE.length + 8 + 2);
  SIGNATURE.copy(head); // flags and length of the header's extension: 0
  head.writeInt16BE(fields.length, SIGNATURE.length + 8);
  const parts: Buffer[] = [head];
  for (const field of fields) {
    const length = Buffer.alloc(4);
    length.writeInt32BE(field.length);
    parts.push(length, Buffer.from(field.buffer, field.byteOffset, field.byteLength));
  }
  const trailer = Buffer.alloc(2);
  trailer.writeInt16BE(-1);
  parts.push(trailer);
  return parts;
}

/** Puts a sealed body into the table, in the caller's transaction. The same body twice is once. */
export async function copyBody(tx: TransactionSql, team: string, name: string, sealed: Uint8Array): Promise<void> {
  const stream = await tx`copy nd7.body_in (team, hash, sealed) from stdin (format binary)`.writable();
  const finished = once(stream, 'finish');
  stream.end(Buffer.concat(copyRow([Buffer.from(team), Buffer.from(name), sealed])));
  await finished;
}
