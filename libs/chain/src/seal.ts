import { fromHex, isHex } from '@nd7/entry';
import { isStrictKey, type SignedItem } from '@nd7/tlog';
import { certMessage, sealMessage } from './link.js';
import { Members } from './members.js';

/** Which session key is in force, and how far the seals reach. Counts and seqs are absolute in a `WalkResult`. */
export interface SealState {
  /** The key in force, 64 hex; null in a log whose entry 0 names none. */
  key: string | null;
  /** The machine key that certified the first key, where entry 0 names one. */
  machine?: string;
  firstKey?: string;
  /** The seq of the last seal. */
  sealedTo: number | null;
  seals: number;
}

/** What entry 0 says about keys; `machine` is null for a value that is no string, undefined where the member is absent. */
export interface FirstEntry {
  machine: string | null | undefined;
  /** Present where entry 0 has a key, whatever its value: then its form is to be checked. */
  key?: { key: string | null; machine: string | null; cert: string | null };
}

/** A seal's two values; null for what is not there or no string. */
export interface Seal {
  next: string | null;
  sig: string | null;
}

/** The source of what the recorder itself says. */
export const OWN = 'recorder:nd7';

/** The seal that this line is, or undefined. It must have passed the strict check; `rest` is the comma after its link. */
export function readSeal(bytes: Uint8Array, rest: number, end: number): Seal | undefined {
  const members = new Members(bytes, rest - 1, end);
  let data = -1;
  let own = false;
  let seal = false;
  // No key stands twice in the line, so the first `source` or `kind` that says otherwise decides.
  while (members.next()) {
    if (members.keyIs('source')) {
      if (!members.valueIs(OWN)) return undefined;
      own = true;
    } else if (members.keyIs('kind')) {
      if (!members.valueIs('seal')) return undefined;
      seal = true;
    } else if (members.keyIs('data') && members.isObject()) data = members.valueStart;
  }
  if (!own || !seal) return undefined;
  const found: Seal = { next: null, sig: null };
  if (data < 0) return found;
  const inner = new Members(bytes, data, end);
  while (inner.next()) {
    if (inner.keyIs('next')) found.next = inner.text(64);
    else if (inner.keyIs('sig')) found.sig = inner.text(128);
  }
  return found;
}

/** What entry 0 says about machine and key. `line` must have passed the strict check. */
export function readFirstEntry(bytes: Uint8Array, start: number, end: number): FirstEntry {
  const members = new Members(bytes, start, end);
  let data = -1;
  let own = false;
  let starts = false;
  while (members.next()) {
    if (members.keyIs('source')) own = members.valueIs(OWN);
    else if (members.keyIs('kind')) starts = members.valueIs('session.start');
    else if (members.keyIs('data') && members.isObject()) data = members.valueStart;
  }
  if (data < 0) return { machine: undefined };
  let machine: string | null | undefined;
  let key: string | null | undefined;
  let cert: string | null = null;
  const inner = new Members(bytes, data, end);
  while (inner.next()) {
    if (inner.keyIs('machine')) machine = inner.text(64);
    else if (inner.keyIs('key')) key = inner.text(64);
    else if (inner.keyIs('cert')) cert = inner.text(128);
  }
  if (!own || !starts || key === undefined) return { machine };
  return { machine, key: { key, machine: machine ?? null, cert } };
}

/** The signature to check in an entry 0 that has a key; undefined where its form is bad. */
export function certItem(session: string, first: NonNullable<FirstEntry['key']>): SignedItem | undefined {
  return item(first.machine, first.key, first.cert, (key) => certMessage(session, key));
}

/** The signature to check in a seal by the key in force; undefined where its form is bad or no key is in force. */
export function sealItem(
  session: string,
  seq: string,
  prev: string,
  seal: Seal,
  by: string | null,
): SignedItem | undefined {
  return item(by, seal.next, seal.sig, (next) => sealMessage(session, seq, prev, next));
}

/** Whether a seal's two values are of their form, whoever signed. */
export function sealForm(seal: Seal): seal is { next: string; sig: string } {
  return keyBytes(seal.next) !== undefined && seal.sig !== null && isHex(seal.sig, 64);
}

function item(
  by: string | null,
  named: string | null,
  signature: string | null,
  message: (named: string) => Uint8Array,
): SignedItem | undefined {
  if (by === null || named === null || signature === null) return undefined;
  const key = fromHex(by);
  const bytes = fromHex(signature);
  if (key?.length !== 32 || bytes?.length !== 64 || keyBytes(named) === undefined) return undefined;
  return { key, message: message(named), signature: bytes };
}

/** A session key that may be named: canonical and not of small order. */
function keyBytes(hex: string | null): Uint8Array | undefined {
  if (hex === null || !isHex(hex, 32)) return undefined;
  const bytes = fromHex(hex);
  return bytes !== undefined && isStrictKey(bytes) ? bytes : undefined;
}
