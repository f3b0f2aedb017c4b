import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { AccessStore } from '../access/access.store.js';
import { Log } from '../log/log.js';

const EVERY = 5 * 60_000;

/** Forgets nonces that no request can carry any more. Each replica does it; together they do it once. */
@Injectable()
export class Housekeeping implements OnApplicationBootstrap, OnApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly access: AccessStore,
    private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.tidy(), EVERY);
    this.timer.unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  private async tidy(): Promise<void> {
    try {
      await this.access.forgetNonces();
    } catch (error) {
      this.log.warn('nonces could not be forgotten', { error });
    }
  }
}
