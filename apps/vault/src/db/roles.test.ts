import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectOptions } from '@nd7/postgres';
import { testDatabase } from '@nd7/testing';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { TestSession } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';
import { checkGuards } from './boot-check.js';
import { migrate } from './migrate.js';

let owner: string;
let service: string;
let world: TestWorld;

/** The roles of infra/postgres, in the test's cluster: nobody here is a superuser. */
beforeAll(async () => {
  const url = await testDatabase();
  const sql = postgres({ ...connectOptions(url), max: 1, onnotice: () => undefined });
  const statements = readFileSync(join(import.meta.dirname, '../../../../infra/postgres/roles.sql'), 'utf8')
    .replaceAll(/--.*$/gm, '')
    .replaceAll(/:'\w+'/g, "'a password'")
    .split(';')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  expect(statements).toHaveLength(6);
  for (const one of statements) {
    try {
      // eslint-disable-next-line no-restricted-syntax -- a file of this repository
      await sql.unsafe(one);
    } catch (error) {
      if ((error as { code?: string }).code !== '42710') throw error; // another test file made the role
    }
  }
  const { database } = connectOptions(url);
  await sql`alter database ${sql(database)} owner to nd7_owner`;
  await sql.end();
  owner = url.replace('postgres://postgres@', 'postgres://nd7_owner@');
  service = url.replace('postgres://postgres@', 'postgres://nd7_service@');
  await migrate(owner);
  world = await TestWorld.make({ url, env: { ND7_DATABASE_URL: service } });
}, 60_000);

afterAll(() => world.close());

describe('with the roles of infra/postgres', () => {
  it('the guards are whole and nothing is to be remarked', async () => {
    expect(await checkGuards({ databaseUrl: service })).toEqual([]);
    await expect(checkGuards({ databaseUrl: owner })).rejects.toThrow('`grant nd7_app to` it');
  });

  it('the vault works from enrolment to receipt', async () => {
    await world.team('acme');
    await world.replica();
    const machine = await world.machine('acme');
    const session = new TestSession(machine.key, 's').start().seal();
    const first = await machine.ship(session.id, session.cut(0));
    expect(first.status).toBe(201);
    expect((await machine.ship(session.id, { ...session.cut(0), head: '0'.repeat(64) })).json['code']).toBe('fork');
  });

  it.each([
    ['nd7_keeper', 'set role nd7_keeper'],
    ['nd7_owner', 'set role nd7_owner'],
    ['itself without a role', 'update nd7.session set entries = 0'],
    ['itself without a role, to read', 'select * from nd7.session'],
  ])('the service’s login cannot act as %s', async (_who, statement) => {
    const sql = postgres({ ...connectOptions(service), max: 1 });
    // eslint-disable-next-line no-restricted-syntax -- what an intruder would try
    await expect(sql.unsafe(statement)).rejects.toMatchObject({ code: '42501' });
    await sql.end();
  });
});
