-- What a team's machines may do in confined sessions: a policy, signed by the team's key (docs/receipt.md). Each version stands for ever; the newest is in force.
create table nd7.team_policy (
  team text not null references nd7.team,
  version bigint not null check (version > 0),
  note text not null check (octet_length(note) between 1 and 8192), -- signed note: origin, version, SHA-256 of the policy
  policy text not null check (octet_length(policy) between 1 and 65536), -- the exact bytes
  made timestamptz not null default clock_timestamp(),
  primary key (team, version)
);
call nd7.guard_table('nd7.team_policy');
