import { createHash } from 'node:crypto';
import type { HookReading } from '@nd7/hooks';

/** Clients that run one registered command twice do it within 1.4 s of each other. */
const WINDOW_MS = 2_000;

/**
 * Notices payloads that come twice: same event, same call id, same bytes, shortly after each other. They are recorded all the
 * same; the entry only says of which one it is the copy. One per session.
 */
export class Duplicates {
  private readonly seen = new Map<string, { at: number; seq: Promise<number | undefined> }>();

  /**
   * The seq of the entry that this payload repeats, undefined when it is the first of its kind. Of the first, `seq` is remembered (undefined:
   * it could not be written); copies do not prolong the window.
   */
  async first(reading: HookReading, now: number, seq: Promise<number | undefined>): Promise<number | undefined> {
    for (const [old, { at }] of this.seen) {
      if (now - at <= WINDOW_MS) break; // insertion order is time order
      this.seen.delete(old);
    }
    const key = keyOf(reading);
    const earlier = this.seen.get(key);
    if (earlier === undefined) this.seen.set(key, { at: now, seq });
    return earlier?.seq;
  }
}

function keyOf(reading: HookReading): string {
  const hash = createHash('sha256').update(reading.data).digest('base64');
  return [reading.facts.event ?? '', reading.facts.toolUseId ?? '', hash].join('\n');
}
