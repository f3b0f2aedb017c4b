-- The transparency log of each team (docs/receipt.md). Rows are only ever added: what is in a tree, and what was published, is a fact.
-- Safety rests on the constraints here, not on any lock: a second sequencer can lose time, never make a second history.

-- The log of a team. Its origin is never renamed: a vault that is configured with another name does not go on with it.
create table nd7.log (
  team text primary key references nd7.team,
  origin text not null unique check (origin ~ '^[a-z0-9.-]+/[a-z0-9-]+$' and octet_length(origin) <= 128),
  made timestamptz not null default clock_timestamp()
);

-- The verifier keys the log has had, oldest first. The newest is the one machines pin at enrolment.
create table nd7.log_key (
  team text not null references nd7.log,
  position integer not null check (position >= 0),
  vkey text not null check (octet_length(vkey) <= 512),
  public_key bytea not null unique check (octet_length(public_key) = 32),
  made timestamptz not null default clock_timestamp(),
  primary key (team, position),
  unique (team, vkey)
);

-- Terms of leadership. Whoever adds the newest row leads; a checkpoint of an older term is refused (log_checkpoint_in_order).
create table nd7.log_epoch (
  team text not null references nd7.log,
  epoch bigint not null check (epoch > 0),
  leader text not null check (octet_length(leader) <= 256),
  made timestamptz not null default clock_timestamp(),
  primary key (team, epoch)
);

-- Statements, durable with the fact they speak of. Their order here means nothing: the order is leaf_index.
create table nd7.log_queue (
  team text not null references nd7.log,
  leaf_id bigint generated always as identity,
  statement text not null check (octet_length(statement) between 1 and 4096),
  made timestamptz not null default clock_timestamp(),
  primary key (team, leaf_id)
);

-- Sequenced: each statement has exactly one index, each index exactly one statement.
create table nd7.log_leaf (
  team text not null,
  leaf_index bigint not null check (leaf_index >= 0),
  leaf_id bigint not null,
  hash bytea not null check (octet_length(hash) = 32), -- SHA-256(0x00 || statement)
  primary key (team, leaf_index),
  unique (team, leaf_id),
  foreign key (team, leaf_id) references nd7.log_queue (team, leaf_id)
);

-- Integrated: complete subtrees above the leaves (RFC 6962); node (level, index) covers the leaves index * 2^level up to (index + 1) * 2^level.
create table nd7.log_node (
  team text not null,
  level smallint not null check (level between 1 and 53),
  node_index bigint not null check (node_index >= 0),
  hash bytea not null check (octet_length(hash) = 32),
  primary key (team, level, node_index)
);

-- The only root each size ever gets, committed before anybody signs it. (team, prior_size) makes the sizes one line without branches.
create table nd7.log_checkpoint (
  team text not null references nd7.log,
  size bigint not null,
  prior_size bigint not null check (prior_size >= 0),
  root bytea not null check (octet_length(root) = 32),
  epoch bigint not null,
  -- Every leaf_id up to here is in the tree, or its transaction was rolled back.
  queue_floor bigint not null check (queue_floor >= 0),
  made timestamptz not null default clock_timestamp(),
  primary key (team, size),
  unique (team, prior_size),
  foreign key (team, epoch) references nd7.log_epoch (team, epoch),
  check (size > prior_size)
);

-- Signature lines of a checkpoint, in the order they are published.
create table nd7.log_signature (
  team text not null,
  size bigint not null,
  position smallint not null check (position between 0 and 99),
  line text not null check (line ~ '^— [^ +]+ [A-Za-z0-9+/]+=*$'),
  primary key (team, size, position),
  foreign key (team, size) references nd7.log_checkpoint (team, size)
);

-- Published: the checkpoint as the world saw it, with so many signature lines. It is the receipts' fact as well: the leaves from first_index
-- up to size have their receipt against this checkpoint, for ever.
create table nd7.log_publication (
  team text not null,
  size bigint not null,
  first_index bigint not null check (first_index >= 0),
  lines smallint not null check (lines > 0),
  made timestamptz not null default clock_timestamp(),
  primary key (team, size),
  unique (team, first_index),
  foreign key (team, size) references nd7.log_checkpoint (team, size),
  check (size > first_index)
);

create function nd7.log_checkpoint_in_order() returns trigger language plpgsql set search_path = nd7, pg_temp as $$
declare
  newest bigint;
  tip bigint;
begin
  select max(epoch) into newest from nd7.log_epoch where team = new.team;
  if newest is distinct from new.epoch then
    raise exception 'log %: term % is over, term % leads', new.team, new.epoch, newest using errcode = 'ND701';
  end if;
  select coalesce(max(size), 0) into tip from nd7.log_checkpoint where team = new.team;
  if tip <> new.prior_size then
    raise exception 'log %: the tree has % leaves, not %', new.team, tip, new.prior_size using errcode = 'ND701';
  end if;
  return new;
end $$;
create trigger in_order before insert on nd7.log_checkpoint for each row execute function nd7.log_checkpoint_in_order();
alter table nd7.log_checkpoint enable always trigger in_order;

create function nd7.log_publication_in_order() returns trigger language plpgsql set search_path = nd7, pg_temp as $$
declare
  published bigint;
  held bigint;
begin
  select coalesce(max(size), 0) into published from nd7.log_publication where team = new.team;
  if published <> new.first_index then
    raise exception 'log %: published up to %, not %', new.team, published, new.first_index using errcode = 'ND702';
  end if;
  select count(*) into held from nd7.log_signature where team = new.team and size = new.size;
  if held <> new.lines then
    raise exception 'log %: checkpoint % has % signature lines, not %', new.team, new.size, held, new.lines using errcode = 'ND702';
  end if;
  return new;
end $$;
create trigger in_order before insert on nd7.log_publication for each row execute function nd7.log_publication_in_order();
alter table nd7.log_publication enable always trigger in_order;

-- A published checkpoint gets no further signature: later cosignatures belong to later checkpoints.
create function nd7.log_signature_in_order() returns trigger language plpgsql set search_path = nd7, pg_temp as $$
begin
  if exists (select from nd7.log_publication where team = new.team and size = new.size) then
    raise exception 'log %: checkpoint % is published', new.team, new.size using errcode = 'ND702';
  end if;
  return new;
end $$;
create trigger in_order before insert on nd7.log_signature for each row execute function nd7.log_signature_in_order();
alter table nd7.log_signature enable always trigger in_order;

-- Queues one statement. `signed_size` and `signed_root` are what the signer signed last, as the caller knows it: everything signed was
-- committed here before, so a database without it was restored, or is a standby that lagged, and takes nothing until a person has decided.
create function nd7.log_enqueue(for_team text, what text, signed_size bigint, signed_root bytea) returns bigint
  language plpgsql set search_path = nd7, pg_temp as $$
declare
  id bigint;
begin
  if signed_size > 0 and not exists (select from nd7.log_checkpoint where team = for_team and size = signed_size and root = signed_root) then
    raise exception 'log %: the database does not hold what was signed at size %', for_team, signed_size using errcode = 'ND703';
  end if;
  -- The transaction has its number before the row has its id: the sequencer's floor rests on that order (src/sequence/floor.ts).
  perform pg_current_xact_id();
  insert into nd7.log_queue (team, statement) values (for_team, what) returning leaf_id into id;
  return id;
end $$;
revoke all on function nd7.log_enqueue(text, text, bigint, bytea) from public;
grant execute on function nd7.log_enqueue(text, text, bigint, bytea) to nd7_app;

call nd7.guard_table('nd7.log');
call nd7.guard_table('nd7.log_key');
call nd7.guard_table('nd7.log_epoch');
call nd7.guard_table('nd7.log_queue');
call nd7.guard_table('nd7.log_leaf');
call nd7.guard_table('nd7.log_node');
call nd7.guard_table('nd7.log_checkpoint');
call nd7.guard_table('nd7.log_signature');
call nd7.guard_table('nd7.log_publication');

-- How far ids of the queue have been given out (src/sequence/floor.ts).
grant select on sequence nd7.log_queue_leaf_id_seq to nd7_app;

-- A key has one role: enrolment refuses a machine key that any team's log signs with.
create policy keeper_finds on nd7.log_key for select to nd7_keeper using (true);
create function nd7.is_vault_key(key bytea) returns boolean language sql stable security definer set search_path = nd7, pg_temp as
$$ select exists (select from nd7.log_key where public_key = key) $$;
call nd7.guard_function('nd7.is_vault_key(bytea)');
