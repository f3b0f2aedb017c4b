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

/** Triggers besides the two every table has, as PostgreSQL writes them after their name. There may be no others: one that returns null swallows rows. */
export const TRIGGERS: readonly { on: string; name: string; does: string }[] = [
  {
    on: 'session',
    name: 'session_moves_forward',
    does: 'BEFORE UPDATE ON nd7.session FOR EACH ROW EXECUTE FUNCTION session_moves_forward()',
  },
  {
    on: 'log_checkpoint',
    name: 'in_order',
    does: 'BEFORE INSERT ON nd7.log_checkpoint FOR EACH ROW EXECUTE FUNCTION log_checkpoint_in_order()',
  },
  {
    on: 'log_publication',
    name: 'in_order',
    does: 'BEFORE INSERT ON nd7.log_publication FOR EACH ROW EXECUTE FUNCTION log_publication_in_order()',
  },
  {
    on: 'log_signature',
    name: 'in_order',
    does: 'BEFORE INSERT ON nd7.log_signature FOR EACH ROW EXECUTE FUNCTION log_signature_in_order()',
  },
  {
    on: 'segment_index',
    name: 'alarm_raises',
    does: "AFTER INSERT ON nd7.segment_index FOR EACH ROW WHEN (('alarm'::text = ANY (new.labels))) EXECUTE FUNCTION alarm_raises()",
  },
  {
    on: 'body_in',
    name: 'put_body',
    does: 'INSTEAD OF INSERT ON nd7.body_in FOR EACH ROW EXECUTE FUNCTION put_body()',
  },
];

/** Unique constraints that races and forks are decided by: [table, columns and, where it is not for every row, for which]. */
export const UNIQUE: readonly (readonly [string, string])[] = [
  ['session', 'team, machine, session'],
  ['segment', 'team, machine, session, from_entry'],
  ['segment', 'team, machine, session, prev'],
  ['segment', 'team, machine, session, to_entry'],
  ['data_key', 'team, machine, session'],
  ['evidence', 'team, machine, session, from_entry, to_entry, prev, head'],
  ['fork', 'team, machine, session, count, evidence'],
  ['body', 'team, hash, place'],
  ['incident', 'team, kind, machine, session, count, evidence nulls not distinct where (episode IS NULL)'],
  ['incident', 'team, kind, machine, session, episode nulls not distinct where (episode IS NOT NULL)'],
  ['incident_change', 'team, incident, state'],
  ['enrolment_use', 'team, secret_hash'],
  ['nonce', 'team, machine, nonce'],
  ['machine', 'team, machine'],
  ['machine_token', 'token_hash'],
  ['team_policy', 'team, version'],
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
