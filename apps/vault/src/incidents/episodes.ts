import type { Seen } from '@nd7/vault-api';
import type { TransactionSql } from 'postgres';
import { newId } from '../access/tokens.js';
import type { Metrics } from '../health/metrics.js';
import type { Random } from '../ports.js';

/** Incidents that begin and end (docs/operate.md says when). */
export type SilenceKind = 'machine-quiet' | 'session-quiet' | 'session-unclosed' | 'tail-shrank' | 'clock-disagrees';

/** What an episode is about. Of each of these there is one at a time. */
export interface Subject {
  kind: SilenceKind;
  machine: string;
  session?: string;
}

/** By what an episode ended. */
export type Why =
  'heard' | 'slept' | 'revoked' | 'shipped' | 'closed' | 'resumed' | 'listed' | 'forked' | 'agrees' | 'regrown';

/**
 * The incidents of silence that one transaction raises and ends. An incident is a row that never changes, its end another one; nothing here
 * rests on who looks, or how often: what is raised already is not raised again, also not by two replicas at once (0301_silence.sql).
 */
export class Episodes {
  private readonly changes: { kind: SilenceKind; state: 'open' | 'over' }[] = [];

  constructor(
    private readonly tx: TransactionSql,
    private readonly team: string,
    /** The vault's clock. */
    private readonly now: Date,
    private readonly random: Random,
  ) {}

  /** Raises the next episode unless one is open: one statement, so that both are seen at one moment. */
  async begin(subject: Subject, seen: Seen, more: { count?: number; leafId?: bigint } = {}): Promise<void> {
    const { kind, machine, session = null } = subject;
    const rows = await this.tx`
      insert into nd7.incident (team, id, kind, machine, session, count, leaf_id, at, episode, seen)
      select ${this.team}, ${newId('i', this.random)}, ${kind}, ${machine}, ${session}, ${more.count ?? null},
        ${more.leafId === undefined ? null : String(more.leafId)}::bigint, ${this.now}, count(*), ${this.tx.json(seen)}
      from nd7.incident i where i.kind = ${kind} and i.machine = ${machine} and i.session is not distinct from ${session} and i.episode is not null
      having not exists (
        select from nd7.open_incident o
        where o.kind = ${kind} and o.machine = ${machine} and o.session is not distinct from ${session} and o.episode is not null
      )
      on conflict do nothing returning 1`;
    if (rows.length > 0) this.changes.push({ kind, state: 'open' });
  }

  /** Says that what was seen does not hold any more. */
  async end(incident: string, kind: SilenceKind, why: Why): Promise<void> {
    const rows = await this.tx`
      insert into nd7.incident_change (team, incident, state, why, at) values (${this.team}, ${incident}, 'over', ${why}, ${this.now})
      on conflict do nothing returning 1`;
    if (rows.length > 0) this.changes.push({ kind, state: 'over' });
  }

  /** To be called after the commit. */
  count(metrics: Metrics): void {
    for (const change of this.changes.splice(0)) metrics.incidents.inc({ ...change });
  }
}
