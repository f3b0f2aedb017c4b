import type { SessionPage } from '@nd7/vault-api';
import { ApiError, type SessionAddress, vault } from '../api/client.js';
import type { SessionResult } from '../worker/protocol.js';
import type { Row } from '../worker/row.js';
import type { Proof } from './proofs.js';
import { receiptsWanted } from './receipts-wanted.js';
import { type Feed, rowsInWorker, verifyInWorker } from './worker-client.js';

/** The check of one session in this visit, as the page shows it. A new object for every change. */
export interface Run {
  at: SessionAddress;
  phase: 'fetching' | 'done' | 'failed';
  /** Bytes the worker has judged, and those there are by the vault's word. */
  bytes: number;
  total: number;
  entries: number;
  /** What the vault said of the session when the run began. */
  page?: SessionPage;
  /** Receipts by the `from` of their segment. */
  receipts: ReadonlyMap<number, Uint8Array>;
  /** Segments whose receipt was not asked for, because a later one covers the same entries. */
  skipped: number;
  /** Grows while the log is read; `version` tells that it did. */
  rows: Row[];
  version: number;
  /** The bytes, segment by segment, exactly those the worker was given. Empty where nobody looks at them. */
  parts: Uint8Array[];
  result?: Proof<SessionResult>;
  error?: string;
}

/** Segments fetched ahead of the one being judged. */
const AHEAD = 4;
/** Receipts fetched at a time. */
const TOGETHER = 6;
/** The page is told of progress this often, in milliseconds; less often the more rows it must look through each time. */
const tellAfter = (rows: number) => Math.max(80, rows / 20);

type Listener = () => void;

const runs = new Map<string, Run>();
const stops = new Map<string, AbortController>();
const listeners = new Set<Listener>();

export const runKey = (at: SessionAddress) => `${at.machine}/${at.session}`;

/** The run of a session in this visit, if there was one. */
export function runOf(at: SessionAddress): Run | undefined {
  return runs.get(runKey(at));
}

export function subscribeRuns(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function put(at: SessionAddress, change: Partial<Run>): void {
  const now = runs.get(runKey(at));
  if (now === undefined) return;
  runs.set(runKey(at), { ...now, ...change, version: now.version + 1 });
  for (const listener of listeners) listener();
}

/**
 * Fetches a session and has it checked. `rows` also reads the timeline and keeps the bytes for whoever looks at entries. A run of the same
 * session that is still going is given up.
 */
export async function startRun(
  at: SessionAddress,
  options: { vkeys: readonly string[]; rows: boolean },
): Promise<Run | undefined> {
  const key = runKey(at);
  stops.get(key)?.abort();
  const stop = new AbortController();
  stops.set(key, stop);
  runs.set(key, {
    at,
    phase: 'fetching',
    bytes: 0,
    total: 0,
    entries: 0,
    receipts: new Map(),
    skipped: 0,
    rows: [],
    version: 0,
    parts: [],
  });
  for (const listener of listeners) listener();
  try {
    await run(at, options, stop.signal);
  } catch (error) {
    if (stop.signal.aborted) return undefined;
    put(at, { phase: 'failed', error: error instanceof Error ? error.message : String(error) });
  } finally {
    if (stops.get(key) === stop) stops.delete(key);
  }
  return runs.get(key);
}

/** Gives up a run, or lets go of the rows and bytes of a finished one; its verdict stays for this visit. */
export function releaseRun(at: SessionAddress): void {
  const key = runKey(at);
  const going = stops.get(key);
  if (going !== undefined) {
    going.abort();
    stops.delete(key);
    runs.delete(key);
  } else put(at, { rows: [], parts: [] });
}

async function run(
  at: SessionAddress,
  options: { vkeys: readonly string[]; rows: boolean },
  signal: AbortSignal,
): Promise<void> {
  // A run that was given up must not write into the one that took its place.
  const mine = (change: Partial<Run>) => {
    if (!signal.aborted) put(at, change);
  };
  const page = await vault.session(at, signal);
  const segments = page.segments;
  const total = segments.reduce((sum, segment) => sum + segment.bytes, 0);
  mine({ page, total });

  const rows: Row[] = [];
  const tell = throttled(
    () => {
      mine({});
    },
    () => tellAfter(rows.length),
  );
  const wanted = receiptsWanted(segments);
  const receipts = fetchReceipts(at, wanted, signal);
  const bodies = new Bodies(at, segments, signal);
  const reader = options.rows ? readRows(bodies, segments.length, rows, at, tell) : undefined;

  const texts = await receipts;
  mine({ receipts: texts, skipped: segments.filter((segment) => segment.receipt).length - wanted.length });
  const feed = verifyInWorker(
    { session: at.session, receipts: [...texts.values()], vkeys: options.vkeys, now: Date.now() },
    (bytes, entries) => {
      const now = runs.get(runKey(at));
      if (now === undefined || signal.aborted) return;
      Object.assign(now, { bytes, entries });
      tell();
    },
  );
  stopWith(signal, feed);
  for (let i = 0; i < segments.length; i++) {
    await feed.push(await bodies.at(i));
    if (reader === undefined) bodies.drop(i);
  }
  feed.end();
  const [result] = await Promise.all([feed.result, reader?.result]);
  const parts = reader === undefined ? [] : await bodies.all();
  signal.throwIfAborted();
  put(at, { phase: 'done', result, bytes: result.report.bytes, entries: result.report.entries, rows, parts });
}

function readRows(bodies: Bodies, count: number, rows: Row[], at: SessionAddress, tell: () => void): Feed<number> {
  put(at, { rows });
  const feed = rowsInWorker((more) => {
    rows.push(...more);
    tell();
  });
  stopWith(bodies.signal, feed);
  void (async () => {
    for (let i = 0; i < count; i++) {
      const part = await bodies.at(i);
      bodies.signal.throwIfAborted();
      // The bytes stand ready before the first row points into them.
      runs.get(runKey(at))?.parts.push(part);
      await feed.push(part);
    }
    feed.end();
  })().catch(() => {
    feed.stop();
  });
  return feed;
}

function stopWith<T>(signal: AbortSignal, feed: Feed<T>): void {
  feed.result.catch(() => undefined);
  signal.addEventListener('abort', () => {
    feed.stop();
  });
}

/** Segment bodies in order, a few fetched ahead. */
class Bodies {
  readonly signal: AbortSignal;
  readonly #at: SessionAddress;
  readonly #segments: SessionPage['segments'];
  readonly #pending: (Promise<Uint8Array> | undefined)[] = [];
  #asked = 0;

  constructor(at: SessionAddress, segments: SessionPage['segments'], signal: AbortSignal) {
    this.#at = at;
    this.#segments = segments;
    this.signal = signal;
  }

  at(index: number): Promise<Uint8Array> {
    const until = Math.min(this.#segments.length, index + AHEAD);
    for (; this.#asked < until; this.#asked++) {
      const pending = this.#fetch(this.#asked);
      // Whoever awaits it hears of a failure; one fetched ahead may never be awaited.
      pending.catch(() => undefined);
      this.#pending[this.#asked] = pending;
    }
    return this.#pending[index] ?? this.#fetch(index);
  }

  drop(index: number): void {
    this.#pending[index] = undefined;
  }

  all(): Promise<Uint8Array[]> {
    return Promise.all(this.#segments.map((_segment, i) => this.at(i)));
  }

  async #fetch(index: number): Promise<Uint8Array> {
    const segment = this.#segments[index];
    if (segment === undefined) throw new RangeError(`no segment ${String(index)}`);
    try {
      const answer = await vault.body(this.#at, segment.from, this.signal);
      return new Uint8Array(await answer.arrayBuffer());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw new ApiError(
        error.code,
        `The vault did not give the bytes of entries ${String(segment.from)} to ${String(segment.to - 1)}: ${error.message}`,
        error.status,
      );
    }
  }
}

async function fetchReceipts(
  at: SessionAddress,
  froms: readonly number[],
  signal: AbortSignal,
): Promise<Map<number, Uint8Array>> {
  const texts = new Map<number, Uint8Array>();
  const queue = [...froms];
  const work = async () => {
    for (let from = queue.shift(); from !== undefined; from = queue.shift()) {
      const text = await vault.receipt(at, from, signal);
      if (text !== undefined) texts.set(from, text);
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, work));
  return new Map([...texts].sort(([a], [b]) => a - b));
}

function throttled(call: () => void, delay: () => number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      call();
    }, delay());
  };
}
