import { blake3 as nobleBlake3 } from '@noble/hashes/blake3.js';
import { MAX_LINE, parseStrictJson, toHex } from '@nd7/entry';
import {
  checkChunk,
  checkHead,
  CLOCK_LENGTH,
  Fault,
  type LineKernel,
  type LineScan,
  type LinkBefore,
  MAX_HEAD,
  MAX_HEADS,
  MAX_LINES,
} from './lines.js';

const NEWLINE = 0x0a;
const NUMBER_OF = {
  'not-utf8': Fault.notUtf8,
  'bad-json': Fault.badJson,
  'duplicate-key': Fault.duplicateKey,
} as const;

/**
 * The same answers as `createKernel`, from other code: noble's BLAKE3 and the parser of `@nd7/entry`. Fifty times
 * slower; for tests, and for hosts without WebAssembly.
 */
export function referenceKernel(): LineKernel {
  const heads: Head[] = [];
  let lines: ReferenceLine[] = [];
  let learned = 0;
  let last = 0;
  return {
    scan(chunk) {
      const found = scan(chunk);
      lines = [...found.faults].map((fault, i) => ({
        front: latin1(chunk.subarray(found.ends[i - 1] ?? 0, (found.ends[i] as number) - 1).subarray(0, FRONT)),
        hash: toHex(found.hashes.subarray(32 * i, 32 * i + 32)),
        fault,
      }));
      return found;
    },
    run(from, before) {
      const found = headsOf(lines.slice(from), before, heads, last);
      last = found.at(-1) ?? last;
      const counts = new Uint32Array(MAX_HEADS);
      for (const head of found) counts[head] = (counts[head] as number) + 1;
      return { count: found.length, heads: counts, last };
    },
    learn(head, clock) {
      checkHead(head, clock);
      const text = latin1(head);
      const number = learned++ % MAX_HEADS;
      heads[number] = { before: text.slice(0, clock), after: text.slice(clock + CLOCK_LENGTH) };
      return number;
    },
  };
}

interface ReferenceLine {
  front: string;
  hash: string;
  fault: number;
}

interface Head {
  before: string;
  after: string;
}

/** Of a line no more is looked at than a link and a head. */
const FRONT = 120 + MAX_HEAD;
/** No number has more digits. */
const LARGEST = 10n ** 16n;
const CLOCK = /^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z"$/;

/** The heads of the lines that follow `before` and each other, up to the first that does not or has none of these. */
function headsOf(lines: readonly ReferenceLine[], before: LinkBefore, heads: readonly Head[], last: number): number[] {
  const { digits, width, hash } = before;
  const found: number[] = [];
  let seq = width === 0 ? undefined : BigInt(latin1(digits.subarray(digits.length - width)));
  let prev = toHex(hash);
  let recent = last;
  for (const { front, hash, fault } of lines) {
    const link = `{"v":1,"seq":${String(seq)},"prev":"${prev}"`;
    if (fault !== Fault.ok || seq === undefined || seq >= LARGEST || !front.startsWith(`${link},`)) break;
    const rest = front.slice(link.length);
    const has = ({ before, after }: Head) =>
      rest.startsWith(before) &&
      CLOCK.test(rest.slice(before.length, before.length + CLOCK_LENGTH)) &&
      rest.slice(before.length + CLOCK_LENGTH).startsWith(after);
    const known = heads[recent];
    const head = known !== undefined && has(known) ? recent : heads.findIndex(has);
    if (head < 0) break;
    found.push((recent = head));
    seq++;
    prev = hash;
  }
  return found;
}

const latin1 = (bytes: Uint8Array) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');

function scan(chunk: Uint8Array): LineScan {
  checkChunk(chunk);
  const ends: number[] = [];
  let consumed = 0;
  let next = chunk.indexOf(NEWLINE);
  for (; next >= 0 && ends.length < MAX_LINES; next = chunk.indexOf(NEWLINE, consumed)) {
    consumed = next + 1;
    ends.push(consumed);
  }
  const hashes = new Uint8Array(32 * ends.length);
  const faults = new Uint8Array(ends.length);
  let start = 0;
  ends.forEach((end, i) => {
    const line = chunk.subarray(start, end - 1);
    hashes.set(nobleBlake3(line), 32 * i);
    faults[i] = faultOf(line);
    start = end;
  });
  return { count: ends.length, ends: Uint32Array.from(ends), hashes, faults, consumed, more: next >= 0 };
}

function faultOf(line: Uint8Array): number {
  if (line.length > MAX_LINE) return Fault.tooLong;
  const parsed = parseStrictJson(line, { object: true });
  return parsed.ok ? Fault.ok : NUMBER_OF[parsed.reason];
}
