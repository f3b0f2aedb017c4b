import type { TransactionSql } from 'postgres';

/**
 * The log of a team as the rest of the vault sees it: queue a statement, ask for its receipt.
 *
 * Ingest, enrolment and incidents call it inside their own transaction, so that a fact and its statement are durable together or not
 * at all. Giving the statement an index, integrating and publishing it is the sequencer's work and happens after the commit. The class
 * is the provider token; `sequence/` holds the one implementation.
 */
export abstract class TeamLog {
  /** Inside the caller's transaction: queue a statement; returns its leaf id. The statement's `received` line is already in it. */
  abstract enqueue(tx: TransactionSql, team: string, statement: string): Promise<bigint>;
  /** The receipt's text once the leaf is published (the same bytes for ever), else undefined. */
  abstract receipt(team: string, leafId: bigint): Promise<string | undefined>;
  /** A receipt against the newest checkpoint; promises no equality between two calls. */
  abstract latestReceipt(team: string, leafId: bigint): Promise<string | undefined>;
  /** Resolves with the receipt as soon as the leaf is published, or with undefined when `ms` milliseconds have passed. */
  abstract published(team: string, leafId: bigint, ms: number): Promise<string | undefined>;
  /** The verifier key (vkey text) that signs the team's checkpoints now. */
  abstract vkey(team: string): Promise<string>;
  /** The origin of the team's log, `<vault name>/<team>`. */
  abstract origin(team: string): string;
}
