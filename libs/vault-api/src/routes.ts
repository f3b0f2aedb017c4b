// Every route of the vault: who may call it, what it takes, what it answers.
import { z } from 'zod';
import {
  CloseRequest,
  Enrolment,
  EnrolAnswer,
  EnrolRequest,
  HeartbeatAnswer,
  HeartbeatRequest,
  Incident,
  IncidentList,
  IncidentListQuery,
  LogState,
  MachineList,
  Me,
  OpenRequest,
  SessionList,
  SessionListQuery,
  SessionPage,
  SessionStatus,
  SignInRequest,
  TeamPolicy,
} from './bodies.js';
import type { ProblemCode } from './problems.js';

/** `machine`: bearer token and signed request. `reader`: bearer token or cookie. `either`: one of the two. */
export type Who = 'anyone' | 'machine' | 'reader' | 'either';

export interface Route {
  method: 'GET' | 'PUT' | 'POST';
  /** OpenAPI form, parameters in braces. */
  path: string;
  who: Who;
  summary: string;
  /** Largest body taken, in bytes. */
  limit?: number;
  body?: z.ZodType | 'entries';
  query?: z.ZodObject;
  /** Status → what it means, with the schema of a JSON answer or the media type of another. */
  answers: Record<number, { means: string; json?: z.ZodType; media?: string }>;
  problems: readonly ProblemCode[];
}

const JSON_LIMIT = 16_384;
/** A segment, sealed or not, is at most 8 MiB; a frame that grew by its own header is still taken. */
const SEGMENT_LIMIT = 8 * 1024 * 1024 + 1024;

const machineProblems = [
  'unauthorized',
  'bad-request-signature',
  'stale-request',
  'replayed',
  'revoked',
  'busy',
] as const;
/** Of what adds a statement to the log. */
const statementProblems = [...machineProblems, 'log-read-only'] as const;
const readerProblems = ['unauthorized'] as const;
const chainProblems = [
  'too-long',
  'torn-tail',
  'not-utf8',
  'bad-json',
  'duplicate-key',
  'unsupported-version',
  'bad-prefix',
  'wrong-seq',
  'wrong-genesis',
  'wrong-prev',
  'bad-seal',
  'truncated',
  'head-mismatch',
] as const;
const receiptAnswers = {
  200: { means: 'the same again: the same receipt, byte for byte', media: 'text/plain' },
  201: { means: 'new and published: the receipt', media: 'text/plain' },
  202: { means: 'durable, not yet published: the receipt will be at Location; this answer is no receipt' },
} as const;
const receiptQuery = z.object({ checkpoint: z.literal('latest').optional() });
const receiptOnly = { 200: { means: 'the receipt (C2SP tlog-proof)', media: 'text/plain' } } as const;

export const ROUTES = {
  enrolment: {
    method: 'GET',
    path: '/v1/enrolment/{secret_hash}',
    who: 'anyone',
    summary: 'What a machine may know before it shows its enrolment secret',
    answers: { 200: { means: 'the vault, the team and its key', json: Enrolment } },
    problems: ['not-found'],
  },
  enrol: {
    method: 'POST',
    path: '/v1/enrol',
    who: 'anyone',
    summary: 'Enrol a machine with a one-time secret',
    limit: JSON_LIMIT,
    body: EnrolRequest,
    answers: { 201: { means: 'enrolled; the token is shown once', json: EnrolAnswer } },
    problems: [
      'bad-request',
      'too-large',
      'bad-enrolment',
      'key-role',
      'revoked',
      'bad-claim',
      'busy',
      'log-read-only',
    ],
  },
  enrolReceipt: {
    method: 'GET',
    path: '/v1/machines/{machine}/receipt',
    who: 'either',
    summary: 'Receipt of the enrol statement',
    query: receiptQuery,
    answers: receiptOnly,
    problems: [...readerProblems, 'not-found', 'not-published'],
  },
  segment: {
    method: 'PUT',
    path: '/v1/sessions/{session}/segments/{from}',
    who: 'machine',
    summary: 'Ship a segment',
    limit: SEGMENT_LIMIT,
    body: 'entries',
    answers: receiptAnswers,
    problems: [
      ...statementProblems,
      'bad-request',
      'too-large',
      'bad-encoding',
      'bad-frame',
      'bad-claim',
      'overlap',
      'gap',
      'disagrees',
      'fork',
      ...chainProblems,
      'bad-member',
      'unsealed',
      'bad-machine',
    ],
  },
  sessionStatus: {
    method: 'GET',
    path: '/v1/sessions/{session}',
    who: 'machine',
    summary: 'What the vault holds of the machine’s own session',
    answers: { 200: { means: 'count, head and key in force', json: SessionStatus } },
    problems: [...machineProblems, 'not-found'],
  },
  open: {
    method: 'POST',
    path: '/v1/sessions/{session}/open',
    who: 'machine',
    summary: 'State that a session began',
    limit: JSON_LIMIT,
    body: OpenRequest,
    answers: receiptAnswers,
    problems: [...statementProblems, 'bad-request', 'bad-claim', 'gap', 'disagrees', 'fork'],
  },
  close: {
    method: 'POST',
    path: '/v1/sessions/{session}/close',
    who: 'machine',
    summary: 'State that a session ended',
    limit: JSON_LIMIT,
    body: CloseRequest,
    answers: receiptAnswers,
    problems: [...statementProblems, 'bad-request', 'bad-claim', 'gap', 'disagrees', 'fork'],
  },
  statementReceipt: {
    method: 'GET',
    path: '/v1/machines/{machine}/sessions/{session}/{statement}/{entries}/receipt',
    who: 'either',
    summary: 'Receipt of an open or close statement',
    query: receiptQuery,
    answers: receiptOnly,
    problems: [...readerProblems, 'not-found', 'not-published'],
  },
  heartbeat: {
    method: 'POST',
    path: '/v1/heartbeat',
    who: 'machine',
    summary: 'Say that the machine is there and how far its sessions are',
    limit: 512 * 1024,
    body: HeartbeatRequest,
    answers: { 200: { means: 'the vault’s time', json: HeartbeatAnswer } },
    problems: [...machineProblems, 'bad-request'],
  },
  teamPolicy: {
    method: 'GET',
    path: '/v1/team-policy',
    who: 'machine',
    summary: 'The team’s policy for confined sessions, signed',
    answers: { 200: { means: 'the newest version', json: TeamPolicy } },
    problems: [...machineProblems, 'not-found'],
  },
  segmentReceipt: {
    method: 'GET',
    path: '/v1/machines/{machine}/sessions/{session}/segments/{from}/receipt',
    who: 'either',
    summary: 'Receipt of a segment',
    query: receiptQuery,
    answers: receiptOnly,
    problems: [...readerProblems, 'not-found', 'not-published'],
  },
  me: {
    method: 'GET',
    path: '/v1/me',
    who: 'reader',
    summary: 'Who is signed in, and the key to pin',
    answers: { 200: { means: 'team, origin, key', json: Me } },
    problems: readerProblems,
  },
  signIn: {
    method: 'POST',
    path: '/v1/sign-in',
    who: 'anyone',
    summary: 'Turn a reader token into a cookie',
    limit: JSON_LIMIT,
    body: SignInRequest,
    answers: { 200: { means: 'signed in', json: Me } },
    problems: ['bad-request', 'unauthorized', 'wrong-origin'],
  },
  signOut: {
    method: 'POST',
    path: '/v1/sign-out',
    who: 'anyone',
    summary: 'End the cookie’s session',
    answers: { 204: { means: 'signed out' } },
    problems: ['wrong-origin'],
  },
  sessions: {
    method: 'GET',
    path: '/v1/sessions',
    who: 'reader',
    summary: 'Sessions, newest first',
    query: SessionListQuery,
    answers: { 200: { means: 'one page', json: SessionList } },
    problems: [...readerProblems, 'bad-request'],
  },
  session: {
    method: 'GET',
    path: '/v1/machines/{machine}/sessions/{session}',
    who: 'reader',
    summary: 'One session and its segments',
    answers: { 200: { means: 'the session', json: SessionPage } },
    problems: [...readerProblems, 'not-found'],
  },
  body: {
    method: 'GET',
    path: '/v1/machines/{machine}/sessions/{session}/segments/{from}/body',
    who: 'reader',
    summary: 'The exact bytes of a segment’s entries',
    answers: { 200: { means: 'the entries', media: 'application/x-ndjson' } },
    problems: [...readerProblems, 'not-found'],
  },
  machines: {
    method: 'GET',
    path: '/v1/machines',
    who: 'reader',
    summary: 'Enrolled machines',
    answers: { 200: { means: 'all of the team', json: MachineList } },
    problems: readerProblems,
  },
  incidents: {
    method: 'GET',
    path: '/v1/incidents',
    who: 'reader',
    summary: 'Incidents, newest first',
    query: IncidentListQuery,
    answers: { 200: { means: 'one page', json: IncidentList } },
    problems: [...readerProblems, 'bad-request'],
  },
  incident: {
    method: 'GET',
    path: '/v1/incidents/{id}',
    who: 'reader',
    summary: 'One incident with its evidence',
    answers: { 200: { means: 'the incident', json: Incident } },
    problems: [...readerProblems, 'not-found'],
  },
  log: {
    method: 'GET',
    path: '/v1/log',
    who: 'reader',
    summary: 'State of the team’s log',
    answers: { 200: { means: 'size and key', json: LogState } },
    problems: readerProblems,
  },
  checkpoint: {
    method: 'GET',
    path: '/t/{team}/checkpoint',
    who: 'reader',
    summary: 'Newest checkpoint (C2SP tlog-tiles)',
    answers: { 200: { means: 'a signed note', media: 'text/plain' } },
    problems: ['not-found'],
  },
  tile: {
    method: 'GET',
    path: '/t/{team}/tile/{path}',
    who: 'reader',
    summary: 'Tiles and entry bundles (C2SP tlog-tiles)',
    answers: { 200: { means: 'the tile', media: 'application/octet-stream' } },
    problems: ['not-found'],
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof ROUTES;

/** The path of a route with its parameters filled in and percent-encoded. Throws where one is missing: a programmer's error. */
export function pathOf(route: RouteName, parameters: Record<string, string | number> = {}): string {
  return ROUTES[route].path.replaceAll(/\{([a-z_]+)\}/g, (_all, key: string) => {
    const value = parameters[key];
    if (value === undefined) throw new TypeError(`the path of ${route} needs ${key}`);
    return route === 'tile' && key === 'path' ? String(value) : encodeURIComponent(value);
  });
}
