import { formatTime } from '@nd7/entry';

/** Something lost, as a gap entry tells it. */
export interface Lost {
  data: Record<string, unknown>;
  entries: number;
  reason: string;
  since: number;
  until: number;
  kinds: ReadonlyMap<string, number>;
}

/** Entries of one session that could not be written, until a gap entry has told of them. */
export class Losses {
  private entries = 0;
  private reason = '';
  private since = Infinity;
  private until = 0;
  private kinds = new Map<string, number>();

  get any(): boolean {
    return this.entries > 0;
  }

  /** Notes `count` lost entries; `reason` is a short word (an error code), `at` milliseconds. */
  add(reason: string, at: number, kind: string, count = 1): void {
    this.entries += count;
    this.reason = reason;
    this.since = Math.min(this.since, at);
    this.until = Math.max(this.until, at);
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + count);
  }

  /** Takes back one entry noted as lost that could be written after all. */
  withdraw(kind: string): void {
    const count = this.kinds.get(kind) ?? 0;
    if (count === 0) return;
    this.entries--;
    if (count === 1) this.kinds.delete(kind);
    else this.kinds.set(kind, count - 1);
    if (this.entries === 0) this.clear();
  }

  /** What is to be told now; whoever fails to write it puts it back. Undefined when nothing is lost. */
  take(): Lost | undefined {
    if (this.entries === 0) return undefined;
    const { entries, reason, since, until, kinds } = this;
    const data = {
      reason,
      entries,
      since: formatTime(since),
      until: formatTime(until),
      kinds: Object.fromEntries(kinds),
    };
    this.clear();
    return { data, entries, reason, since, until, kinds };
  }

  putBack(lost: Lost): void {
    for (const [kind, count] of lost.kinds) this.add(lost.reason, lost.since, kind, count);
    this.until = Math.max(this.until, lost.until);
  }

  private clear(): void {
    this.entries = 0;
    this.since = Infinity;
    this.until = 0;
    this.kinds = new Map();
  }
}
