import { fromBase64, fromHex, isHex, isSessionId, toBase64, utf8 } from '@nd7/entry';
import type { SignedItem } from '@nd7/tlog';
import { isOrigin } from '@nd7/tlog';
import { textOf } from './text.js';

/** What a machine says of one segment: entries [from, to) of a session lead from the head `prev` to the head `head`. */
export interface Claim {
  /** The log it is meant for, `<vault>/<team>`. */
  origin: string;
  /** The machine's public key, 64 hex. */
  machine: string;
  session: string;
  from: number;
  /** Excluded, above `from`: the session's new count. */
  to: number;
  /** 64 hex; the genesis link where `from` is 0. */
  prev: string;
  /** 64 hex. */
  head: string;
}

/** A claim with the machine's signature over `claimMessage`. */
export interface SignedClaim extends Claim {
  /** Base64 of 64 bytes. */
  signature: string;
}

/** Machine keys sign nothing but texts that begin with a label of one register (docs/receipt.md, "Signed texts"). */
export const SEGMENT_LABEL = 'nd7/segment/v1\n';

const CLAIM =
  /^origin ([^\n]+)\nmachine ([^\n]+)\nsession ([^\n]+)\nentries (0|[1-9][0-9]{0,15}) ([1-9][0-9]{0,15})\nprev ([^\n]+)\nhead ([^\n]+)\n$/;

/** The lines `origin …` to `head …`, each ended by "\n", as they stand in the leaf and are signed. */
export function claimLines(c: Claim): string {
  return `origin ${c.origin}\nmachine ${c.machine}\nsession ${c.session}\nentries ${String(c.from)} ${String(c.to)}\nprev ${c.prev}\nhead ${c.head}\n`;
}

/** The bytes that the machine signs. */
export function claimMessage(c: Claim): Uint8Array {
  return utf8(SEGMENT_LABEL + claimLines(c));
}

/**
 * Reads the lines of a claim; undefined for anything that `claimLines` would not write. Counts above 2^53 - 1, which no session can
 * reach, are refused too: a claim's numbers are exact.
 */
export function parseClaim(lines: string): Claim | undefined {
  const [, origin, machine, session, fromText, toText, prev, head] = CLAIM.exec(lines) ?? [];
  if (
    origin === undefined ||
    machine === undefined ||
    session === undefined ||
    prev === undefined ||
    head === undefined
  )
    return undefined;
  const [from, to] = [Number(fromText), Number(toText)];
  const good =
    isOrigin(origin) &&
    isHex(machine, 32) &&
    isSessionId(session) &&
    Number.isSafeInteger(to) &&
    from < to &&
    isHex(prev, 32) &&
    isHex(head, 32);
  return good ? { origin, machine, session, from, to, prev, head } : undefined;
}

/** The headers that carry a signed claim beside a segment's bytes. */
export function encodeClaimHeaders(c: SignedClaim): { 'nd7-claim': string; 'nd7-signature': string } {
  return { 'nd7-claim': toBase64(utf8(claimLines(c))), 'nd7-signature': c.signature };
}

/** Reads them; undefined where they are not of the form. The signature is not verified: hand `claimItem` to a verifier. */
export function decodeClaimHeaders(claim: string, signature: string): SignedClaim | undefined {
  const bytes = fromBase64(claim);
  const lines = bytes === undefined ? undefined : textOf(bytes);
  const parsed = lines === undefined ? undefined : parseClaim(lines);
  if (parsed === undefined || fromBase64(signature)?.length !== 64) return undefined;
  return { ...parsed, signature };
}

/** The claim's signature, as a verifier takes it. A claim whose key or signature is not of the form gives one that no verifier accepts. */
export function claimItem(c: SignedClaim): SignedItem {
  return signedItem(c.machine, claimMessage(c), c.signature);
}

/** A signature by a hex key in base64, as a verifier takes it. */
export function signedItem(key: string, message: Uint8Array, signature: string): SignedItem {
  const nothing = new Uint8Array(0);
  return { key: fromHex(key) ?? nothing, message, signature: fromBase64(signature) ?? nothing };
}

/**
 * The count of which two claims speak with different hashes: a fork, by the two claims alone. A claim speaks of two counts, its `prev`
 * at `from` and its `head` at `to`. Undefined where no count is named by both, or all that are agree, or the claims are of different
 * sessions (team, machine, id). Of two such counts the lower. The signatures must have been verified: an unsigned claim convicts nobody.
 */
export function isFork(a: SignedClaim, b: SignedClaim): number | undefined {
  if (a.origin !== b.origin || a.machine !== b.machine || a.session !== b.session) return undefined;
  return [a.from, a.to].find((count) => {
    const [mine, theirs] = [hashAt(a, count), hashAt(b, count)];
    return mine !== undefined && theirs !== undefined && mine !== theirs;
  });
}

/** The hash that a claim gives for a count, if it speaks of it. */
export function hashAt(c: Pick<Claim, 'from' | 'to' | 'prev' | 'head'>, count: number): string | undefined {
  return count === c.from ? c.prev : count === c.to ? c.head : undefined;
}
