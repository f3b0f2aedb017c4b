// What the routes take and answer, as zod schemas; each exported name is the schema and its type.
import { z } from 'zod';

// The dashboard's page forbids code made from text: zod must not try.
z.config({ jitless: true });

const hex64 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');
const signature = z.string().regex(/^[A-Za-z0-9+/]{86}==$/, 'must be the base64 of 64 bytes');
const count = z.int().nonnegative();
const session = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'is not a session id');
const time = z.string().meta({ description: 'RFC 3339 in UTC with milliseconds', format: 'date-time' });
const name = z
  .string()
  .max(128)
  .regex(/^\S(.*\S)?$/s, 'must be 1 to 128 characters that neither begin nor end with a space');

/** `nd7e1_<secret, 43 base64url>_<sha256 hex of the vkey text>` taken apart; undefined when it is none. */
export function parseEnrolmentToken(token: string): { secret: string; vkeyHash: string } | undefined {
  const parts = /^nd7e1_([A-Za-z0-9_-]{43})_([0-9a-f]{64})$/.exec(token.trim());
  return parts === null ? undefined : { secret: parts[1] as string, vkeyHash: parts[2] as string };
}
export const EnrolmentToken = z.string().regex(/^nd7e1_[A-Za-z0-9_-]{43}_[0-9a-f]{64}$/);

/** What a machine may learn before it shows the secret: it compares SHA-256(vkey) with its token. */
export const Enrolment = z.object({
  vault: z.string(),
  team: z.string(),
  origin: z.string(),
  vkey: z.string(),
  policy: z.string(),
});
export type Enrolment = z.infer<typeof Enrolment>;

export const EnrolRequest = z.object({
  secret: z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'must be the secret part of the enrolment token'),
  machine: hex64,
  name,
  name_hash: hex64,
  signature,
});
export type EnrolRequest = z.infer<typeof EnrolRequest>;

export const EnrolAnswer = z.object({
  machine: hex64,
  token: z.string().meta({ description: 'nd7m1_…, shown once' }),
  origin: z.string(),
  vkey: z.string(),
  team: z.string(),
  policy: z.string().meta({ description: 'witness policy (C2SP tlog-policy)' }),
  receipt_location: z.string(),
});
export type EnrolAnswer = z.infer<typeof EnrolAnswer>;

/** The team's policy in force: what the vault signed, and the exact bytes that it speaks of. */
export const TeamPolicy = z.object({
  version: z.int().min(1),
  note: z
    .string()
    .meta({ description: 'signed note (C2SP signed-note): origin, nd7/team-policy/v1, version, policy <SHA-256>' }),
  policy: z.string().meta({ description: 'the policy file, exactly' }),
});
export type TeamPolicy = z.infer<typeof TeamPolicy>;

/** What the vault holds of a session, as its machine may know it. */
export const SessionStatus = z.object({
  session,
  entries: count,
  head: hex64,
  key: hex64.nullable().meta({ description: 'session key in force after the last entry' }),
  sealed_to: count.nullable(),
  closed: z.boolean(),
  forked: z.boolean(),
  next: count,
});
export type SessionStatus = z.infer<typeof SessionStatus>;

export const OpenRequest = z.object({ entries: z.int().positive(), head: hex64, key: hex64, signature });
export type OpenRequest = z.infer<typeof OpenRequest>;
export const CloseRequest = z.object({
  entries: count,
  head: hex64,
  reason: z.enum(['ended', 'continued']),
  signature,
});
export type CloseRequest = z.infer<typeof CloseRequest>;

/** Sessions one heartbeat names at most. A list of so many may be cut off: the vault concludes nothing from what is not in it. */
export const HEARTBEAT_SESSIONS = 1000;

export const HeartbeatRequest = z.object({
  sessions: z
    .array(z.object({ session, entries: count, head: hex64 }))
    .max(HEARTBEAT_SESSIONS)
    .refine((all) => new Set(all.map((one) => one.session)).size === all.length, 'names a session twice')
    .meta({
      description:
        'sessions that are open on this machine or not yet shipped and closed, newest first, each with what is durable of it',
    }),
  time,
  interval: z.int().min(1).max(86_400).optional().meta({
    description: 'the machine will be heard again within so many seconds; absent: it promises nothing',
  }),
  away: z
    .object({ reason: z.enum(['idle', 'stopped', 'sleep', 'uninstalled']) })
    .optional()
    .meta({ description: 'the machine will not be heard for a while; its next heartbeat ends it' }),
  slept: z
    .object({ from: time, to: time })
    .optional()
    .meta({ description: 'it was suspended since its last heartbeat, by its own clock' }),
});
export type HeartbeatRequest = z.infer<typeof HeartbeatRequest>;
export const HeartbeatAnswer = z.object({ time });
export type HeartbeatAnswer = z.infer<typeof HeartbeatAnswer>;

export const SignInRequest = z.object({ token: z.string().max(256) });
export type SignInRequest = z.infer<typeof SignInRequest>;
export const Me = z.object({ team: z.string(), origin: z.string(), vkey: z.string(), reader: z.string() });
export type Me = z.infer<typeof Me>;

const Counts = z.object({ intent: count, effect: count, decision: count, recorder: count, unclassified: count });

export const SessionRow = z.object({
  machine: hex64,
  machine_name: z.string(),
  session,
  agent: z.string().nullable(),
  started: time.nullable().meta({ description: 'time of entry 0, by the machine’s clock' }),
  last_time: time.nullable().meta({ description: 'time of the last entry, by the machine’s clock' }),
  received: time.meta({ description: 'when the vault took the newest segment' }),
  entries: count,
  head: hex64,
  segments: count,
  counts: Counts,
  state: z.enum(['open', 'closed', 'forked']),
  close_reason: z.string().optional(),
  incidents: count,
});
export type SessionRow = z.infer<typeof SessionRow>;
export const SessionList = z.object({ sessions: z.array(SessionRow), next_cursor: z.string().optional() });
export type SessionList = z.infer<typeof SessionList>;
export const SessionListQuery = z.object({
  cursor: z.string().max(512).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  machine: hex64.optional(),
  agent: z.string().max(64).optional(),
  state: z.enum(['open', 'closed', 'forked']).optional(),
});
export type SessionListQuery = z.infer<typeof SessionListQuery>;

export const SegmentRow = z.object({
  from: count,
  to: count,
  prev: hex64,
  head: hex64,
  received: time,
  bytes: count.meta({ description: 'bytes of the entries' }),
  leaf_index: count.optional(),
  receipt: z.boolean(),
});
export type SegmentRow = z.infer<typeof SegmentRow>;
/** A session as its page shows it: the row of the list, with the segments themselves in place of their number. */
export const SessionPage = SessionRow.omit({ segments: true }).extend({ segments: z.array(SegmentRow) });
export type SessionPage = z.infer<typeof SessionPage>;

export const MachineRow = z.object({
  machine: hex64,
  name: z.string(),
  enrolled: time,
  last_seen: time.nullable(),
  revoked: time.optional(),
  sessions: count,
});
export type MachineRow = z.infer<typeof MachineRow>;
export const MachineList = z.object({ machines: z.array(MachineRow) });
export type MachineList = z.infer<typeof MachineList>;

/** What the vault saw when it raised an incident of silence: numbers and times only, all by the vault's word. */
export const Seen = z
  .object({
    heartbeat: count.meta({ description: 'number of the stored heartbeat it rests on' }),
    heard: time.meta({ description: 'when the vault last heard of the machine or session' }),
    interval: z.int().meta({ description: 'seconds the machine promised to be heard again within' }),
    away: z.string().meta({ description: 'why it said that it would not be heard' }),
    entries: count.meta({ description: 'entries the machine named' }),
    was: count.meta({ description: 'entries named or held before' }),
    held: count.meta({ description: 'entries the vault holds' }),
    machine_time: time.meta({ description: 'the machine’s clock' }),
    off_by_ms: z.int().meta({ description: 'how far the machine’s clock was ahead of the vault’s' }),
    alarms: count.meta({ description: 'alarms in the segment that brought the first' }),
  })
  .partial();
export type Seen = z.infer<typeof Seen>;

const EvidenceClaim = z.object({ from: count, to: count, prev: hex64, head: hex64, signature });
export const Incident = z.object({
  id: z.string(),
  kind: z.string().meta({
    description:
      'fork, disagrees, machine-quiet, session-quiet, session-unclosed, tail-shrank, clock-disagrees, alarm; more may be added',
  }),
  machine: hex64,
  session: session.optional(),
  count: count.optional(),
  at: time,
  claims: z.array(EvidenceClaim).optional().meta({ description: 'the stored claim first' }),
  leaf_index: count.optional(),
  seen: Seen.optional(),
  state: z.string().meta({ description: 'open, or over: what was seen does not hold any more. Nobody has judged it' }),
  over: z.object({ at: time, why: z.string() }).optional().meta({
    description:
      'when and by what it ended: heard, slept, revoked, shipped, closed, resumed, listed, forked, agrees, regrown',
  }),
});
export type Incident = z.infer<typeof Incident>;
export const IncidentList = z.object({
  incidents: z.array(Incident),
  next_cursor: z.string().optional(),
  open: count.optional().meta({ description: 'how many of the team’s incidents are open, listed here or not' }),
});
export type IncidentList = z.infer<typeof IncidentList>;
export const IncidentListQuery = z.object({
  cursor: z.string().max(512).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(200),
  state: z.enum(['open', 'over']).optional(),
});
export type IncidentListQuery = z.infer<typeof IncidentListQuery>;

export const LogState = z.object({
  origin: z.string(),
  vkey: z.string(),
  size: count,
  published: time.nullable(),
  policy: z.string(),
});
export type LogState = z.infer<typeof LogState>;
