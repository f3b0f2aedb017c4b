import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
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

  /** Takes a place until the answer is sent or the connection is gone; throws `busy` when there is none. */
  admit(reply: FastifyReply): void {
    if (this.inWork >= this.config.maxIngests) throw busy('as many segments are in work as this vault takes at once');
    this.change(1);
    reply.raw.once('close', () => this.change(-1));
  }

  private change(by: number): void {
    this.inWork += by;
    this.metrics.ingesting.set(this.inWork);
  }
}
