import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectOptions } from '@nd7/postgres';
import { testDatabase } from '@nd7/testing';
import postgres, { type Sql } from 'postgres';
import { checkGuards, GuardError } from './boot-check.js';
import { connect } from './database.js';
import { migrate } from './migrate.js';

let template: string;
let admin: Sql;
let n = 0;

beforeAll(async () => {
  template = await testDatabase();
  await migrate(template);
  admin = postgres({ ...connectOptions(template), database: 'postgres', max: 1, onnotice: () => undefined });
}, 60_000);

afterAll(() => admin.end());

/** A copy of the migrated database. */
async function copy(): Promise<string> {
  const [of, name] = [
    connectOptions(template).database,
    `g_${String(process.pid)}_${String((n += 1))}_${String(Date.now())}`,
  ];
  await admin`create database ${admin(name)} template ${admin(of)}`;
  return template.replace(/\/[^/]*$/, `/${name}`);
}

async function run(url: string, statement: string): Promise<void> {
  const sql = postgres({ ...connectOptions(url), max: 1, onnotice: () => undefined });
  try {
    // eslint-disable-next-line no-restricted-syntax -- what somebody might do to the database
    await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}

async function linesOf(url: string): Promise<readonly string[]> {
  try {
    await checkGuards({ databaseUrl: url });
    return [];
  } catch (error) {
    if (!(error instanceof GuardError)) throw error;
    return error.lines;
  }
}

describe('the boot check', () => {
  it('finds nothing missing after the migrations, and says that a superuser is for trying out', async () => {
    expect(await checkGuards({ databaseUrl: template })).toEqual([expect.stringContaining('good for trying out')]);
  });

  it('asks for the migrations in a database without them', async () => {
    expect(await linesOf(await testDatabase())).toEqual([expect.stringContaining('nd7-vault migrate')]);
  });

  it.each([
    [
      'the trigger against UPDATE is dropped',
      'drop trigger refuse_change on nd7.segment',
      /segment: the trigger that refuses UPDATE and DELETE/,
    ],
    [
      'the trigger against TRUNCATE is dropped',
      'drop trigger refuse_truncate on nd7.body',
      /body: the trigger that refuses TRUNCATE/,
    ],
    ['a trigger is disabled', 'alter table nd7.session_key disable trigger refuse_change', /session_key: the trigger/],
    [
      'a trigger fires at its origin only',
      'alter table nd7.log_leaf enable trigger refuse_change',
      /log_leaf: the trigger.*ALWAYS/,
    ],
    [
      'a table may suddenly move',
      "drop trigger refuse_change on nd7.segment; create trigger refuse_change before update or delete on nd7.segment for each row execute function nd7.refuse_change('moves'); alter table nd7.segment enable always trigger refuse_change",
      /segment: the trigger/,
    ],
    [
      'a trigger calls something else',
      'create function public.yes() returns trigger language plpgsql as $$ begin return new; end $$; drop trigger refuse_change on nd7.fork; create trigger refuse_change before update or delete on nd7.fork for each row execute function public.yes(); alter table nd7.fork enable always trigger refuse_change',
      /fork: the trigger/,
    ],
    [
      'a trigger never fires, by its condition',
      'drop trigger refuse_change on nd7.segment; create trigger refuse_change before update or delete on nd7.segment for each row when (false) execute function nd7.refuse_change(); alter table nd7.segment enable always trigger refuse_change',
      /segment: the trigger that refuses UPDATE and DELETE/,
    ],
    [
      'a trigger calls a function of another schema by the same name',
      'create function public.refuse_change() returns trigger language plpgsql as $$ begin return new; end $$; drop trigger refuse_change on nd7.fork; create trigger refuse_change before update or delete on nd7.fork for each row execute function public.refuse_change(); alter table nd7.fork enable always trigger refuse_change',
      /fork: the trigger/,
    ],
    [
      'a trigger swallows rows',
      'create function public.no() returns trigger language plpgsql as $$ begin return null; end $$; create trigger first before insert on nd7.incident for each row execute function public.no()',
      /incident has a trigger that is not the vault’s: first/,
    ],
    [
      'alarms raise nothing any more',
      'create function public.alarm_raises() returns trigger language plpgsql as $$ begin return null; end $$; drop trigger alarm_raises on nd7.segment_index; create trigger alarm_raises after insert on nd7.segment_index for each row execute function public.alarm_raises(); alter table nd7.segment_index enable always trigger alarm_raises',
      /segment_index: the trigger alarm_raises/,
    ],
    [
      'bodies go nowhere',
      'create function public.put_body() returns trigger language plpgsql as $$ begin return new; end $$; drop trigger put_body on nd7.body_in; create trigger put_body instead of insert on nd7.body_in for each row execute function public.put_body()',
      /body_in: the trigger put_body/,
    ],
    [
      'the refusing function refuses nothing',
      'create or replace function nd7.refuse_change() returns trigger language plpgsql set search_path = nd7, pg_temp as $$ begin return new; end $$',
      /function refuse_change is not the one/,
    ],
    [
      'the head may move backwards',
      'drop trigger session_moves_forward on nd7.session',
      /session: the trigger session_moves_forward/,
    ],
    [
      'the function that takes segments is another',
      'create or replace function nd7.mark_forked(of_machine text, of_session text, taken timestamptz) returns boolean language sql security definer set search_path = nd7, pg_temp as $$ select false $$',
      /function mark_forked is not the one/,
    ],
    [
      'a function belongs to somebody who logs in',
      'alter function nd7.hold_machine(text) owner to postgres',
      /hold_machine/,
    ],
    [
      'a function looks elsewhere for its names',
      'alter function nd7.hold_machine(text) reset search_path',
      /hold_machine/,
    ],
    ['a function is open to everybody', 'grant execute on function nd7.hold_machine(text) to public', /hold_machine/],
    ['a function is gone', 'drop function nd7.is_vault_key(bytea)', /is_vault_key is missing/],
    ['row-level security is off', 'alter table nd7.segment disable row level security', /segment: row-level security/],
    [
      'row-level security is not forced',
      'alter table nd7.segment no force row level security',
      /segment: row-level security/,
    ],
    ['the policy is gone', 'drop policy tenant on nd7.segment', /segment: its policy/],
    [
      'the policy lets everybody see',
      'drop policy tenant on nd7.segment; create policy tenant on nd7.segment using (true)',
      /segment/,
    ],
    [
      'a second policy lets everybody see',
      'create policy more on nd7.segment using (true)',
      /segment has a policy that is not the vault’s/,
    ],
    ['the service may UPDATE', 'grant update on nd7.segment to nd7_app', /nd7_app has UPDATE on table segment/],
    [
      'the service may UPDATE one column',
      'grant update (head) on nd7.segment to nd7_app',
      /nd7_app has UPDATE on table segment/,
    ],
    ['the service may DELETE', 'grant delete on nd7.nonce to nd7_app', /nd7_app has DELETE on table nonce/],
    [
      'the service may insert heads itself',
      'grant insert on nd7.session to nd7_app',
      /nd7_app has INSERT on table session/,
    ],
    ['the service may create tables', 'grant create on schema nd7 to nd7_app', /may create in schema/],
    [
      'the service owns a table',
      'grant create on schema nd7 to nd7_app; alter table nd7.nonce owner to nd7_app',
      /nonce belongs to a role/,
    ],
    [
      'a unique constraint of segments is gone',
      'alter table nd7.segment drop constraint segment_team_machine_session_prev_key',
      /segment: its uniqueness of \(team, machine, session, prev\)/,
    ],
    [
      'a unique constraint of the log is gone',
      'alter table nd7.log_checkpoint drop constraint log_checkpoint_team_prior_size_key',
      /log_checkpoint: its uniqueness/,
    ],
    ['a piece of a body may come twice', 'alter table nd7.body drop constraint body_pkey', /body: its uniqueness/],
    [
      'an episode may be raised twice',
      'drop index nd7.incident_episode',
      /incident: its uniqueness of \(team, kind, machine, session, episode/,
    ],
    [
      'an episode may be raised twice, by its nulls',
      'drop index nd7.incident_episode; create unique index incident_episode on nd7.incident (team, kind, machine, session, episode) where episode is not null',
      /incident: its uniqueness of \(team, kind, machine, session, episode/,
    ],
    [
      'a rule swallows inserts',
      'create rule nothing as on insert to nd7.incident do instead nothing',
      /incident has a rewrite rule/,
    ],
    [
      'the keeper sees more than it was given',
      'create policy keeper_more on nd7.body for select to nd7_keeper using (true)',
      /body has a policy/,
    ],
    [
      'the refusing function is only a part of what it was',
      'create or replace function nd7.refuse_change() returns trigger language plpgsql set search_path = nd7, pg_temp as $x$\nbegin\n  return new; end $x$',
      /function refuse_change is not the one/,
    ],
    [
      'a function is empty',
      "create or replace function nd7.hold_machine(of_machine text) returns void language sql security definer set search_path = nd7, pg_temp as ''",
      /function hold_machine is not the one/,
    ],
    ['a view shows rows of all teams', 'alter view nd7.entry reset (security_invoker)', /view entry/],
    ['a new table has no guards', 'create table nd7.extra (team text)', /extra/],
    ['a migration is missing', "delete from nd7.migration where name like '0201%'", /migrations are not applied/],
  ])('refuses to start when %s', async (_what, statement, line) => {
    const url = await copy();
    await run(url, statement);
    const lines = await linesOf(url);
    expect(lines.filter((one) => line.test(one)).length).toBeGreaterThan(0);
  });
});

describe('the role of the service', () => {
  it.each([
    ["update nd7.team set team = 'x'", '42501'],
    ['delete from nd7.team', '42501'],
    ['truncate nd7.team cascade', '42501'],
    ["insert into nd7.session (team, machine, session) values ('a', '', '')", '42501'],
    ['alter table nd7.segment disable trigger all', '42501'],
    ['drop table nd7.segment', '42501'],
    ['create table nd7.mine (team text)', '42501'],
    ["insert into nd7.nonce (team, machine, nonce) values ('another', '', '')", '23514'],
  ])('cannot: %s', async (statement, code) => {
    const sql = connect(template, { max: 1, role: 'nd7_app' });
    try {
      await expect(
        sql.begin(async (tx) => {
          await tx`select set_config('nd7.team', 'a', true)`;
          await tx.unsafe(statement);
        }),
      ).rejects.toMatchObject({ code });
    } finally {
      await sql.end();
    }
  });

  it('cannot write into another team, nor see without one', async () => {
    const sql = connect(template, { max: 1, role: 'nd7_app' });
    try {
      await sql.begin(async (tx) => {
        await tx`select set_config('nd7.team', 'a', true)`;
        await tx`insert into nd7.team (team) values ('a')`;
      });
      await expect(sql`insert into nd7.team (team) values ('b')`).rejects.toMatchObject({ code: '42501' });
      expect(await sql`select * from nd7.team`).toHaveLength(0);
    } finally {
      await sql.end();
    }
  });

  it.each([
    'update nd7.team set created = now()',
    'delete from nd7.team',
    'truncate nd7.team cascade',
    "set session_replication_role = 'replica'; delete from nd7.team",
  ])('is not the only one who cannot: a superuser’s "%s" is refused by a trigger', async (statement) => {
    await run(template, "insert into nd7.team (team) values ('kept') on conflict do nothing");
    await expect(run(template, statement)).rejects.toMatchObject({ code: '42501' });
  });
});
