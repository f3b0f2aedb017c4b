import { Global, Module, type DynamicModule } from '@nestjs/common';
import { systemClock, systemRandom } from '@nd7/signing';
import { Access } from './access/access.js';
import { AccessStore } from './access/access.store.js';
import { SignInController } from './access/sign-in.controller.js';
import { Bodies, PostgresBodies } from './bodies/bodies.js';
import { DataKeys } from './bodies/data-keys.js';
import { BodyReader } from './bodies/reader.js';
import { VaultConfig } from './config.js';
import { Database } from './db/database.js';
import { EnrolController } from './enrol/enrol.controller.js';
import { EnrolService } from './enrol/enrol.service.js';
import { EnrolStore } from './enrol/enrol.store.js';
import { HealthController } from './health/health.controller.js';
import { Metrics } from './health/metrics.js';
import { Readiness } from './health/readiness.js';
import { Admission } from './http/admission.js';
import { OpenApiController } from './http/openapi.controller.js';
import { IncidentStore } from './incidents/incident.store.js';
import { Checkers } from './ingest/checkers.js';
import { Conflicts } from './ingest/conflicts.js';
import { IngestController } from './ingest/ingest.controller.js';
import { IngestService } from './ingest/ingest.service.js';
import { IngestStore } from './ingest/ingest.store.js';
import { Kernel } from './ingest/kernel.js';
import { Log } from './log/log.js';
import { HeartbeatController, HeartbeatStore } from './machines/heartbeat.js';
import { TeamPolicyController, TeamPolicyStore } from './machines/team-policy.js';
import { CLOCK, RANDOM, type Clock, type Random } from './ports.js';
import { Housekeeping } from './health/housekeeping.js';
import { IncidentListStore } from './readers/incident-list.store.js';
import { MachineListStore } from './readers/machine-list.store.js';
import { ReaderController } from './readers/reader.controller.js';
import { SessionListStore } from './readers/session-list.store.js';
import { SequenceModule } from './sequence/sequence.module.js';
import { SessionController } from './sessions/session.controller.js';
import { SessionService } from './sessions/session.service.js';
import { SessionStore } from './sessions/session.store.js';
import { Watch } from './watch/watch.js';

/** What the vault is given from outside. */
export interface VaultParts {
  config: VaultConfig;
  log: Log;
  clock?: Clock;
  random?: Random;
}

/** Configuration, log, database, clock, metrics: what every other module stands on. */
@Global()
@Module({})
class PlatformModule {
  static of(parts: VaultParts): DynamicModule {
    const given = [VaultConfig, Log, CLOCK, RANDOM, Database, Metrics];
    return {
      module: PlatformModule,
      providers: [
        { provide: VaultConfig, useValue: parts.config },
        { provide: Log, useValue: parts.log },
        { provide: CLOCK, useValue: parts.clock ?? systemClock },
        { provide: RANDOM, useValue: parts.random ?? systemRandom },
        { provide: Database, useFactory: () => new Database(parts.config) },
        Metrics,
      ],
      exports: given,
    };
  }
}

/** Who calls. Global, because every route of the contract asks it. */
@Global()
@Module({ providers: [Access, AccessStore, Admission], exports: [Access, AccessStore, Admission] })
class AccessModule {}

/** Sealed bodies, and the keys that open them. */
@Module({
  providers: [{ provide: Bodies, useClass: PostgresBodies }, DataKeys, BodyReader],
  exports: [Bodies, DataKeys, BodyReader],
})
class BodiesModule {}

/** What machines send: enrolment, segments, statements about sessions, heartbeats. */
@Module({
  imports: [SequenceModule, BodiesModule],
  controllers: [EnrolController, IngestController, SessionController, HeartbeatController, TeamPolicyController],
  providers: [
    EnrolService,
    EnrolStore,
    IngestService,
    IngestStore,
    Conflicts,
    Checkers,
    Kernel,
    IncidentStore,
    SessionService,
    SessionStore,
    HeartbeatStore,
    TeamPolicyStore,
  ],
})
class MachinesModule {}

/** What readers see. */
@Module({
  imports: [SequenceModule, BodiesModule],
  controllers: [SignInController, ReaderController],
  providers: [SessionListStore, MachineListStore, IncidentListStore],
})
class ReadersModule {}

@Module({
  controllers: [HealthController, OpenApiController],
  providers: [Readiness, Housekeeping],
  exports: [Readiness],
})
class HealthModule {}

/** What does not come. */
@Module({ imports: [SequenceModule, HealthModule], providers: [Watch, IncidentStore] })
class WatchModule {}

/** The whole service. */
@Module({})
export class VaultModule {
  static of(parts: VaultParts): DynamicModule {
    return {
      module: VaultModule,
      imports: [
        PlatformModule.of(parts),
        AccessModule,
        SequenceModule,
        MachinesModule,
        ReadersModule,
        WatchModule,
        HealthModule,
      ],
    };
  }
}
