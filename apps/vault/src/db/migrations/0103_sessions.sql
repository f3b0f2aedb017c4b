-- Sessions, segments, bodies. A session is (team, machine, session id) everywhere. What was said stands in no column: the clear ones hold
-- time, class, kind, agent, tool name and verdict; all else lies in sealed bodies.

-- The head of each session. Moved forward by take_segment, by nothing else.
create table nd7.session (
  team text not null,
  machine nd7.hex64 not null,
  session nd7.session_id not null,
  entries bigint not null check (entries > 0),
  head nd7.hex64 not null,
  key nd7.hex64 not null,        -- session key in force after the last entry
  first_key nd7.hex64 not null,  -- k(0), pinned for ever
  segments bigint not null,
  agent text check (agent ~ '^[a-z0-9][a-z0-9.-]{0,63}$'),
  started timestamptz,           -- time of entry 0, by the machine's clock
  last_time timestamptz,         -- time of the last entry, by the machine's clock
  received timestamptz not null, -- of the newest segment
  counts bigint[] not null check (cardinality(counts) = 5), -- intent, effect, decision, recorder, unclassified
  forked timestamptz,
  primary key (team, machine, session),
  foreign key (team, machine) references nd7.machine
);
create index session_by_age on nd7.session (team, received desc, machine, session);

create table nd7.segment (
  team text not null,
  machine nd7.hex64 not null,
  session nd7.session_id not null,
  from_entry bigint not null check (from_entry >= 0),
  to_entry bigint not null check (to_entry > from_entry),
  prev nd7.hex64 not null,
  head nd7.hex64 not null,
  signature nd7.signature not null,
  key nd7.hex64 not null,        -- session key in force after it
  received timestamptz not null,
  leaf_id bigint not null,
  body nd7.hex64 not null,       -- name of the sealed body
  bytes bigint not null,         -- of the entries, unsealed and decompressed
  primary key (team, machine, session, from_entry),
  unique (team, machine, session, prev),
  unique (team, machine, session, to_entry),
  foreign key (team, machine, session) references nd7.session
);

-- Sealed bodies by the SHA-256 of what is stored. They may move to an object store: nothing joins on them.
create table nd7.body (
  team text not null,
  hash nd7.hex64 not null,
  sealed bytea not null,
  primary key (team, hash)
);
alter table nd7.body alter column sealed set storage external;

-- COPY takes no table under row-level security, but it takes a view: the bytes come in as bytes and meet the same policy here.
create view nd7.body_in with (security_invoker = true) as select team, hash, sealed from nd7.body;
create function nd7.put_body() returns trigger language plpgsql set search_path = nd7, pg_temp as $$
begin
  insert into nd7.body (team, hash, sealed) values (new.team, new.hash, new.sealed) on conflict do nothing;
  return new;
end $$;
create trigger put_body instead of insert on nd7.body_in for each row execute function nd7.put_body();
grant insert on nd7.body_in to nd7_app;

-- The key of each session's bodies, wrapped by a team key that is in no database. Destroying a row is erasing the session's content.
create table nd7.data_key (
  team text not null,
  machine nd7.hex64 not null,
  session nd7.session_id not null,
  team_key text not null check (octet_length(team_key) <= 64),
  wrapped bytea not null,
  made timestamptz not null default clock_timestamp(),
  primary key (team, machine, session),
  foreign key (team, machine) references nd7.machine
);

-- What of each entry may stand in clear, one row per segment: `label[i]` numbers (from 1) a tuple of `labels`, five in a row:
-- class, kind, agent, tool, verdict. The view `entry` unrolls it.
create table nd7.segment_index (
  team text not null,
  machine nd7.hex64 not null,
  session nd7.session_id not null,
  from_entry bigint not null,
  times bigint[] not null,       -- milliseconds since 1970
  label smallint[] not null,
  labels text[] not null,
  primary key (team, machine, session, from_entry),
  foreign key (team, machine, session, from_entry) references nd7.segment
);

create view nd7.entry with (security_invoker = true) as
select i.team, i.machine, i.session, i.from_entry + one.place - 1 as seq, to_timestamp(one.at / 1000.0) as time,
  i.labels[one.tuple * 5 - 4] as class, i.labels[one.tuple * 5 - 3] as kind, i.labels[one.tuple * 5 - 2] as agent,
  i.labels[one.tuple * 5 - 1] as tool, i.labels[one.tuple * 5] as verdict
from nd7.segment_index i, unnest(i.times, i.label) with ordinality as one (at, tuple, place);
grant select on nd7.entry to nd7_app;

-- Every session key that was ever certified or named by a seal: a key has one role.
create table nd7.session_key (
  team text not null,
  key nd7.hex64 not null,
  primary key (team, key)
);
create index session_key_by_key on nd7.session_key (key);

-- Statements of a machine that a session began or ended, and the vault's own that it is lost or forked (without signature).
create table nd7.session_statement (
  team text not null,
  machine nd7.hex64 not null,
  session nd7.session_id not null,
  type text not null check (type in ('open', 'close')),
  entries bigint not null,
  head nd7.hex64 not null,
  key nd7.hex64,
  reason text not null check (reason in ('', 'ended', 'lost', 'forked', 'continued')),
  signature nd7.signature,
  received timestamptz not null,
  leaf_id bigint not null,
  primary key (team, machine, session, type, entries, reason),
  foreign key (team, machine, session) references nd7.session,
  check ((type = 'open') = (reason = '') and (type = 'open') = (key is not null)),
  check ((signature is null) = (reason in ('lost', 'forked')))
);

-- Signed claims that the vault does not hold as segments: what a fork or a disagreement is proved with. The body is kept as it came,
-- unverified.
create table nd7.evidence (
  team text not null,
  id bigint generated always as identity,
  machine nd7.hex64 not null,
  session nd7.session_id not null,
  from_entry bigint not null,
  to_entry bigint not null,
  prev nd7.hex64 not null,
  head nd7.hex64 not null,
  signature nd7.signature not null,
  received timestamptz not null,
  body nd7.hex64,
  primary key (team, id),
  unique (team, machine, session, from_entry, to_entry, prev, head),
  foreign key (team, machine, session) references nd7.session
);

create table nd7.fork (
  team text not null,
  machine nd7.hex64 not null,
  session nd7.session_id not null,
  count bigint not null,
  from_entry bigint not null,    -- the stored segment whose claim convicts
  evidence bigint not null,      -- the second claim
  received timestamptz not null,
  leaf_id bigint not null,
  primary key (team, machine, session, count, evidence),
  foreign key (team, evidence) references nd7.evidence,
  foreign key (team, machine, session, from_entry) references nd7.segment
);

-- What a person has to look at. Kinds are open: silence, clocks and tails add theirs.
create table nd7.incident (
  team text not null,
  id text not null check (id ~ '^i_[0-9a-f]{32}$'),
  kind text not null check (kind ~ '^[a-z][a-z-]{0,63}$'),
  machine nd7.hex64 not null,
  session nd7.session_id,
  count bigint,
  evidence bigint,
  leaf_id bigint,
  at timestamptz not null,
  primary key (team, id),
  foreign key (team, machine) references nd7.machine,
  foreign key (team, evidence) references nd7.evidence
);
create unique index incident_once on nd7.incident (team, kind, machine, session, count, evidence) nulls not distinct;
create index incident_by_age on nd7.incident (team, at desc);
create index incident_by_session on nd7.incident (team, machine, session);

call nd7.guard_table('nd7.session', updatable => true);
call nd7.guard_table('nd7.segment');
call nd7.guard_table('nd7.body');
call nd7.guard_table('nd7.data_key');
call nd7.guard_table('nd7.segment_index');
call nd7.guard_table('nd7.session_key');
call nd7.guard_table('nd7.session_statement');
call nd7.guard_table('nd7.evidence');
call nd7.guard_table('nd7.fork');
call nd7.guard_table('nd7.incident');

-- A session is made and moved by the keeper's functions only, not by an INSERT of the service.
revoke insert on nd7.session, nd7.segment, nd7.segment_index from nd7_app;

-- Whatever function moves a head: it moves forward, and what was pinned stays pinned.
create function nd7.session_moves_forward() returns trigger language plpgsql set search_path = nd7, pg_temp as $$
begin
  if new.entries < old.entries or (new.entries = old.entries and new.head <> old.head) or new.first_key <> old.first_key
     or (old.forked is not null and (new.entries <> old.entries or new.forked is distinct from old.forked))
     or (new.team, new.machine, new.session) is distinct from (old.team, old.machine, old.session) then
    raise exception 'session % of %: a head only moves forward', old.session, old.machine using errcode = 'insufficient_privilege';
  end if;
  return new;
end $$;
create trigger session_moves_forward before update on nd7.session for each row execute function nd7.session_moves_forward();
alter table nd7.session enable always trigger session_moves_forward;

-- Revocation excludes ingest of the machine while it is written, ingest holds it off while it runs: after a revocation has committed, no
-- segment commits that did not see it, on any replica.
create function nd7.machine_lock(of_team text, of_machine text) returns bigint language sql immutable set search_path = nd7, pg_temp as
$$ select hashtextextended('nd7 machine ' || of_team || ' ' || of_machine, 0) $$;

-- Whether a machine is not revoked at a time, nor now; held until the caller's transaction has ended. Asked by everything that adds a statement of
-- a machine to the log.
create function nd7.machine_stands(of_machine text, taken timestamptz) returns boolean
  language plpgsql security definer set search_path = nd7, pg_temp as $$
declare t text := current_setting('nd7.team');
begin
  perform pg_advisory_xact_lock_shared(nd7.machine_lock(t, of_machine));
  return not exists (select from nd7.machine_revocation r where r.team = t and r.machine = of_machine and r.since <= greatest(taken, clock_timestamp()));
end $$;

-- Takes a verified segment: moves the head by compare-and-set and stores the row, or says why not: 'stored', 'moved' (the head is not
-- where the caller saw it), 'revoked'. In the caller's transaction, which rolls back unless it is stored.
create function nd7.take_segment(
  of_machine text, of_session text, from_n bigint, to_n bigint, prev_hash text, head_hash text, signed text, key_first text, key_after text,
  session_keys text[], taken timestamptz, leaf bigint, body_hash text, body_bytes bigint, of_agent text, class_counts bigint[],
  entry_times bigint[], entry_label smallint[], entry_labels text[]
) returns text language plpgsql security definer set search_path = nd7, pg_temp as $$
declare
  t text := current_setting('nd7.team');
  moved bigint;
begin
  if not nd7.machine_stands(of_machine, taken) then return 'revoked'; end if;
  if from_n = 0 then
    insert into nd7.session (team, machine, session, entries, head, key, first_key, segments, agent, started, last_time, received, counts)
    values (t, of_machine, of_session, to_n, head_hash, key_after, key_first, 1, of_agent, to_timestamp(entry_times[1] / 1000.0),
      to_timestamp(entry_times[cardinality(entry_times)] / 1000.0), taken, class_counts)
    on conflict do nothing;
  else
    update nd7.session s set entries = to_n, head = head_hash, key = key_after, segments = s.segments + 1, agent = coalesce(s.agent, of_agent),
      last_time = to_timestamp(entry_times[cardinality(entry_times)] / 1000.0), received = greatest(s.received, taken),
      counts = array[s.counts[1] + class_counts[1], s.counts[2] + class_counts[2], s.counts[3] + class_counts[3], s.counts[4] + class_counts[4], s.counts[5] + class_counts[5]]
    where s.team = t and s.machine = of_machine and s.session = of_session and s.entries = from_n and s.head = prev_hash and s.forked is null;
  end if;
  get diagnostics moved = row_count;
  if moved = 0 then return 'moved'; end if;
  insert into nd7.segment (team, machine, session, from_entry, to_entry, prev, head, signature, key, received, leaf_id, body, bytes)
  values (t, of_machine, of_session, from_n, to_n, prev_hash, head_hash, signed, key_after, taken, leaf, body_hash, body_bytes);
  insert into nd7.segment_index (team, machine, session, from_entry, times, label, labels)
  values (t, of_machine, of_session, from_n, entry_times, entry_label, entry_labels);
  insert into nd7.session_key (team, key) select t, k from unnest(session_keys) k on conflict do nothing;
  return 'stored';
end $$;

-- Marks a session as forked; true the first time.
create function nd7.mark_forked(of_machine text, of_session text, taken timestamptz) returns boolean language plpgsql security definer set search_path = nd7, pg_temp as $$
declare moved bigint;
begin
  update nd7.session s set forked = taken
  where s.team = current_setting('nd7.team') and s.machine = of_machine and s.session = of_session and s.forked is null;
  get diagnostics moved = row_count;
  return moved = 1;
end $$;

-- Holds ingest of a machine off until the caller's transaction, which revokes it, has ended.
create function nd7.hold_machine(of_machine text) returns void language sql security definer set search_path = nd7, pg_temp as
$$ select pg_advisory_xact_lock(nd7.machine_lock(current_setting('nd7.team'), of_machine)) $$;

-- In which other role a key is known, in any team: 'session' or null. (A team's log keys: nd7.is_vault_key.)
create policy keeper_finds on nd7.session_key for select to nd7_keeper using (true);
create function nd7.is_session_key(wanted text) returns boolean language sql stable security definer set search_path = nd7, pg_temp as
$$ select exists (select from nd7.session_key where key = wanted) $$;

grant execute on function nd7.machine_lock(text, text) to nd7_keeper;
revoke all on function nd7.machine_lock(text, text) from public;
call nd7.guard_function('nd7.machine_stands(text, timestamptz)');
call nd7.guard_function('nd7.take_segment(text, text, bigint, bigint, text, text, text, text, text, text[], timestamptz, bigint, text, bigint, text, bigint[], bigint[], smallint[], text[])');
call nd7.guard_function('nd7.mark_forked(text, text, timestamptz)');
call nd7.guard_function('nd7.hold_machine(text)');
call nd7.guard_function('nd7.is_session_key(text)');
