import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { Database } from '../db/database.js';

@Injectable()
export class Readiness implements BeforeApplicationShutdown {
  /** Written at shutdown only. */
  private leaving = false;

  constructor(private readonly db: Database) {}

  /** Why no segment should be sent here now; undefined when all is well. */
  async whyNot(): Promise<string | undefined> {
    if (this.leaving) return 'shutting down';
    const answer = this.db.sql`select 1`.then(
      () => undefined,
      () => 'the database does not answer',
    );
    const late = new Promise<string>((done) => setTimeout(() => done('the database does not answer'), 3_000).unref());
    return Promise.race([answer, late]);
  }

  /** Load balancers see it first, then connections are drained. */
  beforeApplicationShutdown(): void {
    this.leaving = true;
  }
}
