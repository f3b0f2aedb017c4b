-- Roles, and the guards every table of the vault stands under.
--
--   nd7_app     what the service acts as: INSERT and SELECT, nothing else. Nobody logs in as it.
--   nd7_keeper  owns the few functions that move or remove a row by rule. Nobody logs in as it.
--
-- Roles belong to the cluster: another database of it may have made them already.

do $$
begin
  if not exists (select from pg_roles where rolname = 'nd7_app') then create role nd7_app nologin; end if;
  if not exists (select from pg_roles where rolname = 'nd7_keeper') then create role nd7_keeper nologin; end if;
  -- Whoever migrates hands functions over to the keeper, which takes membership; a superuser needs none.
  if not (select rolsuper from pg_roles where rolname = current_user) and not pg_has_role(current_user, 'nd7_keeper', 'usage') then
    execute format('grant nd7_keeper to %I', current_user);
  end if;
end $$;

revoke all on schema nd7 from public;
grant usage on schema nd7 to nd7_app;
grant usage, create on schema nd7 to nd7_keeper;

-- The migration list is no evidence and belongs to no team: the service reads it at boot.
grant select on nd7.migration to nd7_app;

-- Refuses every change, but an UPDATE by the keeper where the table moves by rule (argument 'moves') and a DELETE by the keeper where
-- it forgets by rule (argument 'forgets').
create function nd7.refuse_change() returns trigger language plpgsql set search_path = nd7, pg_temp as $$
begin
  if current_user = 'nd7_keeper' and tg_level = 'ROW' then
    if tg_op = 'UPDATE' and 'moves' = any (tg_argv) then return new; end if;
    if tg_op = 'DELETE' and 'forgets' = any (tg_argv) then return old; end if;
  end if;
  raise exception '% on %.% is refused: evidence is only added', tg_op, tg_table_schema, tg_table_name using errcode = 'insufficient_privilege';
end $$;

-- Puts a table under the guards: row-level security by tenant, forced; triggers that refuse UPDATE, DELETE and TRUNCATE whatever the
-- session's replication role; INSERT and SELECT for the service. The table must have a column `team text`.
create procedure nd7.guard_table(guarded regclass, updatable boolean default false, erasable boolean default false) language plpgsql as $$
declare
  arguments text := case when updatable and erasable then '''moves'', ''forgets''' when updatable then '''moves''' when erasable then '''forgets''' else '' end;
begin
  execute format('alter table %s enable row level security', guarded);
  execute format('alter table %s force row level security', guarded);
  execute format('create policy tenant on %s using (team = current_setting(''nd7.team'', true)) with check (team = current_setting(''nd7.team'', true))', guarded);
  execute format('create trigger refuse_change before update or delete on %s for each row execute function nd7.refuse_change(%s)', guarded, arguments);
  execute format('create trigger refuse_truncate before truncate on %s for each statement execute function nd7.refuse_change()', guarded);
  execute format('alter table %s enable always trigger refuse_change', guarded);
  execute format('alter table %s enable always trigger refuse_truncate', guarded);
  execute format('grant select, insert on %s to nd7_app, nd7_keeper', guarded);
  if updatable then execute format('grant update on %s to nd7_keeper', guarded); end if;
  if erasable then execute format('grant delete on %s to nd7_keeper', guarded); end if;
end $$;

-- Hands a function over to the keeper, for the service to call.
create procedure nd7.guard_function(guarded regprocedure) language plpgsql as $$
begin
  execute format('alter function %s owner to nd7_keeper', guarded);
  execute format('revoke all on function %s from public', guarded);
  execute format('grant execute on function %s to nd7_app', guarded);
end $$;

revoke all on procedure nd7.guard_table(regclass, boolean, boolean) from public;
revoke all on procedure nd7.guard_function(regprocedure) from public;

-- A team is a tenant and names a log: its origin is `<vault name>/<team>` and never changes.
create table nd7.team (
  team text primary key check (team ~ '^[a-z0-9-]{1,63}$'),
  created timestamptz not null default clock_timestamp()
);
call nd7.guard_table('nd7.team');
create policy keeper_finds on nd7.team for select to nd7_keeper using (true);

-- The names of all teams: what a sequencer has to look after.
create function nd7.teams() returns setof text language sql stable security definer set search_path = nd7, pg_temp as
$$ select team from nd7.team order by team $$;
call nd7.guard_function('nd7.teams()');
