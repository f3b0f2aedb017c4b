import type { Sql } from 'postgres';

/** A new leaf waits in some log (payload: team). Sent outside transactions: a NOTIFY inside one makes commits wait for each other. */
const WAKE = 'nd7_log_wake';
/** A checkpoint of a log was published (payload: team). */
const PUBLISHED = 'nd7_log';

/** A replica asks for a wake of the same log at most so often, in milliseconds. */
const WAKE_EVERY = 20;

/**
 * Tells within this process and between replicas that a leaf waits and that a checkpoint is out. Messages may be lost (a connection that
 * breaks, a pooler that does not carry LISTEN): everybody who waits for one also looks by himself now and then.
 */
export class Wakes {
  private readonly waiting = new Map<string, Set<() => void>>();
  private readonly sent = new Map<string, { again: boolean }>();
  private readonly stops: (() => Promise<void>)[] = [];

  constructor(private readonly sql: Sql) {}

  /** Begins to listen. `onWake` gets the team of a leaf that waits. */
  async listen(onWake: (team: string) => void): Promise<void> {
    const wake = await this.sql.listen(WAKE, onWake);
    const published = await this.sql.listen(PUBLISHED, (team) => {
      this.tell(team);
    });
    this.stops.push(
      () => wake.unlisten(),
      () => published.unlisten(),
    );
  }

  /** Tells other replicas that a leaf waits: at once, and again at the end of the interval for those that came in it. */
  send(team: string): void {
    const sent = this.sent.get(team);
    if (sent !== undefined) {
      sent.again = true;
      return;
    }
    const state = { again: false };
    this.sent.set(team, state);
    setTimeout(() => {
      this.sent.delete(team);
      if (state.again) this.send(team);
    }, WAKE_EVERY).unref();
    this.sql.notify(WAKE, team).catch(() => undefined); // the leader looks by itself as well
  }

  /** A checkpoint of this team is out. */
  tell(team: string): void {
    for (const done of this.waiting.get(team) ?? []) done();
  }

  /** Resolves at the next publication of the team, or after `ms`. */
  next(team: string, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.waiting.get(team) ?? new Set();
      this.waiting.set(team, waiting);
      const done = (): void => {
        clearTimeout(timer);
        waiting.delete(done);
        if (waiting.size === 0 && this.waiting.get(team) === waiting) this.waiting.delete(team);
        resolve();
      };
      const timer = setTimeout(done, ms);
      waiting.add(done);
    });
  }

  async close(): Promise<void> {
    for (const waiting of [...this.waiting.values()]) for (const done of [...waiting]) done();
    await Promise.allSettled(this.stops.splice(0).map((stop) => stop()));
  }
}
