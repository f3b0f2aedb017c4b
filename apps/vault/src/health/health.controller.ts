import { Controller, Get, Req, Res } from '@nestjs/common';
import { timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { VaultConfig } from '../config.js';
import { Readiness } from './readiness.js';
import { Metrics } from './metrics.js';

/** For load balancers, orchestrators and Prometheus. */
@Controller()
export class HealthController {
  constructor(
    private readonly config: VaultConfig,
    private readonly metrics: Metrics,
    private readonly readiness: Readiness,
  ) {}

  /** The process answers. Nothing else is looked at: a restart mends no database. */
  @Get('healthz')
  health(): { status: string } {
    return { status: 'ok' };
  }

  /** The vault can take segments: the database answers and has its guards, and it is not shutting down. */
  @Get('readyz')
  async ready(
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<{ status: string; why?: string; read_only_logs?: number }> {
    const why = await this.readiness.whyNot();
    const logs = this.readiness.readOnlyLogs;
    const rest = logs === 0 ? {} : { read_only_logs: logs };
    if (why === undefined) return { status: 'ok', ...rest };
    void reply.status(503);
    return { status: 'not ready', why, ...rest };
  }

  @Get('metrics')
  async scrape(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (!this.mayScrape(request.headers.authorization)) {
      void reply.status(401).header('www-authenticate', 'Bearer').send();
      return;
    }
    void reply.header('content-type', this.metrics.registry.contentType).send(await this.metrics.registry.metrics());
  }

  private mayScrape(authorization: string | undefined): boolean {
    const wanted = this.config.metricsToken;
    if (wanted === undefined) return true;
    const [a, b] = [Buffer.from(authorization ?? ''), Buffer.from(`Bearer ${wanted}`)];
    return a.length === b.length && timingSafeEqual(a, b);
  }
}
