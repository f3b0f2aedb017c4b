import { Inject, Injectable } from '@nestjs/common';
import { formatTime } from '@nd7/entry';
import { formatStatement } from '@nd7/receipt';
import { claimItem, decodeClaimHeaders, type SignedClaim } from '@nd7/segment';
import { verifySignatures } from '@nd7/signing';
import { Bodies } from '../bodies/bodies.js';
import { DataKeys } from '../bodies/data-keys.js';
import { sealBody } from '../bodies/sealing.js';
import { Database } from '../db/database.js';
import { Metrics } from '../health/metrics.js';
import { busy, Problem } from '../http/problem.js';
import type { MachineIdentity } from '../http/request.js';
import { TeamLog } from '../log/team-log.js';
import { CLOCK, RANDOM, type Clock, type Random } from '../ports.js';
import { segmentOf } from './check.js';
import { Checkers } from './checkers.js';
import { Conflicts } from './conflicts.js';
import { bufferOf } from './frame.js';
import { decide, type Decision, type HeldSession, type StoredSegment } from './decide.js';
import type { Examined } from './examine.js';
import { IngestStore } from './ingest.store.js';
import { Room } from './room.js';

/** How long an accepted segment's answer waits for the receipt, in milliseconds. */
const WAIT_FOR_RECEIPT = 2_000;
/** How often a segment is looked at again because another replica moved the head meanwhile. */
const TRIES = 5;

/** Segments that are refused, whose entries are looked at all the same, at once: each has up to 8 MiB. Good ones are counted by the checkers. */
const REFUSED = 4;

export interface SegmentRequest {
  machine: MachineIdentity;
  session: string;
  from: number;
  encoding: string | undefined;
  claim: string | undefined;
  signature: string | undefined;
  body: Buffer;
  /** Called once the segment is stored: what follows only waits. */
  stored?: () => void;
}

/** What a segment became. `receipt` undefined: durable, not yet published. */
export interface Accepted {
  isNew: boolean;
  receipt: string | undefined;
}

/** A segment that goes on where the vault is, and whose bytes check out. */
interface NextSegment {
  is: 'next';
  claim: SignedClaim;
  frame: Buffer;
  /** Of the entries. */
  bytes: number;
  examined: Examined;
}

type Checked = NextSegment | { is: 'same'; stored: StoredSegment };

/** Where a segment's claim puts it. */
interface Place {
  claim: SignedClaim;
  held: HeldSession | undefined;
  decision: Decision;
}

/**
 * Takes segments. The order of the checks is the format's, and every refusal is one row of PROBLEMS: body size and encoding, the claim by
 * itself, the claim against what is held, then the bytes themselves.
 */
@Injectable()
export class IngestService {
  private readonly refusals = new Room(REFUSED);

  constructor(
    private readonly db: Database,
    private readonly store: IngestStore,
    private readonly log: TeamLog,
    private readonly bodies: Bodies,
    private readonly keys: DataKeys,
    private readonly checkers: Checkers,
    private readonly conflicts: Conflicts,
    private readonly metrics: Metrics,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  async ingest(request: SegmentRequest): Promise<Accepted> {
    try {
      const accepted = await this.decideAndKeep(request);
      this.metrics.segments.inc({ answer: accepted.isNew ? 'new' : 'same' });
      return accepted;
    } catch (error) {
      this.metrics.segments.inc({ answer: error instanceof Problem ? error.code : 'internal' });
      throw error;
    }
  }

  private async decideAndKeep(request: SegmentRequest): Promise<Accepted> {
    const { team } = request.machine;
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const kept = this.metrics.ingestSeconds.startTimer();
      const checked = await this.check(request);
      if (checked.is === 'same') return { isNew: false, receipt: await this.log.receipt(team, checked.stored.leafId) };
      const leafId = await this.keep(team, checked);
      if (leafId === undefined) continue; // another replica moved the head: look again
      kept();
      request.stored?.();
      this.metrics.took(checked.examined.index.counts, checked.bytes);
      const published = this.metrics.receiptSeconds.startTimer();
      const receipt = await this.log.published(team, leafId, WAIT_FOR_RECEIPT);
      if (receipt !== undefined) published();
      return { isNew: true, receipt };
    }
    throw busy('other requests keep moving this session; send the segment again');
  }

  /**
   * Everything that has to be known of the entries, so that they can be let go. Throws the refusal of what is neither next nor held already. What the claim
   * says is looked at first, for it says what the bytes must go on from, and told after what is wrong with the body: the order of refusals is the format's.
   */
  private async check(request: SegmentRequest): Promise<Checked> {
    const place = await this.place(request).catch((error: unknown) => ({ error }));
    if ('error' in place || (place.decision.is !== 'next' && place.decision.is !== 'same'))
      return this.refusals.use(() => this.refuse(request, place));
    const { claim, held, decision } = place;
    const { body, encoding } = request;
    // The identity of a segment is of its bytes: those of a held one are checked again before a receipt is given for them.
    const keyBefore = decision.is === 'same' ? decision.stored.keyBefore : (held?.key ?? null);
    const { bytes, examined, frame } = await this.checkers.check({ body, encoding, claim, keyBefore });
    return decision.is === 'same'
      ? decision
      : { is: 'next', claim, frame: frame === undefined ? body : bufferOf(frame), bytes, examined };
  }

  /** The claim, and what it means against what is held. */
  private async place(request: SegmentRequest): Promise<Place> {
    const claim = await this.readClaim(request);
    const { held, touching } = await this.store.standing(request.machine.team, claim);
    return { claim, held, decision: decide(claim, held, touching) };
  }

  /** Throws what the request is refused with. */
  private async refuse(request: SegmentRequest, place: Place | { error: unknown }): Promise<never> {
    const entries = await segmentOf(request.body, request.encoding);
    if ('error' in place) throw place.error;
    const { claim, held, decision } = place;
    const { team } = request.machine;
    const next = held?.entries ?? 0;
    switch (decision.is) {
      case 'fork':
        throw await this.conflicts.fork(team, claim, entries.frame, decision.count, decision.stored, next);
      case 'after-fork':
        throw new Problem('fork', 'this session forked: its recorder goes on in a new one', { next });
      case 'overlap':
        throw await this.conflicts.overlap(team, claim, entries, next);
      default:
        throw new Problem(
          'gap',
          `the vault holds ${String(next)} entries of this session, the segment begins at ${String(claim.from)}`,
          { next },
        );
    }
  }

  /** The claim by itself. The body is not consulted. */
  private async readClaim(request: SegmentRequest): Promise<SignedClaim> {
    const { machine, session, from } = request;
    if (request.claim === undefined || request.signature === undefined)
      throw new Problem('bad-claim', 'the headers nd7-claim and nd7-signature carry the claim');
    const claim = decodeClaimHeaders(request.claim, request.signature);
    if (claim === undefined)
      throw new Problem(
        'bad-claim',
        'nd7-claim is not the base64 of the lines origin to head, or nd7-signature not of 64 bytes',
      );
    const wrong = (what: string): Problem => new Problem('bad-claim', `the claim’s ${what}`);
    if (claim.origin !== this.log.origin(machine.team)) throw wrong(`origin is not ${this.log.origin(machine.team)}`);
    if (claim.machine !== machine.machine) throw wrong('machine is not the token’s');
    if (claim.session !== session) throw wrong('session is not the route’s');
    if (claim.from !== from) throw wrong('from is not the route’s');
    const [good] = await verifySignatures([claimItem(claim)]);
    if (good !== true) throw wrong('signature is not by the machine key');
    return claim;
  }

  /** Body, statement and head in one transaction; undefined when the head moved meanwhile. */
  private async keep(team: string, { claim, frame, bytes, examined }: NextSegment): Promise<bigint | undefined> {
    const place = {
      team,
      machine: claim.machine,
      session: claim.session,
      from: claim.from,
      to: claim.to,
      head: claim.head,
    };
    // Only the first segment makes the session's key: a session whose key is gone was erased, and stays so.
    const key = await this.keys.of(place, claim.from === 0);
    if (key === undefined) throw new Problem('not-found', 'this session was erased');
    const sealed = sealBody(key, frame, place, this.random);
    const received = this.clock.now();
    try {
      return await this.db.tenant(team, async (tx) => {
        const body = await this.bodies.put(tx, team, sealed);
        const leafId = await this.log.enqueue(
          tx,
          team,
          formatStatement({ type: 'head', ...claim, received: formatTime(received) }),
        );
        const outcome = await this.store.take(tx, {
          claim,
          ...examined,
          received: new Date(received),
          leafId,
          body,
          bytes,
        });
        if (outcome !== 'stored') throw new NotTaken(outcome);
        return leafId;
      });
    } catch (error) {
      if (!(error instanceof NotTaken)) throw error;
      if (error.outcome === 'revoked') throw new Problem('revoked', 'this machine was revoked while it shipped');
      return undefined;
    }
  }
}

/** Rolls the transaction back. */
class NotTaken extends Error {
  constructor(readonly outcome: 'moved' | 'revoked') {
    super(outcome);
  }
}
