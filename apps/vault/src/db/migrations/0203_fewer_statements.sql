-- What a segment asks of the database, in fewer statements: each costs the service and the server about a tenth of a millisecond, whatever it does.

-- Uses a nonce up and looks whether the machine is revoked. A transaction of its own whose commit is not waited for on disk: whatever the request then
-- does commits after it and takes it along, and a request that did nothing may as well be repeated.
create function nd7.use_nonce(of_team text, of_machine text, used text, at_time timestamptz, out fresh boolean, out revoked boolean)
  language plpgsql set search_path = nd7, pg_temp as $$
begin
  perform set_config('nd7.team', of_team, true), set_config('synchronous_commit', 'off', true);
  insert into nd7.nonce (team, machine, nonce) values (of_team, of_machine, used) on conflict do nothing;
  fresh := found;
  revoked := exists (select from nd7.machine_revocation where machine = of_machine and since <= at_time);
end $$;
revoke all on function nd7.use_nonce(text, text, text, timestamptz) from public;
grant execute on function nd7.use_nonce(text, text, text, timestamptz) to nd7_app;

-- Null instead of an error where the database does not hold what was signed: the transaction lives on, and its owner says both checkpoints' names.
create or replace function nd7.log_enqueue(for_team text, what text, signed_size bigint, signed_root bytea) returns bigint
  language plpgsql set search_path = nd7, pg_temp as $$
declare
  id bigint;
begin
  if signed_size > 0 and not exists (select from nd7.log_checkpoint where team = for_team and size = signed_size and root = signed_root) then
    return null;
  end if;
  -- The transaction has its number before the row has its id: the sequencer's floor rests on that order (src/sequence/floor.ts).
  perform pg_current_xact_id();
  insert into nd7.log_queue (team, statement) values (for_team, what) returning leaf_id into id;
  return id;
end $$;

-- Where a session stands, and every stored segment whose claim speaks of one of two counts: one row at least, `entries` null where there is no session,
-- `from_entry` null where there is no such segment.
create function nd7.standing(of_team text, of_machine text, of_session text, count_a bigint, count_b bigint) returns table (
  entries bigint, head text, key text, first_key text, forked boolean,
  from_entry bigint, to_entry bigint, prev text, segment_head text, signature text, leaf_id bigint, key_before text
) language plpgsql set search_path = nd7, pg_temp as $$
#variable_conflict use_column
begin
  perform set_config('nd7.team', of_team, true);
  return query
    select s.entries, s.head::text, s.key::text, s.first_key::text, s.forked is not null,
      g.from_entry, g.to_entry, g.prev::text, g.head::text, g.signature::text, g.leaf_id,
      (select b.key::text from nd7.segment b where b.team = g.team and b.machine = g.machine and b.session = g.session and b.to_entry = g.from_entry)
    from (values (1)) as one
    left join nd7.session s on s.team = of_team and s.machine = of_machine and s.session = of_session
    left join nd7.segment g on g.team = of_team and g.machine = of_machine and g.session = of_session
      and (g.from_entry in (count_a, count_b) or g.to_entry in (count_a, count_b))
    order by g.from_entry;
end $$;
revoke all on function nd7.standing(text, text, text, bigint, bigint) from public;
grant execute on function nd7.standing(text, text, text, bigint, bigint) to nd7_app;
