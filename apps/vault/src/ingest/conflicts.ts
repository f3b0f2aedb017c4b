import { Inject, Injectable } from '@nestjs/common';
import { formatTime } from '@nd7/entry';
import { formatStatement, type ForkClaim } from '@nd7/receipt';
import type { SignedClaim } from '@nd7/segment';
import type { TransactionSql } from 'postgres';
import { Bodies, bodyName } from '../bodies/bodies.js';
import { DataKeys } from '../bodies/data-keys.js';
import { BodyReader } from '../bodies/reader.js';
import { sealBody } from '../bodies/sealing.js';
import { Database } from '../db/database.js';
import { Metrics } from '../health/metrics.js';
import { Problem } from '../http/problem.js';
import { IncidentStore } from '../incidents/incident.store.js';
import { TeamLog } from '../log/team-log.js';
import { CLOCK, RANDOM, type Clock, type Random } from '../ports.js';
import { comparedCounts, firstDisagreement, lineHashes } from './compare.js';
import type { StoredSegment } from './decide.js';
import { frameContentSize, inflate, type Entries } from './frame.js';
import { IngestStore } from './ingest.store.js';
import { Kernel } from './kernel.js';

/** Claims kept as evidence per session. A machine that goes on forking convicts itself no further, and must not fill the database. */
const MAX_EVIDENCE = 256;

/** What happens to a segment that does not go on where the vault is. Each method gives the refusal to answer with. */
@Injectable()
export class Conflicts {
  constructor(
    private readonly db: Database,
    private readonly store: IngestStore,
    private readonly incidents: IncidentStore,
    private readonly log: TeamLog,
    private readonly bodies: Bodies,
    private readonly keys: DataKeys,
    private readonly reader: BodyReader,
    private readonly kernel: Kernel,
    private readonly metrics: Metrics,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  /** Two claims convict; the new one is kept with its unverified body, stated once in the log, and closes the session. */
  async fork(
    team: string,
    claim: SignedClaim,
    frame: Buffer,
    count: number,
    stored: StoredSegment,
    next: number,
  ): Promise<Problem> {
    const refusal = new Problem(
      'fork',
      `the machine signed another hash for ${String(count)} entries of this session before; both claims are kept as evidence`,
      { next },
    );
    const sealed = await this.seal(team, claim, frame);
    const now = this.clock.now();
    await this.db.tenant(team, async (tx) => {
      if (!(await this.store.stands(tx, claim.machine, new Date(now))))
        throw new Problem('revoked', 'this machine was revoked while it shipped');
      const evidence = await this.keepEvidence(tx, team, claim, sealed, now);
      if (evidence === undefined) return;
      this.metrics.forks.inc();
      const received = formatTime(now);
      const { origin, machine, session } = claim;
      const claims: [ForkClaim, ForkClaim] = [forkClaim(stored.claim), forkClaim(claim)];
      const leafId = await this.log.enqueue(
        tx,
        team,
        formatStatement({ type: 'fork', origin, machine, session, count, claims, received }),
      );
      await this.incidents.addFork(tx, {
        team,
        machine,
        session,
        count,
        from: stored.claim.from,
        evidence,
        leafId,
        at: new Date(now),
      });
      if (await this.incidents.markForked(tx, machine, session, new Date(now))) {
        const held = await this.store.held(tx, machine, session);
        if (held === undefined) return;
        const { entries, head } = held;
        const closing = await this.log.enqueue(
          tx,
          team,
          formatStatement({ type: 'close', origin, machine, session, entries, head, reason: 'forked', received }),
        );
        await this.incidents.addClose(tx, {
          team,
          machine,
          session,
          entries,
          head,
          reason: 'forked',
          at: new Date(now),
          leafId: closing,
        });
      }
      await this.incidents.add(
        tx,
        { team, kind: 'fork', machine, session, count, evidence, leafId, at: new Date(now) },
        this.random,
      );
    });
    return refusal;
  }

  /** The segment begins before the vault's count: held against the stored bytes, entry by entry. */
  async overlap(team: string, claim: SignedClaim, entries: Entries, next: number): Promise<Problem> {
    const body = await this.kernel.use((kernel) => lineHashes(entries.plain, kernel));
    const counts = comparedCounts(claim, body.length, next);
    const stored = await this.storedHashes(team, claim, counts);
    const count = firstDisagreement(claim, body, counts, (at) => stored.get(at));
    if (count === undefined)
      return new Problem(
        'overlap',
        `the vault holds ${String(next)} entries of this session and this agrees with them: go on from there`,
        { next },
      );
    const sealed = await this.seal(team, claim, entries.frame);
    const now = this.clock.now();
    await this.db.tenant(team, async (tx) => {
      const evidence = await this.keepEvidence(tx, team, claim, sealed, now);
      if (evidence === undefined) return;
      const { machine, session } = claim;
      await this.incidents.add(
        tx,
        { team, kind: 'disagrees', machine, session, count, evidence, at: new Date(now) },
        this.random,
      );
    });
    return new Problem(
      'disagrees',
      `this disagrees with what the vault holds after ${String(count)} entries; it is kept as evidence`,
      { next },
    );
  }

  /** The stored hash after each of some counts, as far as the bodies that hold them can be opened; one body in memory at a time. */
  private async storedHashes(
    team: string,
    claim: SignedClaim,
    counts: readonly number[],
  ): Promise<Map<number, string>> {
    const wanted = new Set(counts);
    const hashes = new Map<number, string>();
    const { machine, session } = claim;
    // The hash after n entries is the hash of entry n - 1. The claim's end may lie far behind the rest: it is looked for by itself.
    const last = counts.at(-1) ?? claim.from;
    const run = Math.max(...counts.filter((count, i) => count === claim.from + i), claim.from);
    const ranges = [[Math.max(claim.from - 1, 0), run], ...(last > run ? [[last - 1, last]] : [])] as const;
    for (const [from, to] of ranges) {
      for (const one of await this.store.bodiesOf(team, machine, session, from, to)) {
        if (wanted.has(one.to)) hashes.set(one.to, one.head);
        const opened = await this.reader.open(
          { team, machine, session, from: one.from, to: one.to, head: one.head },
          one.body,
        );
        if ('gone' in opened) continue;
        const plain = await inflate(opened.frame, frameContentSize(opened.frame) as number);
        const lines = await this.kernel.use((kernel) => lineHashes(plain, kernel));
        lines.forEach((hash, i) => {
          if (wanted.has(one.from + i + 1)) hashes.set(one.from + i + 1, hash);
        });
      }
    }
    return hashes;
  }

  private async seal(team: string, claim: SignedClaim, frame: Buffer): Promise<Buffer | undefined> {
    const place = {
      team,
      machine: claim.machine,
      session: claim.session,
      from: claim.from,
      to: claim.to,
      head: claim.head,
    };
    const key = await this.keys.of(place, false); // an erased session’s evidence is its claim
    return key === undefined ? undefined : sealBody(key, frame, place, this.random);
  }

  /** Undefined when this very claim is kept already, or enough is. */
  private async keepEvidence(
    tx: TransactionSql,
    team: string,
    claim: SignedClaim,
    sealed: Buffer | undefined,
    now: number,
  ): Promise<bigint | undefined> {
    if ((await this.incidents.countEvidence(tx, claim.machine, claim.session)) >= MAX_EVIDENCE) return undefined;
    const id = await this.incidents.addEvidence(
      tx,
      team,
      claim,
      sealed === undefined ? null : bodyName(sealed),
      new Date(now),
    );
    if (id !== undefined && sealed !== undefined) await this.bodies.put(tx, team, sealed);
    return id;
  }
}

function forkClaim({ from, to, prev, head, signature }: SignedClaim): ForkClaim {
  return { from, to, prev, head, signature };
}
