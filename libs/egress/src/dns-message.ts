/**
 * Messages of the domain name system (RFC 1035 section 4, EDNS of RFC 6891): queries are read, answers are made. Queries come from programs
 * inside and are hostile: one question, no compression, every length checked.
 */

/** A question about one name. */
export interface Query {
  id: number;
  /** Recursion desired and checking disabled, which an answer repeats. */
  flags: number;
  /** The name as text without a dot at the end; bytes that no host name has are escaped, so that it is none. Empty: the root. */
  name: string;
  type: number;
  /** The question's own bytes: an answer repeats them as they came. */
  question: Uint8Array;
  /** Version of EDNS that was spoken; undefined: none. */
  edns: number | undefined;
}

/** What is answered to a message that is no such query; undefined: nothing, as it is no query at all. */
export interface Unread {
  fault: Uint8Array | undefined;
}

export const TYPE = { a: 1, any: 255 } as const;
/** RFC 1035 section 4.1.1, RFC 6891 section 9. */
export const CODE = {
  ok: 0,
  formError: 1,
  failed: 2,
  noName: 3,
  notImplemented: 4,
  refused: 5,
  badVersion: 16,
} as const;

const HEADER = 12;
const [CLASS_IN, CLASS_ANY] = [1, 255];
const OPT = 41;
const MAX_NAME = 255;
const MAX_LABEL = 63;
const [IS_ANSWER, OPCODE, DESIRED, AVAILABLE, CHECKING] = [0x8000, 0x7800, 0x0100, 0x0080, 0x0010];
/** What fits into a datagram that nobody has to take apart (DNS flag day 2020); answers here are shorter. */
const UDP_SIZE = 1232;

/** Reads a query. Anything besides one question of class IN and at most one OPT record is a fault. */
export function readQuery(bytes: Uint8Array): Query | Unread {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEADER || (view.getUint16(2) & IS_ANSWER) !== 0) return { fault: undefined };
  const id = view.getUint16(0);
  const flags = view.getUint16(2);
  const unread = (code: number): Unread => ({ fault: header(id, flags, code, [0, 0, 0]) });
  if ((flags & OPCODE) !== 0) return unread(CODE.notImplemented);
  const [questions, answers, authorities, additional] = [4, 6, 8, 10].map((at) => view.getUint16(at));
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additional as number) > 1)
    return unread(CODE.formError);
  const read = readName(bytes);
  if (read === undefined || read.end + 4 > bytes.length) return unread(CODE.formError);
  const [type, kind, end] = [view.getUint16(read.end), view.getUint16(read.end + 2), read.end + 4];
  const edns = additional === 1 ? readOpt(view, end) : undefined;
  if (edns === null || (edns === undefined && end !== bytes.length)) return unread(CODE.formError);
  if (kind !== CLASS_IN && kind !== CLASS_ANY) return unread(CODE.refused);
  return { id, flags: flags & (DESIRED | CHECKING), name: read.name, type, question: bytes.slice(HEADER, end), edns };
}

/** The name of the question: labels only. A pointer there could lead only to itself or into the header. */
function readName(bytes: Uint8Array): { name: string; end: number } | undefined {
  const labels: string[] = [];
  let at = HEADER;
  for (;;) {
    const length = bytes[at];
    if (length === undefined || length > MAX_LABEL) return undefined;
    at += 1;
    if (length === 0) return { name: labels.join('.'), end: at };
    if (at + length > bytes.length || at + length - HEADER >= MAX_NAME) return undefined;
    labels.push(labelText(bytes.subarray(at, at + length)));
    at += length;
  }
}

/** RFC 4343 section 2.1: a byte that could be taken for something else is written as its number. */
function labelText(label: Uint8Array): string {
  return Array.from(label, (byte) => {
    const char = String.fromCharCode(byte);
    return /[A-Za-z0-9_-]/.test(char) ? char : `\\${String(byte).padStart(3, '0')}`;
  }).join('');
}

/** The version in an OPT record that ends the message; null where it is none. */
function readOpt(view: DataView, at: number): number | null {
  if (at + 11 > view.byteLength || view.getUint8(at) !== 0 || view.getUint16(at + 1) !== OPT) return null;
  if (at + 11 + view.getUint16(at + 9) !== view.byteLength) return null;
  return view.getUint8(at + 6);
}

/** The answer to a query: addresses (IPv4) that may be kept for so many seconds, or a code and none. */
export function answerQuery(query: Query, code: number, addresses: readonly string[] = [], ttl = 0): Uint8Array {
  const opt = query.edns === undefined ? [] : [optRecord(code)];
  const records = addresses.map((address) => addressRecord(address, ttl));
  return Buffer.concat([
    header(query.id, query.flags, code, [1, records.length, opt.length]),
    query.question,
    ...records,
    ...opt,
  ]);
}

function header(
  id: number,
  flags: number,
  code: number,
  [questions, answers, additional]: [number, number, number],
): Buffer {
  const bytes = Buffer.alloc(HEADER);
  const said = flags & (OPCODE | DESIRED | CHECKING);
  [id, IS_ANSWER | said | AVAILABLE | (code & 15), questions, answers, 0, additional].forEach((value, i) =>
    bytes.writeUInt16BE(value, 2 * i),
  );
  return bytes;
}

/** An A record for the name of the question, which is pointed to. */
function addressRecord(address: string, ttl: number): Buffer {
  const bytes = Buffer.alloc(16);
  [0xc000 | HEADER, TYPE.a, CLASS_IN].forEach((value, i) => bytes.writeUInt16BE(value, 2 * i));
  bytes.writeUInt32BE(ttl, 6);
  bytes.writeUInt16BE(4, 10);
  bytes.set(address.split('.').map(Number), 12);
  return bytes;
}

/** The upper bits of the code stand in it. */
function optRecord(code: number): Buffer {
  const bytes = Buffer.alloc(11);
  bytes.writeUInt16BE(OPT, 1);
  bytes.writeUInt16BE(UDP_SIZE, 3);
  bytes.writeUInt8(code >> 4, 5);
  return bytes;
}
