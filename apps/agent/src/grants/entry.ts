// The forms of a grant, a denial and a request: in a session's front, and as `--json` and the control socket have them.
import type { Author } from './author.js';
import { scopeText, type Deadline, type Scope } from './scope.js';
import { wantedText, type Wanted } from './wanted.js';

/** Why a grant or a denial holds no more. `failed`: it was recorded and could then not be made to hold. */
export type EndReason = 'revoked' | 'expired' | 'call ended' | 'denied' | 'lifted' | 'failed';

interface Made {
  id: string;
  wanted: Wanted;
  by: Author;
  made: Date;
  ended: { at: Date; reason: EndReason } | undefined;
}

/** Something a person has let a living session do. */
export interface Grant extends Made {
  scope: Scope;
  deadline: Deadline | undefined;
  /** Ids by which the supervisor knows it. */
  native: number[];
  /** Calls that have begun since, where it is for one. */
  calls: Set<string>;
  /** How often it was what decided; null where nobody counts. */
  uses: number | null;
  /** Whom alone it reaches; null: everything inside. */
  reaches: string | null;
  /** The request that it answers. */
  request: string | null;
}

/** Something a person has refused a living session, for as long as it lives. */
export type Denial = Made;

/** Something a program inside has asked for. */
export interface Request {
  id: string;
  wanted: Wanted;
  /** Its words; nobody vouches for them. */
  reason: string;
  by: { pid: number; program: string };
  made: Date;
  state: 'pending' | 'granted' | 'denied';
}

/** A grant as it is printed. */
export interface GrantRow {
  id: string;
  right: string;
  what: string;
  below: boolean;
  raw: boolean;
  for: string;
  by: Author;
  made: string;
  expires: string | null;
  uses: number | null;
  reaches: string | null;
  request: string | null;
  state: 'living' | 'ended';
  ended: string | null;
  reason: string | null;
}

export type DenialRow = Omit<GrantRow, 'for' | 'expires' | 'uses' | 'reaches' | 'request' | 'raw'>;

export interface RequestRow {
  id: string;
  right: string;
  what: string;
  below: boolean;
  raw: boolean;
  /** What the program says it is for. */
  says: string;
  by: { pid: number; program: string };
  made: string;
  state: string;
  /** What a person types to grant just this. */
  type: string;
}

export function grantRow({ id, wanted, scope, by, made, deadline, uses, reaches, request, ended }: Grant): GrantRow {
  return {
    id,
    ...wanted,
    for: scopeText(scope),
    by,
    made: made.toISOString(),
    expires: deadline?.at.toISOString() ?? null,
    uses,
    reaches,
    request,
    ...endOf(ended),
  };
}

export function denialRow({ id, wanted: { right, what, below }, by, made, ended }: Denial): DenialRow {
  return { id, right, what, below, by, made: made.toISOString(), ...endOf(ended) };
}

export function requestRow({ id, wanted, reason, by, made, state }: Request): RequestRow {
  return { id, ...wanted, says: reason, by, made: made.toISOString(), state, type: `nd7 allow ${wantedText(wanted)}` };
}

function endOf(ended: Made['ended']): Pick<GrantRow, 'state' | 'ended' | 'reason'> {
  return {
    state: ended === undefined ? 'living' : 'ended',
    ended: ended?.at.toISOString() ?? null,
    reason: ended?.reason ?? null,
  };
}

/** What of a grant stands in its entry, in the words that other decisions have: `path`, or `host` and `port`. */
export function recordedWanted({ right, what, below, raw }: Wanted): Record<string, unknown> {
  const place = right === 'net' ? { host: what, port: null, raw } : { path: what, below };
  return { call: right, ...place };
}
