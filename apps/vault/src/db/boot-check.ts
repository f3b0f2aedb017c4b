// Whether the database still is what the migrations made it. A guard that was dropped, by a hand or by a later migration, protects nothing
// and says nothing: the service looks before it takes the first request and does not start without.
import type { Sql } from 'postgres';
import type { VaultConfig } from '../config.js';
import { connect } from './database.js';
import {
  FORGETS,
  KEEPER_POLICIES,
  KEEPER_FUNCTIONS,
  KEEPER_INSERTS,
  MOVES,
  TRIGGERS,
  UNIQUE,
  WITHOUT_TENANT,
} from './expected-guards.js';
import { migrations, pending, type Migration } from './migrate.js';

/** Guards are missing: one line each, saying what and how to mend it. */
export class GuardError extends Error {
  readonly code = 'guards' as const;
  constructor(readonly lines: readonly string[]) {
    super(lines.join('\n'));
    this.name = 'GuardError';
  }
}

/** Throws GuardError unless every guard is there. Returns what is no danger to evidence but should be known. */
export async function checkGuards(config: Pick<VaultConfig, 'databaseUrl'>): Promise<string[]> {
  const sql = connect(config.databaseUrl, { max: 1, role: 'nd7_app' });
  try {
    const [there] = await sql<{ there: boolean }[]>`select to_regclass('nd7.migration') is not null as there`.catch(
      noRole,
    );
    if (there?.there !== true)
      throw new GuardError(['the database has no tables of this vault yet: run `nd7-vault migrate`']);
    const known = migrations();
    const open = pending(known, await sql<{ name: string; hash: string }[]>`select name, hash from nd7.migration`);
    if (open.length > 0)
      throw new GuardError([
        `${String(open.length)} migrations are not applied (${open.map((one) => one.name).join(', ')}): run \`nd7-vault migrate\``,
      ]);
    const found = await Promise.all([
      roles(sql),
      tables(sql),
      rights(sql),
      policies(sql),
      triggers(sql),
      functions(sql, known),
      constraints(sql),
      views(sql),
    ]);
    const lines = found.flat();
    if (lines.length > 0)
      throw new GuardError([
        ...lines,
        'the vault does not start without its guards: find out who removed them, then put them back (infra/postgres/README.md)',
      ]);
    return await notes(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** A cluster that no vault was migrated in has no role to act as; a login may not be let act as it. */
function noRole(error: unknown): { there: boolean }[] {
  const { code, message } = error as { code?: string; message?: string };
  if (code === '22023') return [];
  if (code === '42501' && message?.includes('set role') === true) {
    throw new GuardError([
      'the login of ND7_DATABASE_URL may not act as nd7_app: `grant nd7_app to` it (infra/postgres/README.md)',
    ]);
  }
  throw error;
}

async function roles(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string; bad: boolean }[]>`
    select rolname as name, rolcanlogin or rolsuper or rolbypassrls or rolcreaterole as bad from pg_roles where rolname in ('nd7_app', 'nd7_keeper')`;
  const [member] = await sql<{ member: boolean }[]>`select pg_has_role('nd7_app', 'nd7_keeper', 'member') as member`;
  return [
    ...['nd7_app', 'nd7_keeper']
      .filter((name) => !rows.some((row) => row.name === name))
      .map((name) => `role ${name} is missing`),
    ...rows
      .filter((row) => row.bad)
      .map((row) => `role ${row.name} may log in, or has rights that no role of the vault has`),
    ...(member?.member === true ? ['role nd7_app is a member of nd7_keeper: it could move heads itself'] : []),
  ];
}

async function tables(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string; rls: boolean; forced: boolean; owned: boolean; rules: number }[]>`
    select c.relname as name, c.relrowsecurity as rls, c.relforcerowsecurity as forced,
      pg_get_userbyid(c.relowner) in ('nd7_app', 'nd7_keeper') as owned, (select count(*) from pg_rewrite r where r.ev_class = c.oid) as rules
    from pg_class c where c.relnamespace = 'nd7'::regnamespace and c.relkind in ('r', 'p')`;
  return rows.flatMap((row) => [
    ...(row.name in WITHOUT_TENANT || (row.rls && row.forced)
      ? []
      : [`table ${row.name}: row-level security is not enabled and forced`]),
    ...(row.owned ? [`table ${row.name} belongs to a role that the service acts as`] : []),
    ...(row.rules > 0 ? [`table ${row.name} has a rewrite rule`] : []),
  ]);
}

async function rights(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string; held: string[] }[]>`
    select c.relname as name, array(
        select p from unnest(array['UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER', 'INSERT']) p
        where has_table_privilege('nd7_app', c.oid, p) or (p = 'UPDATE' and has_any_column_privilege('nd7_app', c.oid, p))
      ) as held
    from pg_class c where c.relnamespace = 'nd7'::regnamespace and c.relkind in ('r', 'p')`;
  const [schema] = await sql<{ may: boolean }[]>`select has_schema_privilege('nd7_app', 'nd7', 'CREATE') as may`;
  return [
    ...rows.flatMap(({ name, held }) => {
      const inserts = !KEEPER_INSERTS.includes(name) && !(name in WITHOUT_TENANT);
      const tooMuch = held.filter((right) => right !== 'INSERT' || !inserts);
      return tooMuch.length === 0
        ? []
        : [`role nd7_app has ${tooMuch.join(', ')} on table ${name}: it may insert and select, nothing else`];
    }),
    ...(schema?.may === true ? ['role nd7_app may create in schema nd7'] : []),
  ];
}

const TENANT = "(team = current_setting('nd7.team'::text, true))";

async function policies(sql: Sql): Promise<string[]> {
  const rows = await sql<
    {
      table: string;
      name: string;
      qual: string | null;
      check: string | null;
      roles: string[];
      cmd: string;
      permissive: string;
    }[]
  >`
    select tablename as table, policyname as name, qual, with_check as check, roles::text[], cmd, permissive from pg_policies where schemaname = 'nd7'`;
  const names = (
    await sql<
      { name: string }[]
    >`select relname as name from pg_class where relnamespace = 'nd7'::regnamespace and relkind in ('r', 'p')`
  ).map((row) => row.name);
  const isTenant = (row: (typeof rows)[number]): boolean =>
    row.name === 'tenant' &&
    row.qual === TENANT &&
    row.check === TENANT &&
    row.cmd === 'ALL' &&
    row.roles.join() === 'public';
  const isKeepers = (row: (typeof rows)[number]): boolean =>
    row.roles.join() === 'nd7_keeper' &&
    KEEPER_POLICIES.some(([table, name]) => row.table === table && row.name === name);
  return [
    ...names
      .filter((name) => !(name in WITHOUT_TENANT) && !rows.some((row) => row.table === name && isTenant(row)))
      .map((name) => `table ${name}: its policy by tenant is missing or changed`),
    ...rows
      .filter((row) => !isTenant(row) && !isKeepers(row))
      .map((row) => `table ${row.table} has a policy that is not the vault’s: ${row.name}`),
  ];
}

async function triggers(sql: Sql): Promise<string[]> {
  // With schema nd7 on the search path its functions stand there by their bare names, those of others do not.
  const rows = await sql<{ on: string; name: string; fires: string; kind: string; definition: string }[]>`
    select c.relname as on, t.tgname as name, t.tgenabled as fires, c.relkind as kind, pg_get_triggerdef(t.oid) as definition
    from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'nd7'::regnamespace and not t.tgisinternal`;
  const names = (
    await sql<
      { name: string }[]
    >`select relname as name from pg_class where relnamespace = 'nd7'::regnamespace and relkind in ('r', 'p')`
  ).map((row) => row.name);
  const expected = [
    ...names
      .filter((table) => !(table in WITHOUT_TENANT))
      .flatMap((table) => {
        const may = [...(MOVES.includes(table) ? ["'moves'"] : []), ...(FORGETS.includes(table) ? ["'forgets'"] : [])];
        const change = `BEFORE DELETE OR UPDATE ON nd7.${table} FOR EACH ROW EXECUTE FUNCTION refuse_change(${may.join(', ')})`;
        const truncate = `BEFORE TRUNCATE ON nd7.${table} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()`;
        return [
          { on: table, name: 'refuse_change', does: change, what: 'that refuses UPDATE and DELETE' },
          { on: table, name: 'refuse_truncate', does: truncate, what: 'that refuses TRUNCATE' },
        ];
      }),
    ...TRIGGERS.map((one) => ({ ...one, what: one.name })),
  ];
  const isThere = ({ on, name, does }: (typeof expected)[number]): boolean =>
    rows.some(
      (row) =>
        row.on === on &&
        row.name === name &&
        row.definition === `CREATE TRIGGER ${name} ${does}` &&
        row.fires === (row.kind === 'v' ? 'O' : 'A'), // one on a view can fire at its origin only
    );
  return [
    ...expected
      .filter((one) => !isThere(one))
      .map(({ on, what }) => `table ${on}: the trigger ${what} is missing, changed or not ENABLE ALWAYS`),
    ...rows
      .filter(({ on, name }) => !expected.some((one) => one.on === on && one.name === name))
      .map(({ on, name }) => `table ${on} has a trigger that is not the vault’s: ${name}`),
  ];
}

async function functions(sql: Sql, known: readonly Migration[]): Promise<string[]> {
  const rows = await sql<
    { name: string; source: string; definer: boolean; owner: string; path: boolean; open: boolean }[]
  >`
    select p.proname as name, p.prosrc as source, p.prosecdef as definer, pg_get_userbyid(p.proowner) as owner,
      coalesce(p.proconfig::text[] @> array['search_path=nd7, pg_temp'], false) as path,
      exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0 and a.privilege_type = 'EXECUTE') as open
    from pg_proc p where p.pronamespace = 'nd7'::regnamespace`;
  return [
    ...KEEPER_FUNCTIONS.filter(
      (name) => !rows.some((row) => row.name === name && row.definer && row.owner === 'nd7_keeper'),
    ).map((name) => `function ${name} is missing or does not belong to nd7_keeper`),
    ...rows
      .filter((row) => row.definer && (row.owner !== 'nd7_keeper' || !row.path || row.open))
      .map(
        (row) =>
          `function ${row.name} runs with its owner’s rights and is not closed: wrong owner, search_path or open to everybody`,
      ),
    ...rows
      .filter((row) => !isAsWritten(row, known))
      .map((row) => `function ${row.name} is not the one the migrations made`),
  ];
}

/** A function's text is exactly what stands between the $$ of the newest migration that makes one of its name. */
function isAsWritten(row: { name: string; source: string }, known: readonly Migration[]): boolean {
  const made = new RegExp(
    `create (?:or replace )?(?:function|procedure) nd7\\.${row.name}\\b[^$]*\\$\\$([^$]*(?:\\$(?!\\$)[^$]*)*)\\$\\$`,
    'gi',
  );
  const bodies = known.flatMap((one) => [...one.sql.matchAll(made)].map((match) => match[1]));
  return bodies.at(-1) === row.source;
}

async function constraints(sql: Sql): Promise<string[]> {
  const rows = await sql<{ table: string; columns: string }[]>`
    select c.relname as table, (
        select string_agg(a.attname, ', ' order by k.place) from unnest(i.indkey) with ordinality as k (number, place)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
      ) || case when i.indnullsnotdistinct then ' nulls not distinct' else '' end || coalesce(' where ' || pg_get_expr(i.indpred, c.oid), '') as columns
    from pg_index i join pg_class c on c.oid = i.indrelid
    where c.relnamespace = 'nd7'::regnamespace and i.indisunique and i.indisvalid and i.indexprs is null`;
  return UNIQUE.filter(([table, columns]) => !rows.some((row) => row.table === table && row.columns === columns)).map(
    ([table, columns]) => `table ${table}: its uniqueness of (${columns}) is missing`,
  );
}

async function views(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'nd7'::regnamespace and relkind = 'v'
      and not coalesce(reloptions @> array['security_invoker=true'], false)`;
  return rows.map((row) => `view ${row.name} shows rows with its owner’s rights: it must be security_invoker`);
}

async function notes(sql: Sql): Promise<string[]> {
  const [who] = await sql<{ superuser: boolean; keeper: boolean; owner: boolean }[]>`
    select (select rolsuper from pg_roles where rolname = session_user) as superuser, pg_has_role(session_user, 'nd7_keeper', 'usage') as keeper,
      exists (select from pg_class where relnamespace = 'nd7'::regnamespace and pg_get_userbyid(relowner) = session_user) as owner`;
  if (who?.superuser === true || who?.keeper === true || who?.owner === true) {
    return [
      'the service logs in as a superuser or as the owner of its tables: good for trying out; give it a login of its own (infra/postgres/README.md)',
    ];
  }
  return [];
}
