/** Why the first bytes of a tunnel are not the one thing that is let through: a TLS ClientHello that names a server. */
export type HelloFault =
  | 'not-tls' // another protocol speaks
  | 'split' // the hello does not lie in one TLS record: no client needs that, and filters that guess at it are led by the nose
  | 'malformed' // lengths that do not add up, an extension twice
  | 'no-name' // no server_name in it
  | 'many-names'; // more than one name, or one that is no host_name

/** What was read of it so far: the name as it stands in the hello, a fault, or how many bytes are needed to tell. */
export type Hello = { name: string } | { fault: HelloFault } | { needs: number };

const RECORD_HEADER = 5;
/** RFC 8446 section 5.1: a record's fragment has at most 2^14 bytes. */
const MAX_FRAGMENT = 1 << 14;
/** The largest hello there can be: whoever collects bytes for it needs no more. */
export const MAX_HELLO = RECORD_HEADER + MAX_FRAGMENT;

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;

/**
 * Reads the server name of a ClientHello (RFC 8446 section 4.1.2, RFC 6066 section 3) that lies whole in the first record of a stream.
 * Everything is checked against the lengths around it; nothing beyond the hello is looked at.
 */
export function readClientHello(bytes: Uint8Array): Hello {
  if (bytes.length > 0 && bytes[0] !== HANDSHAKE) return { fault: 'not-tls' };
  if (bytes.length > 1 && bytes[1] !== 3) return { fault: 'not-tls' };
  if (bytes.length < RECORD_HEADER) return { needs: RECORD_HEADER };
  const fragment = uint(bytes, 3, 2);
  if (fragment < 4 || fragment > MAX_FRAGMENT) return { fault: 'malformed' };
  if (bytes.length > RECORD_HEADER && bytes[RECORD_HEADER] !== CLIENT_HELLO) return { fault: 'not-tls' };
  if (bytes.length < RECORD_HEADER + 4) return { needs: RECORD_HEADER + 4 };
  const length = uint(bytes, RECORD_HEADER + 1, 3);
  if (length > fragment - 4) return { fault: 'split' };
  if (length < fragment - 4) return { fault: 'malformed' }; // something follows the hello in its record
  const end = RECORD_HEADER + fragment;
  if (bytes.length < end) return { needs: end };
  return readName(bytes, RECORD_HEADER + 4, end);
}

function readName(bytes: Uint8Array, from: number, end: number): Hello {
  let at = from + 2 + 32; // legacy_version, random
  for (const [size, least, step] of [
    [1, 0, 1], // legacy_session_id
    [2, 2, 2], // cipher_suites
    [1, 1, 1], // legacy_compression_methods
  ] as const) {
    if (at + size > end) return { fault: 'malformed' };
    const length = uint(bytes, at, size);
    if (length < least || length % step !== 0) return { fault: 'malformed' };
    at += size + length;
  }
  if (at === end) return { fault: 'no-name' }; // a hello may have no extensions at all
  if (at + 2 > end || at + 2 + uint(bytes, at, 2) !== end) return { fault: 'malformed' };
  at += 2;
  const seen = new Set<number>();
  let found: Hello = { fault: 'no-name' };
  while (at < end) {
    if (at + 4 > end) return { fault: 'malformed' };
    const [type, length] = [uint(bytes, at, 2), uint(bytes, at + 2, 2)];
    at += 4;
    if (at + length > end || seen.has(type)) return { fault: 'malformed' };
    seen.add(type);
    if (type === SERVER_NAME) found = nameOf(bytes, at, at + length);
    at += length;
  }
  return found;
}

function nameOf(bytes: Uint8Array, from: number, end: number): Hello {
  if (from + 2 > end || from + 2 + uint(bytes, from, 2) !== end) return { fault: 'malformed' };
  const at = from + 2;
  if (at === end) return { fault: 'no-name' };
  if (at + 3 > end) return { fault: 'malformed' };
  const length = uint(bytes, at + 1, 2);
  if (length === 0 || at + 3 + length > end) return { fault: 'malformed' };
  if (bytes[at] !== HOST_NAME || at + 3 + length !== end) return { fault: 'many-names' };
  return { name: String.fromCharCode(...bytes.subarray(at + 3, end)) };
}

function uint(bytes: Uint8Array, at: number, size: number): number {
  let value = 0;
  for (let i = 0; i < size; i++) value = value * 256 + (bytes[at + i] as number);
  return value;
}
