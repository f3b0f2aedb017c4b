// What the schema must hold besides what the boot check reads off the catalog for every table. New tables need no entry here: the rule for
// all is the strict one; only exceptions and the constraints that carry a promise are named.

/** Tables without a tenant, and why. */
export const WITHOUT_TENANT: Readonly<Record<string, string>> = {
  migration: 'what was applied to the database; belongs to no team',
};

/** Tables whose rows the keeper's functions may move; all others refuse every UPDATE. */
export const MOVES: readonly string[] = ['session'];

/** Tables whose rows the keeper's functions may remove: names of people and machines, and nonces. */
export const FORGETS: readonly string[] = ['machine_name', 'nonce', 'reader_name'];

/** Tables the service does not insert into: the keeper's functions do. */
export const KEEPER_INSERTS: readonly string[] = ['session', 'segment', 'segment_index'];

/** Functions that must be there, owned by the keeper. */
export const KEEPER_FUNCTIONS: readonly string[] = [
  'forget_nonces',
  'hold_machine',
  'is_public_log',
  'is_session_key',
  'is_vault_key',
  'machine_of_token',
  'machine_stands',
  'mark_forked',
  'reader_of_cookie',
  'reader_of_token',
  'take_segment',
  'team_of_enrolment',
  'teams',
];

/** Triggers that must fire always, besides the two every table has: [table, trigger]. */
export const TRIGGERS: readonly (readonly [string, string])[] = [
  ['session', 'session_moves_forward'],
  ['log_checkpoint', 'in_order'],
  ['log_publication', 'in_order'],
  ['log_signature', 'in_order'],
  ['segment_index', 'alarm_raises'],
];

/** Unique constraints that races and forks are decided by: [table, columns]. */
export const UNIQUE: readonly (readonly [string, string])[] = [
  ['session', 'team, machine, session'],
  ['segment', 'team, machine, session, from_entry'],
  ['segment', 'team, machine, session, prev'],
  ['segment', 'team, machine, session, to_entry'],
  ['data_key', 'team, machine, session'],
  ['evidence', 'team, machine, session, from_entry, to_entry, prev, head'],
  ['fork', 'team, machine, session, count, evidence'],
  ['enrolment_use', 'team, secret_hash'],
  ['nonce', 'team, machine, nonce'],
  ['machine', 'team, machine'],
  ['machine_token', 'token_hash'],
  ['log', 'team'],
  ['log', 'origin'],
  ['log_leaf', 'team, leaf_index'],
  ['log_leaf', 'team, leaf_id'],
  ['log_checkpoint', 'team, size'],
  ['log_checkpoint', 'team, prior_size'],
  ['log_publication', 'team, size'],
  ['log_publication', 'team, first_index'],
  ['log_epoch', 'team, epoch'],
];

/** The policies by which the keeper's functions see all teams, each for one question: [table, policy]. */
export const KEEPER_POLICIES: readonly (readonly [string, string])[] = [
  ['team', 'keeper_finds'],
  ['team_setting', 'keeper_finds'],
  ['enrolment', 'keeper_finds'],
  ['machine_token', 'keeper_finds'],
  ['reader_token', 'keeper_finds'],
  ['reader_revocation', 'keeper_finds'],
  ['sign_in', 'keeper_finds'],
  ['sign_out', 'keeper_finds'],
  ['session_key', 'keeper_finds'],
  ['nonce', 'keeper_forgets'],
  ['log_key', 'keeper_finds'],
];
