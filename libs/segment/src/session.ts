import { utf8 } from '@nd7/entry';

/** A machine asks to be known to a team: its key, and a hash of the name it goes by (the name itself is no leaf's). */
export interface EnrolClaim {
  origin: string;
  machine: string;
  /** 64 hex. */
  nameHash: string;
}

/** A session has begun: a head of a prefix that holds entry 0, and the first session key. */
export interface OpenClaim {
  origin: string;
  machine: string;
  session: string;
  entries: number;
  head: string;
  /** k(0), 64 hex. */
  key: string;
}

/** Why a session ended. `lost` and `forked` are the vault's own words, without a machine's signature. */
export type CloseReason = 'ended' | 'lost' | 'forked' | 'continued';

/** A session is over at this head. */
export interface CloseClaim {
  origin: string;
  machine: string;
  session: string;
  entries: number;
  head: string;
  reason: CloseReason;
}

/** The lines of an `enrol` leaf that the machine signs. */
export function enrolLines(c: EnrolClaim): string {
  return `origin ${c.origin}\nmachine ${c.machine}\nname-hash ${c.nameHash}\n`;
}

/** The lines of an `open` leaf that the machine signs. */
export function openLines(c: OpenClaim): string {
  return `${sessionLines(c)}key ${c.key}\n`;
}

/** The lines of a `close` leaf that the machine signs, where it does. */
export function closeLines(c: CloseClaim): string {
  return `${sessionLines(c)}reason ${c.reason}\n`;
}

/** The bytes that the machine signs to enrol. */
export function enrolMessage(c: EnrolClaim): Uint8Array {
  return utf8(`nd7/enrol/v1\n${enrolLines(c)}`);
}

/** The bytes that the machine signs to open a session. */
export function openMessage(c: OpenClaim): Uint8Array {
  return utf8(`nd7/open/v1\n${openLines(c)}`);
}

/** The bytes that the machine signs to close a session. */
export function closeMessage(c: CloseClaim): Uint8Array {
  return utf8(`nd7/close/v1\n${closeLines(c)}`);
}

function sessionLines(c: OpenClaim | CloseClaim): string {
  return `origin ${c.origin}\nmachine ${c.machine}\nsession ${c.session}\nentries ${String(c.entries)}\nhead ${c.head}\n`;
}
