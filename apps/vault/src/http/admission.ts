import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { VaultConfig } from '../config.js';
import { Metrics } from '../health/metrics.js';
import { busy } from './problem.js';

/** How many segments may be in work at once. A body is up to 8 MiB and checking it is the processor's work: the rest is told to come again. */
@Injectable()
export class Admission {
  /** Written by admit and its release only. */
  private inWork = 0;

  constructor(
    private readonly config: VaultConfig,
    private readonly metrics: Metrics,
  ) {}

  /**
   * Takes a place until the segment is stored (`release`), the answer is sent or the connection is gone; throws `busy` when there is none.
   * Waiting for a receipt costs nothing and holds no place.
   */
  admit(request: FastifyRequest, reply: FastifyReply): void {
    if (this.inWork >= this.config.maxIngests) throw busy('as many segments are in work as this vault takes at once');
    this.change(1);
    let held = true;
    request.releasePlace = () => {
      if (held) this.change(-1);
      held = false;
    };
    reply.raw.once('close', request.releasePlace);
  }

  private change(by: number): void {
    this.inWork += by;
    this.metrics.ingesting.set(this.inWork);
  }
}
