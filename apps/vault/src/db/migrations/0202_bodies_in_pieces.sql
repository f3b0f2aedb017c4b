-- Bodies in pieces that fit a page. As one value a body went to the TOAST table in chunks of 2 KB, copied whole several times on its way: more than
-- twice the server's time for the same bytes (docs/adr/0013).

drop view nd7.body_in;
drop function nd7.put_body();
alter table nd7.body rename to body_whole;
alter index nd7.body_pkey rename to body_whole_pkey;

-- Sealed bodies by the SHA-256 of what is stored, cut into pieces of 7,936 bytes of which the last has fewer, be it none: a body has
-- an end behind which nothing can be added. They may move to an object store: nothing joins on them.
create table nd7.body (
  team text not null,
  hash text not null check (octet_length(hash) = 64),
  place integer not null check (place >= 0),
  piece bytea not null check (octet_length(piece) <= 7936), -- with the rest of its row at most a page
  primary key (team, hash, place)
);
alter table nd7.body alter column piece set storage plain;

-- Whoever owns the tables sees the rows of all teams while the policy is not forced.
alter table nd7.body_whole no force row level security;
insert into nd7.body (team, hash, place, piece)
select team, hash, place, substring(sealed from place * 7936 + 1 for 7936)
from nd7.body_whole, generate_series(0, octet_length(sealed) / 7936) as place;
drop table nd7.body_whole;

-- COPY takes no table under row-level security, but it takes a view: the bytes come in as bytes and meet the same policy here. A row of it is a run of
-- eight pieces, or the rest of a body: a call of the trigger for each piece costs as much as storing it. `place` is that of the run's first piece.
create view nd7.body_in with (security_invoker = true) as select team, hash, place, piece as run from nd7.body;
create function nd7.put_body() returns trigger language plpgsql set search_path = nd7, pg_temp as $$
begin
  insert into nd7.body (team, hash, place, piece)
  select new.team, new.hash, new.place + n, substring(new.run from n * 7936 + 1 for 7936) from generate_series(0, least(octet_length(new.run) / 7936, 7)) as n
  on conflict do nothing;
  return new;
end $$;
create trigger put_body instead of insert on nd7.body_in for each row execute function nd7.put_body();
grant insert on nd7.body_in to nd7_app;
call nd7.guard_table('nd7.body');
