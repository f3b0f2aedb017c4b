// The vault's own administrators: one has the database and lifts its guards, the other has the team's sealing key besides.
import { createHash, randomBytes } from 'node:crypto';
import zstd from '@mongodb-js/zstd';
import { connectOptions } from '@nd7/postgres';
import postgres from 'postgres';
import { loadSealingKey, sealingKeys } from '../../apps/vault/src/bodies/key-file.js';
import { openBody, sealBody, unwrapKey, type BodyPlace } from '../../apps/vault/src/bodies/sealing.js';

type Stored = BodyPlace & { body: string };

export class Insider {
  private readonly sql: postgres.Sql;

  /** @param url of a superuser */
  constructor(url: string) {
    this.sql = postgres({ ...connectOptions(url), max: 1, onnotice: () => undefined });
  }

  /** The segments of a session, in order. */
  async segments(session: string): Promise<Stored[]> {
    const rows = await this.sql<(Omit<Stored, 'from' | 'to'> & { from: string; to: string })[]>`
      select team, machine, session, from_entry as "from", to_entry as "to", head, body from nd7.segment
      where session = ${session} order by from_entry`;
    return rows.map((row) => ({ ...row, from: Number(row.from), to: Number(row.to) }));
  }

  /** Changes one byte of what is stored of a segment, under the name that it has. */
  async flipByte({ team, body }: Stored): Promise<void> {
    await this.pastGuards('body', async (tx) => {
      await tx`update nd7.body set piece = set_byte(piece, 40, get_byte(piece, 40) # 1) where team = ${team} and hash = ${body} and place = 0`;
    });
  }

  /** Opens a segment with the keys in the vault's folder, changes its text, and puts it back sealed as the vault would. False where nothing was to be changed. */
  async rewrite(segment: Stored, keys: string, change: (text: string) => string): Promise<boolean> {
    const { team, machine, session } = segment;
    const [wrapped] = await this.sql<{ team_key: string; wrapped: Buffer }[]>`
      select team_key, wrapped from nd7.data_key where team = ${team} and machine = ${machine} and session = ${session}`;
    const [stored] = await this.sql<{ sealed: Buffer | null }[]>`
      select string_agg(piece, '' order by place) as sealed from nd7.body where team = ${team} and hash = ${segment.body}`;
    if (wrapped === undefined || stored?.sealed == null) throw new Error('nothing is stored there');
    const teamKey = loadSealingKey(keys, team, sealingKeys(keys, team).at(-1) ?? '');
    const key = unwrapKey(teamKey, wrapped.wrapped, segment);
    const frame = key && openBody(key, stored.sealed, segment);
    if (key === undefined || frame === undefined) throw new Error('the keys do not open it');
    const before = (await zstd.decompress(frame)).toString('utf8');
    const after = change(before);
    if (after === before) return false;
    const sealed = sealBody(key, await zstd.compress(Buffer.from(after, 'utf8'), 3), segment, randomBytes);
    const name = createHash('sha256').update(sealed).digest('hex');
    // In pieces of which the last is shorter than the others, as the vault stores it.
    await this.sql`
      insert into nd7.body (team, hash, place, piece)
      select ${team}, ${name}, n, substring(${sealed}::bytea from n * 7936 + 1 for 7936) from generate_series(0, ${Math.floor(sealed.length / 7936)}::int) as n`;
    await this.pastGuards('segment', async (tx) => {
      await tx`update nd7.segment set body = ${name} where team = ${team} and body = ${segment.body}`;
    });
    return true;
  }

  async end(): Promise<void> {
    await this.sql.end({ timeout: 5 });
  }

  /** Lifts a table's triggers for one transaction; not even a superuser changes a row before. */
  private async pastGuards(table: string, work: (tx: postgres.TransactionSql) => Promise<void>): Promise<void> {
    const name = this.sql(`nd7.${table}`);
    await this.sql.begin(async (tx) => {
      const triggers = await tx<{ tgname: string }[]>`
        select tgname from pg_trigger where tgrelid = ${`nd7.${table}`}::regclass and not tgisinternal`;
      await tx`alter table ${name} disable trigger all`;
      await work(tx);
      for (const { tgname } of triggers) await tx`alter table ${name} enable always trigger ${tx(tgname)}`;
    });
  }
}
