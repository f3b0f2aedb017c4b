import { Inject, Injectable } from '@nestjs/common';
import { formatTime, fromHex } from '@nd7/entry';
import { formatStatement } from '@nd7/receipt';
import { closeMessage, openMessage } from '@nd7/segment';
import { verifySignatures } from '@nd7/signing';
import type { CloseRequest, OpenRequest } from '@nd7/vault-api';
import type { TransactionSql } from 'postgres';
import { Database } from '../db/database.js';
import { Problem } from '../http/problem.js';
import type { MachineIdentity } from '../http/request.js';
import { IncidentStore } from '../incidents/incident.store.js';
import { IngestStore } from '../ingest/ingest.store.js';
import type { Accepted } from '../ingest/ingest.service.js';
import { TeamLog } from '../log/team-log.js';
import { CLOCK, RANDOM, type Clock, type Random } from '../ports.js';
import { SessionStore } from './session.store.js';

const WAIT_FOR_RECEIPT = 2_000;

interface Stated {
  type: 'open' | 'close';
  session: string;
  entries: number;
  head: string;
  key: string | null;
  reason: string;
  signature: string;
  message: Uint8Array;
  text(received: string): string;
}

/** A machine's word that a session began or ended. It speaks of a count the vault holds, and of the vault's own hash there. */
@Injectable()
export class SessionService {
  constructor(
    private readonly db: Database,
    private readonly store: SessionStore,
    private readonly ingest: IngestStore,
    private readonly incidents: IncidentStore,
    private readonly log: TeamLog,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  open({ team, machine }: MachineIdentity, session: string, request: OpenRequest): Promise<Accepted> {
    const claim = {
      origin: this.log.origin(team),
      machine,
      session,
      entries: request.entries,
      head: request.head,
      key: request.key,
    };
    return this.state(team, machine, {
      type: 'open',
      session,
      ...request,
      reason: '',
      message: openMessage(claim),
      text: (received) => formatStatement({ type: 'open', ...claim, received, signature: request.signature }),
    });
  }

  close({ team, machine }: MachineIdentity, session: string, request: CloseRequest): Promise<Accepted> {
    const claim = {
      origin: this.log.origin(team),
      machine,
      session,
      entries: request.entries,
      head: request.head,
      reason: request.reason,
    };
    return this.state(team, machine, {
      type: 'close',
      session,
      ...request,
      key: null,
      message: closeMessage(claim),
      text: (received) => formatStatement({ type: 'close', ...claim, received, signature: request.signature }),
    });
  }

  private async state(team: string, machine: string, stated: Stated): Promise<Accepted> {
    const key = fromHex(machine) ?? new Uint8Array(0);
    const [good] = await verifySignatures([
      { key, message: stated.message, signature: Buffer.from(stated.signature, 'base64') },
    ]);
    if (good !== true)
      throw new Problem('bad-claim', `the signature is not by the machine key over the ${stated.type} text`);
    const { session, type, entries, reason } = stated;
    const outcome = await this.db
      .tenant(team, async (tx) => {
        const same = await this.store.statement(tx, machine, session, type, entries, reason);
        if (same !== undefined && same.head === stated.head && same.key === stated.key)
          return { isNew: false, leafId: same.leafId };
        if (!(await this.ingest.stands(tx, machine, new Date(this.clock.now()))))
          throw new Problem('revoked', 'this machine was revoked a moment ago');
        const refusal = await this.check(tx, team, machine, stated);
        if (refusal !== undefined) return { refusal };
        const received = this.clock.now();
        const leafId = await this.log.enqueue(tx, team, stated.text(formatTime(received)));
        const added = await this.store.addStatement(tx, {
          team,
          machine,
          ...stated,
          received: new Date(received),
          leafId,
        });
        if (added) return { isNew: true, leafId };
        throw new AlreadyStated();
      })
      .catch((error: unknown) => {
        if (error instanceof AlreadyStated) return undefined;
        throw error;
      });
    if (outcome === undefined) return this.state(team, machine, stated); // another replica stated it a moment ago
    if (outcome.refusal !== undefined) throw outcome.refusal;
    const receipt = outcome.isNew
      ? await this.log.published(team, outcome.leafId, WAIT_FOR_RECEIPT)
      : await this.log.receipt(team, outcome.leafId);
    return { isNew: outcome.isNew, receipt };
  }

  /** Why the statement is not taken; a disagreement is an incident besides. */
  private async check(tx: TransactionSql, team: string, machine: string, stated: Stated): Promise<Problem | undefined> {
    const { session, entries } = stated;
    const held = await this.ingest.held(tx, machine, session);
    const next = held?.entries ?? 0;
    if (held === undefined || entries > next)
      return new Problem('gap', `the vault holds ${String(next)} entries of this session: ship first`, { next });
    if (held.forked) return new Problem('fork', 'this session forked: the vault has closed it', { next });
    const head = entries === next ? held.head : await this.store.headAt(tx, machine, session, entries);
    if (head === undefined)
      return new Problem('gap', 'state a session at the end of a segment that the vault holds', { next });
    const wrongKey = stated.key !== null && stated.key !== held.firstKey;
    if (head === stated.head && !wrongKey) return undefined;
    await this.incidents.add(
      tx,
      { team, kind: 'disagrees', machine, session, count: entries, at: new Date(this.clock.now()) },
      this.random,
    );
    const what = wrongKey
      ? 'names another first key than the one that is pinned'
      : 'names another head than the vault holds';
    return new Problem('disagrees', `the statement ${what}; an incident was raised`, { next });
  }
}

class AlreadyStated extends Error {}
