-- Who may do what: enrolment, machines, readers. Tokens stand here only as SHA-256. People are opaque ids (`u_<32 hex>`); names of
-- people and machines stand in tables of their own that can be erased.

create domain nd7.hex64 as text check (value ~ '^[0-9a-f]{64}$');
create domain nd7.session_id as text check (value ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$');
create domain nd7.person as text check (value ~ '^u_[0-9a-f]{32}$');
create domain nd7.signature as text check (value ~ '^[A-Za-z0-9+/]{86}==$');

-- Settings of a team, newest counts: 'policy' (witness policy text), 'log' ('team' or 'public').
create table nd7.team_setting (
  team text not null references nd7.team,
  id bigint generated always as identity,
  name text not null check (name in ('policy', 'log')),
  value text not null check (octet_length(value) <= 65536),
  made timestamptz not null default clock_timestamp(),
  made_by nd7.person,
  primary key (team, id)
);

create table nd7.enrolment (
  team text not null references nd7.team,
  secret_hash nd7.hex64 not null unique,
  vkey_hash nd7.hex64 not null,
  made timestamptz not null default clock_timestamp(),
  expires timestamptz not null,
  primary key (team, secret_hash)
);

create table nd7.machine (
  team text not null references nd7.team,
  machine nd7.hex64 not null,
  name_hash nd7.hex64 not null,
  signature nd7.signature not null,
  enrolled timestamptz not null,
  leaf_id bigint not null,
  primary key (team, machine)
);
create index machine_by_key on nd7.machine (machine);

-- One row per secret: that is what makes it one-time.
create table nd7.enrolment_use (
  team text not null,
  secret_hash nd7.hex64 not null,
  machine nd7.hex64 not null,
  used timestamptz not null default clock_timestamp(),
  primary key (team, secret_hash),
  foreign key (team, secret_hash) references nd7.enrolment,
  foreign key (team, machine) references nd7.machine
);

create table nd7.machine_name (
  team text not null,
  machine nd7.hex64 not null,
  name text not null check (char_length(name) between 1 and 128),
  primary key (team, machine),
  foreign key (team, machine) references nd7.machine
);

create table nd7.machine_token (
  team text not null,
  token_hash nd7.hex64 not null unique,
  machine nd7.hex64 not null,
  made timestamptz not null default clock_timestamp(),
  primary key (team, token_hash),
  foreign key (team, machine) references nd7.machine
);

create table nd7.machine_revocation (
  team text not null,
  machine nd7.hex64 not null,
  since timestamptz not null,
  revoked_by nd7.person not null,
  received timestamptz not null,
  leaf_id bigint not null,
  primary key (team, machine, since),
  foreign key (team, machine) references nd7.machine
);

-- Nonces of signed requests. No evidence: forgotten when they are older than any request that could carry them.
create table nd7.nonce (
  team text not null,
  machine nd7.hex64 not null,
  nonce text not null check (nonce ~ '^[0-9a-f]{32}$'),
  made timestamptz not null default clock_timestamp(),
  primary key (team, machine, nonce)
);
create index nonce_by_age on nd7.nonce (made);

create table nd7.heartbeat (
  team text not null,
  machine nd7.hex64 not null,
  id bigint generated always as identity,
  received timestamptz not null default clock_timestamp(),
  -- What the machine said: its clock, and how far each of its sessions is.
  machine_time timestamptz not null,
  sessions text[] not null,
  entries bigint[] not null,
  heads text[] not null,
  primary key (team, machine, id),
  foreign key (team, machine) references nd7.machine,
  check (cardinality(sessions) = cardinality(entries) and cardinality(sessions) = cardinality(heads))
);

create table nd7.reader (
  team text not null references nd7.team,
  reader nd7.person not null,
  made timestamptz not null default clock_timestamp(),
  primary key (team, reader)
);

create table nd7.reader_name (
  team text not null,
  reader nd7.person not null,
  name text not null check (char_length(name) between 1 and 128),
  primary key (team, reader),
  foreign key (team, reader) references nd7.reader
);

create table nd7.reader_token (
  team text not null,
  token_hash nd7.hex64 not null unique,
  reader nd7.person not null,
  made timestamptz not null default clock_timestamp(),
  expires timestamptz,
  primary key (team, token_hash),
  foreign key (team, reader) references nd7.reader
);

create table nd7.reader_revocation (
  team text not null,
  reader nd7.person not null,
  made timestamptz not null default clock_timestamp(),
  primary key (team, reader),
  foreign key (team, reader) references nd7.reader
);

-- A signed-in browser: its cookie is a secret of its own, so that the reader's token never lies in a browser.
create table nd7.sign_in (
  team text not null,
  cookie_hash nd7.hex64 not null unique,
  reader nd7.person not null,
  made timestamptz not null default clock_timestamp(),
  expires timestamptz not null,
  primary key (team, cookie_hash),
  foreign key (team, reader) references nd7.reader
);

create table nd7.sign_out (
  team text not null,
  cookie_hash nd7.hex64 not null,
  made timestamptz not null default clock_timestamp(),
  primary key (team, cookie_hash),
  foreign key (team, cookie_hash) references nd7.sign_in
);

call nd7.guard_table('nd7.team_setting');
call nd7.guard_table('nd7.enrolment');
call nd7.guard_table('nd7.enrolment_use');
call nd7.guard_table('nd7.machine');
call nd7.guard_table('nd7.machine_name', erasable => true);
call nd7.guard_table('nd7.machine_token');
call nd7.guard_table('nd7.machine_revocation');
call nd7.guard_table('nd7.nonce', erasable => true);
call nd7.guard_table('nd7.heartbeat');
call nd7.guard_table('nd7.reader');
call nd7.guard_table('nd7.reader_name', erasable => true);
call nd7.guard_table('nd7.reader_token');
call nd7.guard_table('nd7.reader_revocation');
call nd7.guard_table('nd7.sign_in');
call nd7.guard_table('nd7.sign_out');

-- A request shows a token before anybody knows its team: these functions see all teams and tell nothing but what the token names.
create policy keeper_finds on nd7.enrolment for select to nd7_keeper using (true);
create policy keeper_finds on nd7.machine_token for select to nd7_keeper using (true);
create policy keeper_finds on nd7.reader_token for select to nd7_keeper using (true);
create policy keeper_finds on nd7.reader_revocation for select to nd7_keeper using (true);
create policy keeper_finds on nd7.sign_in for select to nd7_keeper using (true);
create policy keeper_finds on nd7.sign_out for select to nd7_keeper using (true);
create policy keeper_finds on nd7.team_setting for select to nd7_keeper using (true);
create policy keeper_forgets on nd7.nonce to nd7_keeper using (true);

create function nd7.team_of_enrolment(wanted text) returns text language sql stable security definer set search_path = nd7, pg_temp as
$$ select team from nd7.enrolment where secret_hash = wanted $$;

create function nd7.machine_of_token(wanted text, out team text, out machine text)
  returns setof record language sql stable security definer set search_path = nd7, pg_temp as
$$ select t.team, t.machine::text from nd7.machine_token t where t.token_hash = wanted $$;

-- A reader as long as the token is good: not expired, not revoked.
create function nd7.reader_of_token(wanted text, out team text, out reader text)
  returns setof record language sql stable security definer set search_path = nd7, pg_temp as
$$ select t.team, t.reader::text from nd7.reader_token t
   where t.token_hash = wanted and (t.expires is null or t.expires > clock_timestamp())
     and not exists (select from nd7.reader_revocation r where r.team = t.team and r.reader = t.reader) $$;

create function nd7.reader_of_cookie(wanted text, out team text, out reader text)
  returns setof record language sql stable security definer set search_path = nd7, pg_temp as
$$ select s.team, s.reader::text from nd7.sign_in s
   where s.cookie_hash = wanted and s.expires > clock_timestamp()
     and not exists (select from nd7.sign_out o where o.team = s.team and o.cookie_hash = s.cookie_hash)
     and not exists (select from nd7.reader_revocation r where r.team = s.team and r.reader = s.reader) $$;

-- Whether a team made its log public; asked before anybody is known.
create function nd7.is_public_log(wanted text) returns boolean language sql stable security definer set search_path = nd7, pg_temp as
$$ select coalesce((select value = 'public' from nd7.team_setting where team = wanted and name = 'log' order by id desc limit 1), false) $$;

create function nd7.forget_nonces(older interval) returns bigint language plpgsql security definer set search_path = nd7, pg_temp as $$
declare gone bigint;
begin
  -- A request's time may differ by 300 s both ways: nothing younger than 15 minutes may ever be forgotten.
  delete from nd7.nonce where made < clock_timestamp() - greatest(older, interval '15 minutes');
  get diagnostics gone = row_count;
  return gone;
end $$;

call nd7.guard_function('nd7.team_of_enrolment(text)');
call nd7.guard_function('nd7.machine_of_token(text)');
call nd7.guard_function('nd7.reader_of_token(text)');
call nd7.guard_function('nd7.reader_of_cookie(text)');
call nd7.guard_function('nd7.is_public_log(text)');
call nd7.guard_function('nd7.forget_nonces(interval)');
