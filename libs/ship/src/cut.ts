import { FAULT_REASONS, MAX_CHUNK, sharedKernel } from '@nd7/blake3';
import { genesis } from '@nd7/chain';
import { readEntry, toHex } from '@nd7/entry';
import { ShipError } from './error.js';

/** The session's log, as much of it as shipping needs. */
export interface SessionSource {
  readonly session: string;
  /** Entries in the log now (lines ended by "\n"). */
  entries(): number | Promise<number>;
  /** The exact bytes of entries [from, to), each with its "\n". */
  range(from: number, to: number): Uint8Array | Promise<Uint8Array>;
  /** Makes the log end in a seal that is on the disk (the last entry, where it is one already). */
  seal(): Promise<unknown>;
  /** Whether this chain has ended without its session's end and another goes on in its place; never where it is left out. */
  isContinued?(): boolean | Promise<boolean>;
}

/** A run of entries that ends with a seal. */
export interface Cut {
  from: number;
  to: number;
  /** The link that its first entry carries. */
  prev: string;
  /** The hash of its last entry. */
  head: string;
  body: Uint8Array;
}

/** A segment has at most so many entries and bytes where a seal allows it … */
const ENTRIES = 1000;
const BYTES = 2_000_000;
/** … and never more than the vault takes. */
const MAX_ENTRIES = 4096;
const MAX_BYTES = 8 * 1024 * 1024;
/** Entries read at once: one may be a megabyte long. */
const STEP = 32;

const SEAL = Buffer.from('"seal"');
const PREFIX = /^\{"v":1,"seq":(0|[1-9][0-9]{0,15}),"prev":"([0-9a-f]{64})",/;

/**
 * The longest run from an entry on that ends with a seal and keeps to the limits; undefined where no seal follows. The first segment of a session ends with its
 * first seal: it is small and pins the session's key. Throws ShipError `refused` where more lies between two seals than a vault takes.
 */
export async function chooseCut(source: SessionSource, from: number, count: number): Promise<Cut | undefined> {
  const parts: Uint8Array[] = [];
  let [entries, bytes] = [0, 0];
  let sealed: { entries: number; bytes: number } | undefined;
  reading: for (let at = from; at < count; at += STEP) {
    const chunk = await source.range(at, Math.min(at + STEP, count));
    parts.push(chunk);
    for (const line of linesOf(chunk)) {
      const isOver = entries + 1 > ENTRIES || bytes + line.length > BYTES;
      if ((isOver && sealed !== undefined) || entries + 1 > MAX_ENTRIES || bytes + line.length > MAX_BYTES)
        break reading;
      entries += 1;
      bytes += line.length;
      if (!isSeal(line)) continue;
      sealed = { entries, bytes };
      if (from === 0) break reading;
    }
  }
  if (sealed === undefined) {
    if (from + entries < count) {
      throw new ShipError(
        'refused',
        `session ${source.session}: no seal stands in the ${String(entries)} entries from ${String(from)} on, and a vault takes no more at once: they cannot be shipped`,
        {
          session: source.session,
          entry: from,
          reason: 'unsealed',
        },
      );
    }
    return undefined;
  }
  return hashCut(source.session, from, from + sealed.entries, Buffer.concat(parts).subarray(0, sealed.bytes));
}

/** The run [from, to) as it stands in the log now, whatever its last entry is. */
export async function cutOf(source: SessionSource, from: number, to: number): Promise<Cut> {
  return hashCut(source.session, from, to, await source.range(from, to));
}

/** Hashes a run and checks its links: nothing is signed that does not fit itself. Seals are the vault's to verify. Throws ShipError `log-broken`. */
function hashCut(session: string, from: number, to: number, body: Uint8Array): Cut {
  const broken = (entry: number, reason: string): ShipError =>
    new ShipError(
      'log-broken',
      `session ${session}: entry ${String(entry)} does not check out (${reason}), so nothing from there on is shipped: nd7 verify ${session} says more`,
      { session, entry, reason },
    );
  const kernel = sharedKernel();
  let seq = from;
  let first: string | undefined;
  let head = '';
  for (let at = 0; at < body.length;) {
    const chunk = body.subarray(at, at + MAX_CHUNK);
    const { count, ends, hashes, faults, consumed } = kernel.scan(chunk);
    if (count === 0) throw broken(seq, at + chunk.length < body.length ? 'too-long' : 'torn-tail');
    for (let i = 0, start = 0; i < count; start = ends[i++] ?? 0, seq++) {
      const reason = FAULT_REASONS[faults[i] ?? 0];
      if ((faults[i] ?? 0) !== 0) throw broken(seq, reason ?? 'bad-json');
      const [, number, prev] =
        PREFIX.exec(
          Buffer.from(chunk.buffer, chunk.byteOffset + start, Math.min(128, (ends[i] ?? 0) - start)).toString('latin1'),
        ) ?? [];
      if (number === undefined || prev === undefined) throw broken(seq, 'bad-prefix');
      if (number !== String(seq)) throw broken(seq, 'wrong-seq');
      if (first === undefined) {
        if (from === 0 && prev !== genesis(session)) throw broken(0, 'wrong-genesis');
        first = prev;
      } else if (prev !== head) {
        throw broken(seq, 'wrong-prev');
      }
      head = toHex(hashes.subarray(32 * i, 32 * i + 32));
    }
    at += consumed;
  }
  if (seq !== to || first === undefined) throw broken(seq, 'truncated');
  return { from, to, prev: first, head, body };
}

/** What entry 0 says of its first key, and whether the log ends with the session's end (the seal after it apart). */
export async function firstKey(source: SessionSource): Promise<string | undefined> {
  const [line] = linesOf(await source.range(0, 1));
  const data = line === undefined ? undefined : readEntry(line.subarray(0, -1)).data;
  const key = data === undefined ? undefined : (JSON.parse(data) as { key?: unknown }).key;
  return typeof key === 'string' ? key : undefined;
}

/** Whether the last entry before the seal that ends the first `count` entries says that the session has ended. */
export async function hasEnded(source: SessionSource, count: number): Promise<boolean> {
  if (count < 2) return false;
  const [line] = linesOf(await source.range(count - 2, count - 1));
  const entry = line === undefined ? undefined : readEntry(line.subarray(0, -1));
  return entry?.class === 'recorder' && entry.kind === 'session.end';
}

/** A seal as this recorder writes it. One spelled otherwise is only no place to cut. */
function isSeal(line: Uint8Array): boolean {
  if (!Buffer.from(line.buffer, line.byteOffset, line.length).includes(SEAL)) return false;
  const entry = readEntry(line.subarray(0, -1));
  return entry.source === 'recorder:nd7' && entry.kind === 'seal';
}

function* linesOf(chunk: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < chunk.length;) {
    const end = chunk.indexOf(10, start) + 1;
    if (end === 0) return;
    yield chunk.subarray(start, end);
    start = end;
  }
}
