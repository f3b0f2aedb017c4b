// Every refusal of the vault, in one table: the service answers from it, its tests go through it row by row, the OpenAPI page lists it.
import { z } from 'zod';

interface Row {
  status: number;
  title: string;
}

/** Code → HTTP status and title. A code never changes its meaning; new ones may be added. */
export const PROBLEMS = {
  'bad-request': { status: 400, title: 'The request is not of the form this route takes' },
  'bad-encoding': { status: 400, title: 'The content encoding is neither zstd nor identity' },
  'bad-frame': { status: 400, title: 'The body is not one zstd frame as this route takes it' },
  unauthorized: { status: 401, title: 'No token that this vault knows' },
  'bad-request-signature': { status: 401, title: 'The request is not signed by the machine key of its token' },
  'stale-request': { status: 401, title: 'The time of the request is more than 300 seconds from the vault’s' },
  replayed: { status: 401, title: 'The nonce of the request was used before' },
  revoked: { status: 403, title: 'The machine or the reader was revoked' },
  'wrong-origin': { status: 403, title: 'The request comes from a page of another site' },
  'key-role': { status: 403, title: 'The machine key is known to this vault in another role' },
  'bad-enrolment': { status: 403, title: 'The enrolment token is unknown, used or expired' },
  'not-found': { status: 404, title: 'There is nothing here' },
  'not-published': { status: 404, title: 'The leaf is not published yet' },
  overlap: { status: 409, title: 'The vault already holds these entries or some of them' },
  gap: { status: 409, title: 'Entries are missing between what the vault holds and this' },
  disagrees: { status: 409, title: 'This disagrees with what the vault holds' },
  fork: { status: 409, title: 'The machine signed two different hashes for one count' },
  'too-large': { status: 413, title: 'The body is larger than this route takes' },
  'bad-claim': { status: 422, title: 'The claim does not hold by itself' },
  'too-long': { status: 422, title: 'An entry is too long' },
  'torn-tail': { status: 422, title: 'The last entry is not ended by a line feed' },
  'not-utf8': { status: 422, title: 'An entry is not UTF-8' },
  'bad-json': { status: 422, title: 'An entry is not one JSON object' },
  'duplicate-key': { status: 422, title: 'An entry has a key twice' },
  'unsupported-version': { status: 422, title: 'An entry is of a version this vault does not know' },
  'bad-prefix': { status: 422, title: 'An entry does not begin with v, seq and prev' },
  'wrong-seq': { status: 422, title: 'An entry is not numbered one more than the one before' },
  'wrong-genesis': { status: 422, title: 'Entry 0 is not bound to its session' },
  'wrong-prev': { status: 422, title: 'An entry does not carry the link it must' },
  'bad-seal': { status: 422, title: 'A seal or the first key does not follow' },
  truncated: { status: 422, title: 'The claim counts more entries than the body has' },
  'head-mismatch': { status: 422, title: 'The hash after the last entry is not the claim’s head' },
  'bad-member': { status: 422, title: 'An entry lacks a member or has one that is not of its form' },
  unsealed: { status: 422, title: 'The last entry is no seal, or entry 0 has no key' },
  'bad-machine': { status: 422, title: 'Entry 0 names another machine than the token’s' },
  internal: { status: 500, title: 'The vault failed' },
  busy: { status: 503, title: 'The vault is busy' },
  'log-read-only': { status: 503, title: 'The log of the team is served read-only until a person decides' },
} as const satisfies Record<string, Row>;

export type ProblemCode = keyof typeof PROBLEMS;

/** What some problems carry besides their code. */
export interface ProblemExtra {
  /** The vault's present count of the session: where to go on. With every 409 of ingest. */
  next?: number;
  /** Sequence number, in the session, of the first entry that does not check out. */
  bad_entry?: number;
  /** The reason of log-format (as the code), or for `bad-member` the member. */
  reason?: string;
}

const code = z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]);

/** `application/problem+json` (RFC 9457). */
export const ProblemDocument = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code,
  detail: z.string(),
  next: z.int().nonnegative().optional(),
  bad_entry: z.int().nonnegative().optional(),
  reason: z.string().optional(),
});
export type ProblemDocument = z.infer<typeof ProblemDocument>;

/** The document of one refusal. `detail` says what, where and how to mend it; it never repeats content. */
export function problemDocument(of: ProblemCode, detail: string, extra: ProblemExtra = {}): ProblemDocument {
  const { status, title } = PROBLEMS[of];
  return { type: `urn:nd7:problem:${of}`, title, status, code: of, detail, ...extra };
}
