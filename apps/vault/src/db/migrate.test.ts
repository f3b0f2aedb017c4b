import { afterAll, describe, expect, it } from '@jest/globals';
import { testDatabase } from '@nd7/testing';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, writeFileSync, appendFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from './database.js';
import { migrate, migrations } from './migrate.js';

const ours = join(import.meta.dirname, 'migrations');
const folders: string[] = [];
afterAll(() => folders.forEach((path) => rmSync(path, { recursive: true })));

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'nd7-migrations-'));
  folders.push(path);
  cpSync(ours, path, { recursive: true });
  return path;
}

describe('migrations', () => {
  it('are applied once, whoever starts at the same time, in databases of one cluster too', async () => {
    const [one, two] = [await testDatabase(), await testDatabase()];
    const results = await Promise.all([migrate(one), migrate(one), migrate(two), migrate(two)]);
    const all = migrations(ours).map((each) => each.name);
    expect(results.map((names) => names.length).sort()).toEqual([0, 0, all.length, all.length]);
    expect(await migrate(one)).toEqual([]);
  }, 60_000);

  it('refuse a database with another text under a known name', async () => {
    const [url, path] = [await testDatabase(), folder()];
    await migrate(url, path);
    appendFileSync(join(path, migrations(path)[0]?.name ?? ''), '-- edited\n');
    await expect(migrate(url, path)).rejects.toMatchObject({ code: 'changed' });
  }, 60_000);

  it('cut the bodies that were stored whole into pieces, of every length', async () => {
    const [url, path] = [await testDatabase(), folder()];
    for (const { name } of migrations(path)) if (name > '0202') rmSync(join(path, name));
    await migrate(url, path);
    const sql = connect(url, { max: 1 });
    const bodies = [1, 7935, 7936, 7937, 2 * 7936, 100_000].map((length, i) => Buffer.alloc(length, i));
    for (const sealed of bodies)
      await sql`insert into nd7.body (team, hash, sealed) values ('acme', ${createHash('sha256').update(sealed).digest('hex')}, ${sealed})`;
    await migrate(url);
    const pieces = await sql<
      { hash: string; piece: Buffer }[]
    >`select hash, piece from nd7.body where team = 'acme' order by hash, place`;
    for (const sealed of bodies) {
      const name = createHash('sha256').update(sealed).digest('hex');
      const own = pieces.filter(({ hash }) => hash === name).map(({ piece }) => piece);
      expect(own).toHaveLength(Math.floor(sealed.length / 7936) + 1);
      expect(Buffer.concat(own).equals(sealed)).toBe(true);
    }
    await sql.end();
  }, 60_000);

  it('may take as long as there is data: no statement of theirs is stopped by the clock', async () => {
    const [url, path] = [await testDatabase(), folder()];
    writeFileSync(
      join(path, '9901_long.sql'),
      "create table nd7.allowed as select current_setting('statement_timeout') as ms;",
    );
    await migrate(url, path);
    const sql = connect(url, { max: 1 });
    expect([...(await sql`select ms from nd7.allowed`)]).toEqual([{ ms: '0' }]);
    await sql.end();
  }, 60_000);

  it('refuse a database of a newer vault', async () => {
    const [url, path] = [await testDatabase(), folder()];
    writeFileSync(join(path, '9901_later.sql'), 'create table nd7.later (id int);');
    await migrate(url, path);
    rmSync(join(path, '9901_later.sql'));
    await expect(migrate(url, path)).rejects.toMatchObject({ code: 'unknown' });
  }, 60_000);

  it('leave nothing behind when one fails, and say which', async () => {
    const [url, path] = [await testDatabase(), folder()];
    writeFileSync(join(path, '9901_broken.sql'), 'create table nd7.half (id int); select 1 / 0;');
    await expect(migrate(url, path)).rejects.toThrow(/9901_broken\.sql: division by zero/);
    const sql = connect(url, { max: 1 });
    const [row] = await sql`select to_regnamespace('nd7') is null as none`;
    await sql.end();
    expect(row?.['none']).toBe(true);
  }, 60_000);
});
