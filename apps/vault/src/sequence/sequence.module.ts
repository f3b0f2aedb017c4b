import { Inject, Injectable, Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Sql } from 'postgres';
import { VaultConfig } from '../config.js';
import { connect, Database } from '../db/database.js';
import { Metrics } from '../health/metrics.js';
import { Log } from '../log/log.js';
import { TeamLog } from '../log/team-log.js';
import { EmbeddedSigner } from '../signer/embedded.js';
import type { CheckpointSigner } from '../signer/signer.js';
import { SignerClient } from '../signer/socket-client.js';
import { LogController } from '../tiles/log.controller.js';
import { TileReader } from '../tiles/tile-reader.js';
import { TilesController } from '../tiles/tiles.controller.js';
import { LogMetrics } from './metrics.js';
import { Sequencer, type SequencerEvents } from './sequencer.js';
import { SqlTeamLog } from './sql-team-log.js';
import type { Round } from './team-sequencer.js';
import { Wakes } from './wakes.js';

/** The signer, as a provider token: an interface has none. */
export const SIGNER = Symbol('signer');
/** The one connection that holds the advisory locks for as long as the process leads. */
const LOCK_SQL = Symbol('connection that holds the locks');

/** Starts the sequencer when the service is up and lets its rounds end when it goes down. */
@Injectable()
class SequencerLife implements OnApplicationBootstrap, OnApplicationShutdown {
  constructor(
    private readonly sequencer: Sequencer,
    private readonly wakes: Wakes,
    @Inject(SIGNER) private readonly signer: CheckpointSigner,
    @Inject(LOCK_SQL) private readonly lockSql: Sql,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.sequencer.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.sequencer.stop();
    await this.wakes.close();
    await this.signer.close();
    await this.lockSql.end({ timeout: 5 });
  }
}

/**
 * The log of each team: TeamLog for the rest of the vault, tiles for the world. Without a signer socket the signer is in this process, which
 * then holds the signer's folder: a second replica on the same folder does not start, it has to share a `nd7-vault signer`.
 */
@Module({
  controllers: [TilesController, LogController],
  providers: [
    {
      provide: SIGNER,
      inject: [VaultConfig],
      useFactory: (config: VaultConfig): CheckpointSigner =>
        config.signerSocket === undefined
          ? EmbeddedSigner.open(config.signerState)
          : new SignerClient(config.signerSocket),
    },
    {
      provide: LOCK_SQL,
      inject: [VaultConfig],
      useFactory: (config: VaultConfig): Sql => connect(config.databaseUrl, { max: 1, role: 'nd7_app' }),
    },
    { provide: Wakes, inject: [Database], useFactory: ({ sql }: Database) => new Wakes(sql) },
    { provide: LogMetrics, inject: [Metrics], useFactory: ({ registry }: Metrics) => new LogMetrics(registry) },
    {
      provide: Sequencer,
      inject: [VaultConfig, Database, LOCK_SQL, SIGNER, Wakes, LogMetrics, Log],
      useFactory: (
        config: VaultConfig,
        db: Database,
        lockSql: Sql,
        signer: CheckpointSigner,
        wakes: Wakes,
        metrics: LogMetrics,
        log: Log,
      ) =>
        new Sequencer({
          sql: db.sql,
          lockSql,
          db,
          signer,
          wakes,
          vaultName: config.name,
          events: eventsOf(metrics, log),
        }),
    },
    {
      provide: SqlTeamLog,
      inject: [VaultConfig, Database, SIGNER, Wakes, Sequencer],
      useFactory: (config: VaultConfig, db: Database, signer: CheckpointSigner, wakes: Wakes, sequencer: Sequencer) =>
        new SqlTeamLog({ db, signer, wakes, sequencer, vaultName: config.name }),
    },
    { provide: TeamLog, useExisting: SqlTeamLog },
    { provide: TileReader, inject: [Database], useFactory: (db: Database) => new TileReader(db) },
    SequencerLife,
  ],
  exports: [TeamLog, SqlTeamLog, SIGNER],
})
export class SequenceModule {}

/** Metrics count everything; the log gets what an operator has to know, once per change and not once per round. */
function eventsOf(metrics: LogMetrics, log: Log): SequencerEvents {
  const last = new Map<string, Round['what']>();
  return {
    step: (team, step, detail) => {
      metrics.step(team, step, detail);
    },
    round: (team, round) => {
      metrics.round(team, round);
      const before = last.get(team);
      last.set(team, round.what);
      if (before === round.what) return;
      if (round.what === 'read-only')
        log.error('log is read-only until a person decides', { team, reason: round.message });
      else if (round.what === 'held') log.warn('log waits for its signer', { team, reason: round.message });
      else if (round.what === 'deposed') log.info('another process leads the log', { team, reason: round.message });
      else if (before === 'read-only' || before === 'held') log.info('log goes on', { team });
    },
    failed: (team, error) => {
      metrics.failed();
      log.error('a round of the sequencer failed and is tried again', { ...(team === '' ? {} : { team }), error });
    },
  };
}
