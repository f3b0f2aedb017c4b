import { Refusal } from './decision.js';
import { isAuthority } from './http.js';
import { readTarget, type Target } from './target.js';

/** One request line, fields of which each stands in one line of printable ASCII, and the empty line: as every client sends it. */
const PLAIN = /^CONNECT ([!-~]{1,300}) HTTP\/1\.1\r\n((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~]*\r\n){0,64})\r\n/;
/** They say that there is more to a request than its head. */
const MORE = new Set(['content-length', 'transfer-encoding', 'upgrade', 'expect']);

/** Whom a request means, and how long its head is. */
interface Connect {
  readonly target: Readonly<Target>;
  readonly length: number;
}

/** What a program asked it asks again, word for word: reading costs a tenth of what a connection does. */
const KNOWN = new Map<string, Connect>();
const [MOST_KNOWN, LONGEST_KNOWN] = [256, 1024];

/**
 * Reads a CONNECT that can be read in one way only. Undefined for all others, which may be right as well: Node's parser says that.
 */
export function readConnect(bytes: Buffer): Connect | undefined {
  if (bytes.length > LONGEST_KNOWN) return read(bytes.toString('latin1'));
  const text = bytes.toString('latin1');
  const known = KNOWN.get(text);
  if (known !== undefined) return known;
  const connect = read(text);
  if (connect === undefined) return undefined;
  if (KNOWN.size >= MOST_KNOWN) KNOWN.clear();
  KNOWN.set(text, connect);
  return connect;
}

function read(text: string): Connect | undefined {
  const [head, authority, lines] = PLAIN.exec(text) ?? [];
  if (head === undefined || authority === undefined || lines === undefined) return undefined;
  const fields = lines.split('\r\n').slice(0, -1);
  const hosts: string[] = [];
  for (const field of fields) {
    const colon = field.indexOf(':');
    const name = field.slice(0, colon).toLowerCase();
    if (MORE.has(name)) return undefined;
    if (name === 'host') hosts.push(field.slice(colon + 1).trim());
  }
  try {
    const target = readTarget(authority);
    const [host, another] = hosts;
    if (another !== undefined || (host !== undefined && !isAuthority(host, target, target.port))) return undefined;
    return { target, length: head.length };
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
