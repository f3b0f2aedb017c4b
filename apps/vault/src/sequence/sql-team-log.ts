import { parseStatement } from '@nd7/receipt';
import { emptyRoot } from '@nd7/tlog';
import type { TransactionSql } from 'postgres';
import { TeamLog } from '../log/team-log.js';
import { readPublished, ReceiptReader, type PublishedHead } from '../receipts/receipt-reader.js';
import { describeHead, type CheckpointSigner, type TreeHead } from '../signer/signer.js';
import { LogError } from './log-error.js';
import type { Sequencer } from './sequencer.js';
import { SignedWatch } from './signed-watch.js';
import { holdsHead, readLogState, readVkeys, type TenantDatabase } from './tables.js';
import type { Wakes } from './wakes.js';

/** Whoever waits for a publication also looks by himself so often (ms): messages between replicas may be lost. */
const LOOK_EVERY = 250;

/** A log as operators and readers see it. */
export interface LogStatus {
  origin: string;
  /** Newest published checkpoint, undefined before the first. */
  published: PublishedHead | undefined;
  /** Why nothing can be written, naming both checkpoints; undefined when all is well. */
  readOnly: string | undefined;
}

export interface SqlTeamLogOptions {
  db: TenantDatabase;
  signer: CheckpointSigner;
  wakes: Wakes;
  sequencer: Pick<Sequencer, 'wake' | 'suspect'>;
  /** First half of the origins. */
  vaultName: string;
}

/** The log of each team in PostgreSQL. Stateless but for what it waits for: every replica gives the same answers. */
export class SqlTeamLog extends TeamLog {
  private readonly receipts: ReceiptReader;
  private readonly signed: SignedWatch;
  /** Leaves somebody waits for, by team: one statement looks for all of them. */
  private readonly looks = new Map<string, { ids: Set<bigint>; found: Promise<Map<bigint, string>> }>();

  constructor(private readonly options: SqlTeamLogOptions) {
    super();
    this.receipts = new ReceiptReader(options.db);
    this.signed = new SignedWatch(options.signer);
  }

  async enqueue(tx: TransactionSql, team: string, statement: string): Promise<bigint> {
    const origin = this.origin(team);
    const parsed = parseStatement(statement);
    if (parsed === undefined || parsed.type === 'unknown' || parsed.origin !== origin)
      throw new LogError(
        'bad-statement',
        `not a statement for log ${origin}: ${JSON.stringify(statement.slice(0, 200))}`,
      );
    const signed = await this.signed.head(origin);
    try {
      const [row] = await tx<{ id: string | null }[]>`
        select nd7.log_enqueue(${team}, ${statement}, ${String(signed?.size ?? 0)}::bigint, ${Buffer.from(signed?.root ?? emptyRoot)})::text as id`;
      if (row !== undefined && row.id !== null) return BigInt(row.id);
    } catch (error) {
      if ((error as { code?: unknown }).code === '23503')
        throw new LogError('unknown-log', `team ${team} has no log: run \`nd7-vault team create\` again`, {
          cause: error,
        });
      throw error;
    }
    // In the caller's own transaction: no refused request may need a second connection to say why it is refused.
    throw new LogError('log-read-only', await this.describe(tx, team, signed ?? { size: 0, root: emptyRoot }));
  }

  receipt(team: string, leafId: bigint): Promise<string | undefined> {
    return this.receipts.receipt(team, leafId);
  }

  latestReceipt(team: string, leafId: bigint): Promise<string | undefined> {
    return this.receipts.receipt(team, leafId, 'newest');
  }

  async published(team: string, leafId: bigint, ms: number): Promise<string | undefined> {
    const { sequencer, wakes } = this.options;
    const end = performance.now() + ms;
    sequencer.wake(team);
    for (;;) {
      // Listening begins before looking, so that no publication falls between the two.
      const rest = end - performance.now();
      const next = rest > 0 ? wakes.next(team, Math.min(rest, LOOK_EVERY)) : undefined;
      const receipt = (await this.look(team, leafId)).get(leafId);
      if (receipt !== undefined) return receipt;
      if (next === undefined) {
        void sequencer.suspect(team);
        return undefined;
      }
      await next;
    }
  }

  async vkey(team: string): Promise<string> {
    const vkey = (await this.vkeys(team)).at(-1);
    if (vkey === undefined) throw new LogError('unknown-log', `team ${team} has no log`);
    return vkey;
  }

  /** All verifier keys the log has had, oldest first: a reader of old receipts trusts them all. */
  vkeys(team: string): Promise<string[]> {
    return this.options.db.tenant(team, (tx) => readVkeys(tx, team));
  }

  origin(team: string): string {
    return `${this.options.vaultName}/${team}`;
  }

  async status(team: string): Promise<LogStatus> {
    const origin = this.origin(team);
    let signed: TreeHead | undefined;
    let lost: string | undefined;
    try {
      signed = await this.signed.head(origin);
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      lost = error.message;
    }
    return this.options.db.tenant(team, async (tx) => {
      const [published, holds] = [
        await readPublished(tx, team),
        signed === undefined || (await holdsHead(tx, team, signed)),
      ];
      const readOnly = lost ?? (signed === undefined || holds ? undefined : await this.describe(tx, team, signed));
      return { origin, published, readOnly };
    });
  }

  /** Both checkpoints by name, for the message of a read-only log. */
  private async describe(tx: TransactionSql, team: string, signed: TreeHead): Promise<string> {
    const { tip } = await readLogState(tx, team);
    const stored = tip ?? { size: 0, root: emptyRoot };
    return `log ${this.origin(team)} is read-only: the signer has signed ${describeHead(signed)}, the database holds ${describeHead(stored)}; it was restored or has lagged, see docs/operate.md`;
  }

  /** Looks for a leaf's receipt, together with all others of the team that are asked for in the same turn. */
  private look(team: string, leafId: bigint): Promise<Map<bigint, string>> {
    const open = this.looks.get(team);
    if (open !== undefined) {
      open.ids.add(leafId);
      return open.found;
    }
    const ids = new Set([leafId]);
    const found = new Promise<void>((turn) => setImmediate(turn)).then(() => {
      this.looks.delete(team);
      return this.receipts.receipts(team, [...ids]);
    });
    this.looks.set(team, { ids, found });
    return found;
  }
}
