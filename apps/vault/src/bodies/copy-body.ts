// The one hot statement that does not go through a parameter: the driver sends bytea as hex text, twice its size, so the bytes of a body come in by
// COPY … FORMAT BINARY (docs/adr/0003), in pieces that each fit a page (docs/adr/0013 has the figures).
import { once } from 'node:events';
import type { TransactionSql } from 'postgres';

/** Signature, flags and length of the header's extension: 0. */
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const TRAILER = Buffer.from([0xff, 0xff]);
/** Bytes of a piece; the last one of a body has fewer, so that nothing can be added behind it. As in migration 0202. */
export const PIECE = 7936;
/** Pieces in a row of the view, all but the last. The driver copies what it is given, and buffers much larger than this cost the system's time page by page. */
const RUN = 8;

/** Puts a sealed body into the table, in the caller's transaction. The same body twice is once. */
export async function copyBody(tx: TransactionSql, team: string, name: string, sealed: Buffer): Promise<void> {
  const stream = await tx`copy nd7.body_in (team, hash, place, run) from stdin (format binary)`.writable();
  const finished = once(stream, 'finish');
  stream.write(HEADER);
  for (let place = 0; place * PIECE <= sealed.length; place += RUN) {
    const run = sealed.subarray(place * PIECE, (place + RUN) * PIECE);
    stream.write(rowHead(team, name, place, run.length));
    stream.write(run); // by itself, not joined to its head: the driver makes a copy of what it is given, and one is enough
  }
  stream.end(TRAILER);
  await finished;
}

/** A row of (team, hash, place, run) in PostgreSQL's binary COPY format, up to the bytes of the run. */
function rowHead(team: string, name: string, place: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(2 + 4 + team.length + 4 + name.length + 4 + 4 + 4); // both are ASCII by their schema
  let at = head.writeInt16BE(4);
  for (const text of [team, name]) at = head.writeInt32BE(text.length, at) + head.write(text, at + 4, 'latin1');
  at = head.writeInt32BE(4, at);
  at = head.writeInt32BE(place, at);
  head.writeInt32BE(length, at);
  return head;
}
