import { utf8 } from '@nd7/entry';
import type { CloseReason } from '@nd7/segment';
import {
  claimLines,
  claimMessage,
  closeLines,
  closeMessage,
  enrolLines,
  enrolMessage,
  hashAt,
  openLines,
  openMessage,
  signedItem,
} from '@nd7/segment';
import type { SignedItem } from '@nd7/tlog';
import { parseVkey } from '@nd7/tlog';
import { toHex } from '@nd7/entry';
import {
  BadField,
  countOf,
  isFramed,
  isHash,
  isRoot,
  isSignature,
  Lines,
  MAX_LEAF,
  need,
  rangeOf,
  textOf,
} from './lines.js';
import type {
  CloseStatement,
  EnrolStatement,
  ForkClaim,
  ForkStatement,
  HeadStatement,
  OpenStatement,
  RevokeStatement,
  RotateStatement,
  SignerState,
  SignerStatement,
  Statement,
  UnknownStatement,
} from './statement.js';
import { isVaultReason } from './statement.js';

const TYPE_LINE = /^nd7\/([a-z0-9-]+)\/v([0-9]+)$/;

/** The leaf's text. Throws a RangeError for a statement that `parseStatement` would not give back as it is. */
export function formatStatement(s: Statement): string {
  const text = `nd7/${s.type}/v1\n${body(s)}`;
  const again = parseStatement(text);
  // Only what reads back the same becomes a leaf: a leaf is for ever.
  if (again === undefined || again.type === 'unknown' || `nd7/${again.type}/v1\n${body(again)}` !== text) {
    throw new RangeError(`not a statement: ${JSON.stringify(text)}`);
  }
  for (const count of counts(s))
    if (!Number.isSafeInteger(count)) throw new RangeError(`not an exact count: ${String(count)}`);
  return text;
}

/**
 * Reads a leaf. Undefined where it is not UTF-8 lines of at most 4,096 bytes, or of a known type and not exactly of its form; other types
 * come back unread. No signature is verified: `statementItems` are for a verifier.
 */
export function parseStatement(leaf: string | Uint8Array): Statement | UnknownStatement | undefined {
  if (leaf.length > MAX_LEAF) return undefined;
  const text = textOf(leaf);
  if (text === undefined || !isFramed(text)) return undefined;
  const [first, ...rest] = text.slice(0, -1).split('\n');
  const [, type, version] = TYPE_LINE.exec(first ?? '') ?? [];
  if (first === undefined || type === undefined) return undefined;
  const read = version === '1' ? READERS.get(type) : undefined;
  if (read === undefined) return { type: 'unknown', first };
  const lines = new Lines(rest);
  try {
    const statement = read(lines);
    lines.end();
    return statement;
  } catch (error) {
    if (error instanceof BadField) return undefined;
    throw error;
  }
}

/**
 * The signatures that a statement carries, all of which must be good: the machine's own, both claims of a fork, both keys of a rotation. Empty
 * where the vault speaks alone.
 */
export function statementItems(s: Statement): SignedItem[] {
  switch (s.type) {
    case 'head':
      return [signedItem(s.machine, claimMessage(s), s.signature)];
    case 'enrol':
      return [signedItem(s.machine, enrolMessage(s), s.signature)];
    case 'open':
      return [signedItem(s.machine, openMessage(s), s.signature)];
    case 'close':
      return s.signature === undefined ? [] : [signedItem(s.machine, closeMessage(s), s.signature)];
    case 'fork':
      return s.claims.map((claim) => signedItem(s.machine, claimMessage({ ...s, ...claim }), claim.signature));
    case 'rotate':
      return [s.old, s.new].map((vkey, i) =>
        signedItem(
          toHex(parseVkey(vkey)?.key ?? new Uint8Array(0)),
          rotateMessage(s.origin, s.old, s.new),
          s.signatures[i] ?? '',
        ),
      );
    case 'revoke':
    case 'signer':
      return [];
  }
}

/**
 * What both keys sign when a log's key is rotated. Vault keys sign notes whose first line is an origin, so this is one; its second line is
 * no size, so that it can never be read as a checkpoint.
 */
export function rotateMessage(origin: string, oldVkey: string, newVkey: string): Uint8Array {
  return utf8(`${origin}\nnd7/rotate/v1\nold ${oldVkey}\nnew ${newVkey}\n`);
}

function body(s: Statement): string {
  const received = `received ${s.received}\n`;
  switch (s.type) {
    case 'head':
      return `${claimLines(s)}${received}signature ${s.signature}\n`;
    case 'enrol':
      return `${enrolLines(s)}signature ${s.signature}\n${received}`;
    case 'open':
      return `${openLines(s)}signature ${s.signature}\n${received}`;
    case 'close':
      return `${closeLines(s)}${s.signature === undefined ? '' : `signature ${s.signature}\n`}${received}`;
    case 'fork':
      return `origin ${s.origin}\nmachine ${s.machine}\nsession ${s.session}\ncount ${String(s.count)}\n${s.claims.map(forkLine).join('')}${received}`;
    case 'revoke':
      return `origin ${s.origin}\nmachine ${s.machine}\nsince ${s.since}\nby ${s.by}\n${received}`;
    case 'rotate':
      return `origin ${s.origin}\nold ${s.old}\nnew ${s.new}\n${s.signatures.map((signature) => `signature ${signature}\n`).join('')}${received}`;
    case 'signer':
      return `origin ${s.origin}\nold ${String(s.old.size)} ${s.old.root}\nnew ${String(s.new.size)} ${s.new.root}\nby ${s.by}\n${received}`;
  }
}

function forkLine(c: ForkClaim): string {
  return `claim ${String(c.from)} ${String(c.to)} ${c.prev} ${c.head} ${c.signature}\n`;
}

function counts(s: Statement): number[] {
  if (s.type === 'head') return [s.from, s.to];
  if (s.type === 'open' || s.type === 'close') return [s.entries];
  if (s.type === 'fork') return [s.count, ...s.claims.flatMap(({ from, to }) => [from, to])];
  return s.type === 'signer' ? [s.old.size, s.new.size] : [];
}

const READERS = new Map<string, (lines: Lines) => Statement>([
  ['head', readHead],
  ['enrol', readEnrol],
  ['open', readOpen],
  ['close', readClose],
  ['fork', readFork],
  ['revoke', readRevoke],
  ['rotate', readRotate],
  ['signer', readSigner],
]);

function readHead(lines: Lines): HeadStatement {
  const [origin, machine, session] = [lines.origin(), lines.hex('machine'), lines.session()];
  const [from, to] = lines.fields('entries', 2);
  const range = rangeOf(from, to);
  const [prev, head, received, signature] = [
    lines.hex('prev'),
    lines.hex('head'),
    lines.time('received'),
    lines.signature(),
  ];
  return { type: 'head', origin, machine, session, ...range, prev, head, received, signature };
}

function readEnrol(lines: Lines): EnrolStatement {
  const [origin, machine, nameHash] = [lines.origin(), lines.hex('machine'), lines.hex('name-hash')];
  return { type: 'enrol', origin, machine, nameHash, signature: lines.signature(), received: lines.time('received') };
}

function readOpen(lines: Lines): OpenStatement {
  const [origin, machine, session, entries] = [
    lines.origin(),
    lines.hex('machine'),
    lines.session(),
    lines.count('entries'),
  ];
  need(entries > 0);
  const [head, key] = [lines.hex('head'), lines.hex('key')];
  return {
    type: 'open',
    origin,
    machine,
    session,
    entries,
    head,
    key,
    signature: lines.signature(),
    received: lines.time('received'),
  };
}

function readClose(lines: Lines): CloseStatement {
  const [origin, machine, session, entries] = [
    lines.origin(),
    lines.hex('machine'),
    lines.session(),
    lines.count('entries'),
  ];
  const [head, reason] = [lines.hex('head'), lines.field('reason')];
  need(isCloseReason(reason));
  const signature = isVaultReason(reason) ? {} : { signature: lines.signature() };
  return {
    type: 'close',
    origin,
    machine,
    session,
    entries,
    head,
    reason,
    ...signature,
    received: lines.time('received'),
  };
}

function readFork(lines: Lines): ForkStatement {
  const [origin, machine, session, count] = [
    lines.origin(),
    lines.hex('machine'),
    lines.session(),
    lines.count('count'),
  ];
  const claims: [ForkClaim, ForkClaim] = [readForkClaim(lines), readForkClaim(lines)];
  const [stored, other] = [hashAt(claims[0], count), hashAt(claims[1], count)];
  // It convicts by itself, or it is none: both speak of the count, and not with one voice.
  need(stored !== undefined && other !== undefined && stored !== other);
  return { type: 'fork', origin, machine, session, count, claims, received: lines.time('received') };
}

function readForkClaim(lines: Lines): ForkClaim {
  const [from, to, prev, head, signature] = lines.fields('claim', 5);
  const range = rangeOf(from, to);
  need(isHash(prev) && isHash(head) && isSignature(signature) && Number.isSafeInteger(range.to));
  return { ...range, prev, head, signature };
}

function readRevoke(lines: Lines): RevokeStatement {
  const [origin, machine, since] = [lines.origin(), lines.hex('machine'), lines.time('since')];
  return { type: 'revoke', origin, machine, since, by: lines.by(), received: lines.time('received') };
}

function readRotate(lines: Lines): RotateStatement {
  const origin = lines.origin();
  const [oldKey, newKey] = [lines.vkey('old', origin), lines.vkey('new', origin)];
  need(oldKey !== newKey);
  const signatures: [string, string] = [lines.signature(), lines.signature()];
  return { type: 'rotate', origin, old: oldKey, new: newKey, signatures, received: lines.time('received') };
}

function readSigner(lines: Lines): SignerStatement {
  const origin = lines.origin();
  const [before, after] = [readState(lines, 'old'), readState(lines, 'new')];
  return { type: 'signer', origin, old: before, new: after, by: lines.by(), received: lines.time('received') };
}

function readState(lines: Lines, name: string): SignerState {
  const [size, root] = lines.fields(name, 2);
  need(isRoot(root));
  return { size: countOf(size), root };
}

function isCloseReason(text: string): text is CloseReason {
  return text === 'ended' || text === 'lost' || text === 'forked' || text === 'continued';
}
