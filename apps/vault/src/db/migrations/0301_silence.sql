-- Silence is a signal: what machines promise in their heartbeats, and incidents that begin and end.

alter table nd7.heartbeat
  add column interval_s integer check (interval_s between 1 and 86400), -- it will be heard again within so many seconds; null: it promised nothing
  add column away text check (away in ('idle', 'stopped', 'sleep', 'uninstalled')),
  add column slept_from timestamptz, -- the machine's clock
  add column slept_to timestamptz;
create index heartbeat_by_age on nd7.heartbeat (team, machine, received desc);

-- An incident of silence is about a stretch of time: the episode. Of each (kind, machine, session) they are numbered from 0 and the next begins
-- only when the one before is over; whoever raises one takes the next number, so that replicas that see the same thing raise it once. An
-- incident that is about a claim or an entry has no episode: it happened.
alter table nd7.incident
  add column episode bigint check (episode >= 0),
  add column seen jsonb check (jsonb_typeof(seen) = 'object' and octet_length(seen::text) <= 2048); -- numbers and times
drop index nd7.incident_once;
create unique index incident_once on nd7.incident (team, kind, machine, session, count, evidence) nulls not distinct where episode is null;
create unique index incident_episode on nd7.incident (team, kind, machine, session, episode) nulls not distinct where episode is not null;

-- What became of an incident. The incident itself never changes.
create table nd7.incident_change (
  team text not null,
  incident text not null,
  state text not null check (state = 'over'),
  why text not null check (why ~ '^[a-z][a-z-]{0,31}$'),
  at timestamptz not null,
  primary key (team, incident, state),
  foreign key (team, incident) references nd7.incident
);
call nd7.guard_table('nd7.incident_change');

-- Incidents that are not over. Few: what looks for them does not look through all that ever were.
create view nd7.open_incident with (security_invoker = true) as
select i.team, i.id, i.kind, i.machine, i.session, i.count, i.at, i.episode, i.seen from nd7.incident i
where not exists (select from nd7.incident_change c where c.team = i.team and c.incident = i.id);
grant select on nd7.open_incident to nd7_app;

-- A recorder's alarm is an incident as soon as the vault holds the entry. One a segment and a hundred a session: who owns a machine can write
-- as many as he likes.
create function nd7.alarm_raises() returns trigger language plpgsql set search_path = nd7, pg_temp as $$
declare
  found bigint[];
begin
  select array_agg(one.place - 1 order by one.place) into found from unnest(new.label) with ordinality as one (tuple, place)
  where new.labels[one.tuple * 5 - 4] = 'recorder' and new.labels[one.tuple * 5 - 3] = 'alarm';
  if found is null or (
    select count(*) from nd7.incident i where i.machine = new.machine and i.session = new.session and i.kind = 'alarm'
  ) >= 100 then return null; end if;
  insert into nd7.incident (team, id, kind, machine, session, count, at, seen)
  select new.team, 'i_' || replace(gen_random_uuid()::text, '-', ''), 'alarm', new.machine, new.session, new.from_entry + found[1] + 1, g.received,
    jsonb_build_object('alarms', cardinality(found))
  from nd7.segment g where g.team = new.team and g.machine = new.machine and g.session = new.session and g.from_entry = new.from_entry
  on conflict do nothing;
  return null;
end $$;
create trigger alarm_raises after insert on nd7.segment_index for each row
  when ('alarm' = any (new.labels)) execute function nd7.alarm_raises();
alter table nd7.segment_index enable always trigger alarm_raises;
