import { createKernel, MAX_CHUNK } from '@nd7/blake3';
import { genesis, walk } from '@nd7/chain';
import { formatTime, readEntry, toHex } from '@nd7/entry';
import { checkReceiptItself, type Statement } from '@nd7/receipt';
import {
  claimItem,
  closeMessage,
  decodeClaimHeaders,
  isFork,
  openMessage,
  signedItem,
  type SignedClaim,
} from '@nd7/segment';
import { verifySignatures } from '@nd7/signing';
import { parseVkey } from '@nd7/tlog';
import { CloseRequest, OpenRequest, type ProblemCode, type ProblemExtra } from '@nd7/vault-api';
import { decompress } from '@mongodb-js/zstd';
import type { LogDouble } from './log-double.js';

/** A refusal on its way to the client. */
export class Refusal extends Error {
  constructor(
    readonly code: ProblemCode,
    detail: string,
    readonly extra: ProblemExtra = {},
  ) {
    super(detail);
  }
}

interface StoredSession {
  machine: string;
  session: string;
  /** `key`: the session key in force after the segment. */
  segments: { claim: SignedClaim; body: Uint8Array; leaf: number; key: string }[];
  firstKey: string;
  /** `open`, `close-<entries>` → leaf. */
  statements: Map<string, number>;
  forked: boolean;
  closed: boolean;
}

/** A segment as it came. */
export interface Incoming {
  machine: string;
  session: string;
  from: number;
  claim: string;
  signature: string;
  encoding: string | undefined;
  body: Uint8Array;
}

/** The vault's rules of docs/receipt.md, in memory: what is taken, what is a fork, what is refused with which code. */
export class IngestDouble {
  readonly forks: { count: number; claims: [SignedClaim, SignedClaim] }[] = [];
  readonly #sessions = new Map<string, StoredSession>();
  readonly #kernel = createKernel();

  constructor(
    private readonly log: LogDouble,
    private readonly now: () => number,
  ) {}

  find(machine: string, session: string): StoredSession | undefined {
    return this.#sessions.get(`${machine}/${session}`);
  }

  /** Verifies a segment and stores it; the same again is no second leaf. Throws Refusal. */
  async put(incoming: Incoming): Promise<{ isNew: boolean; leaf: number }> {
    const { machine, session, from } = incoming;
    const body = await decode(incoming);
    const claim = decodeClaimHeaders(incoming.claim, incoming.signature);
    if (
      claim?.origin !== this.log.origin ||
      claim.machine !== machine ||
      claim.session !== session ||
      claim.from !== from
    ) {
      throw new Refusal('bad-claim', 'the claim is not of this route, machine or log');
    }
    if (!(await verifySignatures([claimItem(claim)])).every(Boolean))
      throw new Refusal('bad-claim', 'the signature is bad');
    const stored = this.find(machine, session);
    const same = stored?.segments.find(
      (s) =>
        s.claim.from === from && s.claim.to === claim.to && s.claim.prev === claim.prev && s.claim.head === claim.head,
    );
    if (same !== undefined) return { isNew: false, leaf: same.leaf };
    if (stored !== undefined) await this.#conflicts(stored, claim, body);
    else if (from > 0) throw new Refusal('gap', 'entries are missing', { next: 0 });
    const { key, firstKey } = await this.#verify(stored, claim, body);
    const into: StoredSession = stored ?? {
      machine,
      session,
      segments: [],
      firstKey,
      statements: new Map(),
      forked: false,
      closed: false,
    };
    const leaf = await this.log.append({ type: 'head', ...claim, received: this.received() });
    into.segments.push({ claim, body, leaf, key });
    this.#sessions.set(`${machine}/${session}`, into);
    return { isNew: true, leaf };
  }

  async #conflicts(stored: StoredSession, claim: SignedClaim, body: Uint8Array): Promise<void> {
    const next = stored.segments.at(-1)?.claim.to ?? 0;
    for (const { claim: other } of stored.segments) {
      const count = isFork(other, claim);
      if (count === undefined) continue;
      stored.forked = true;
      this.forks.push({ count, claims: [other, claim] });
      const { machine, session } = claim;
      await this.log.append({
        type: 'fork',
        origin: this.log.origin,
        machine,
        session,
        count,
        claims: [other, claim],
        received: this.received(),
      });
      throw new Refusal('fork', `two hashes for ${String(count)} entries`, { next });
    }
    if (stored.forked) throw new Refusal('fork', 'the session is forked', { next });
    if (claim.from > next) throw new Refusal('gap', 'entries are missing', { next });
    if (claim.from < next) {
      const held = stored.segments.flatMap((s) => this.#hashes(s.body));
      const agrees = this.#hashes(body).every(
        (hash, i) => held[claim.from + i] === undefined || held[claim.from + i] === hash,
      );
      throw new Refusal(agrees ? 'overlap' : 'disagrees', 'these entries are held', { next });
    }
  }

  async #verify(
    stored: StoredSession | undefined,
    claim: SignedClaim,
    body: Uint8Array,
  ): Promise<{ key: string; firstKey: string }> {
    const before = stored === undefined ? undefined : await this.walk(stored);
    const start =
      before === undefined ? undefined : { entries: before.entries, head: before.head, key: before.seals.key };
    const result = await walk(body, {
      session: claim.session,
      kernel: this.#kernel,
      verify: verifySignatures,
      ...(start && { start }),
    });
    if (result.reason !== undefined)
      throw new Refusal(result.reason as ProblemCode, 'the chain does not hold', {
        bad_entry: result.bad_entry ?? 0,
        reason: result.reason,
      });
    if (result.entries < claim.to)
      throw new Refusal('truncated', 'fewer entries than claimed', { bad_entry: result.entries });
    if (result.entries > claim.to) throw new Refusal('bad-claim', 'more entries than claimed');
    if (result.head !== claim.head) throw new Refusal('head-mismatch', 'another head', { bad_entry: claim.to - 1 });
    for (const [i, line] of linesOf(body).entries()) {
      const { problem } = readEntry(line);
      if (problem !== undefined)
        throw new Refusal('bad-member', `its ${problem} is not of its form`, {
          bad_entry: claim.from + i,
          reason: problem,
        });
    }
    const { key, sealedTo, firstKey } = result.seals;
    if (key === null || sealedTo !== claim.to - 1)
      throw new Refusal('unsealed', 'the last entry is no seal', { bad_entry: claim.to - 1 });
    if (claim.from === 0 && result.entry0?.machine !== claim.machine)
      throw new Refusal('bad-machine', 'entry 0 names another machine', { bad_entry: 0 });
    return { key, firstKey: firstKey ?? stored?.firstKey ?? '' };
  }

  /** States a session open or closed. */
  async state(
    kind: string,
    machine: string,
    session: string,
    json: unknown,
  ): Promise<{ isNew: boolean; leaf: number }> {
    const stored = this.find(machine, session);
    const next = stored?.segments.at(-1)?.claim.to ?? 0;
    const base = { origin: this.log.origin, machine, session };
    const received = this.received();
    let statement: Statement;
    if (kind === 'open') {
      const request = OpenRequest.parse(json);
      const [good] = await verifySignatures([
        signedItem(machine, openMessage({ ...base, ...request }), request.signature),
      ]);
      if (good !== true) throw new Refusal('bad-claim', 'the signature is bad');
      statement = { type: 'open', ...base, ...request, received };
    } else {
      const request = CloseRequest.parse(json);
      const [good] = await verifySignatures([
        signedItem(machine, closeMessage({ ...base, ...request }), request.signature),
      ]);
      if (good !== true) throw new Refusal('bad-claim', 'the signature is bad');
      statement = { type: 'close', ...base, ...request, received };
    }
    const hash = stored?.segments.flatMap((s) => this.#hashes(s.body))[statement.entries - 1];
    if (stored === undefined || hash === undefined) throw new Refusal('gap', 'entries are missing', { next });
    if (hash !== statement.head) throw new Refusal('disagrees', 'another head', { next });
    if (statement.type === 'open' && stored.firstKey !== statement.key)
      throw new Refusal('disagrees', 'another first key', { next });
    const name = `${kind}/${String(statement.entries)}`;
    const known = stored.statements.get(name);
    if (known !== undefined) return { isNew: false, leaf: known };
    const leaf = await this.log.append(statement);
    stored.statements.set(name, leaf);
    if (kind === 'close') stored.closed = true;
    return { isNew: true, leaf };
  }

  /** The chain of what is held, verified from entry 0. */
  walk(stored: StoredSession): ReturnType<typeof walk> {
    const bytes = new Uint8Array(Buffer.concat(stored.segments.map(({ body }) => body)));
    return walk(bytes, { session: stored.session, kernel: this.#kernel, verify: verifySignatures });
  }

  /** Goes back to when a session had so many segments, log and all. */
  cutBack(machine: string, session: string, segments: number): void {
    const stored = this.find(machine, session);
    if (stored === undefined) throw new Error(`no session ${session}`);
    stored.segments.length = segments;
    this.log.cutBack((stored.segments.at(-1)?.leaf ?? -1) + 1);
    for (const [name, leaf] of stored.statements) if (leaf >= this.log.leaves.length) stored.statements.delete(name);
    if (segments === 0) this.#sessions.delete(`${machine}/${session}`);
  }

  /** Throws where anything held does not verify. */
  async check(): Promise<void> {
    const vkey = parseVkey(this.log.vkey);
    if (vkey === undefined) throw new Error('the vault has no key');
    for (const stored of this.#sessions.values()) {
      const { session, segments } = stored;
      const result = await this.walk(stored);
      if (result.verdict !== 'intact')
        throw new Error(`session ${session} is broken at ${String(result.bad_entry)}: ${String(result.reason)}`);
      let [count, head] = [0, genesis(session)];
      for (const { claim, leaf } of segments) {
        if (claim.from !== count || claim.prev !== head)
          throw new Error(`segment ${String(claim.from)} of ${session} does not follow`);
        [count, head] = [claim.to, claim.head];
        const receipt = await this.log.receipt(leaf);
        if (receipt === undefined) continue;
        const verdict = await checkReceiptItself(receipt, { keys: [vkey] }, verifySignatures);
        if (!verdict.ok || verdict.receipt.statement.head !== claim.head)
          throw new Error(`the receipt for ${String(claim.to)} entries of ${session} does not hold`);
      }
      if (result.head !== head) throw new Error(`the head of ${session} is another one`);
    }
  }

  received(): string {
    return formatTime(this.now());
  }

  #hashes(body: Uint8Array): string[] {
    const found: string[] = [];
    for (let at = 0; at < body.length;) {
      const { count, hashes, consumed } = this.#kernel.scan(body.subarray(at, at + MAX_CHUNK));
      for (let i = 0; i < count; i++) found.push(toHex(hashes.subarray(32 * i, 32 * i + 32)));
      if (consumed === 0) break;
      at += consumed;
    }
    return found;
  }
}

/** The entries of a body: one zstd frame that says its size, or the bytes themselves. */
async function decode({ encoding, body }: Incoming): Promise<Uint8Array> {
  if (encoding === undefined || encoding === 'identity') return body;
  if (encoding !== 'zstd') throw new Refusal('bad-encoding', 'zstd or identity');
  const descriptor = body[4] ?? 0;
  const hasSize = (descriptor & 0x20) !== 0 || descriptor >> 6 !== 0;
  if (Buffer.from(body.subarray(0, 4)).readUInt32LE() !== 0xfd2fb528 || !hasSize)
    throw new Refusal('bad-frame', 'not one frame with a content size');
  return new Uint8Array(await decompress(Buffer.from(body)));
}

function linesOf(body: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let start = 0, end = body.indexOf(10); end >= 0; start = end + 1, end = body.indexOf(10, start))
    lines.push(body.subarray(start, end));
  return lines;
}
