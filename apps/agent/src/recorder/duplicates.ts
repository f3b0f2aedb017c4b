import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EntryView } from '@nd7/entry';
import type { HookReading } from '@nd7/hooks';
import type { Home, JournalDraft } from '@nd7/journal';
import { lastEntries } from './firing.js';

/** Clients that run one registered command twice do it within 1.4 s of each other. */
export const COPY_WINDOW_MS = 2_000;

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
      if (now - at <= COPY_WINDOW_MS) break; // insertion order is time order
      this.seen.delete(old);
    }
    const key = keyOf(reading);
    const earlier = this.seen.get(key);
    if (earlier === undefined) this.seen.set(key, { at: now, seq });
    return earlier?.seq;
  }
}

/**
 * A draft with its mark where it says again what stands among the newest entries of the log, as it was before anything was detached. For whoever
 * has no memory of what came before: the fall-back hook, and a recorder that has just taken a session up.
 */
export function markCopy(home: Home, session: string, draft: JournalDraft): JournalDraft {
  const original = lastEntries(home, session, `"kind":${JSON.stringify(draft.kind)}`).find((entry) =>
    says(home, entry, draft),
  );
  if (original?.seq === undefined) return draft;
  return { ...draft, peer: { ...(draft.peer as object), duplicate_of: original.seq } };
}

/** Whether an entry is the first that said what a draft says again, shortly after. */
function says(home: Home, entry: EntryView, draft: JournalDraft): boolean {
  const { time = '', source, data, detached = [], peer } = entry;
  const isNear = Math.abs(Date.parse(draft.time) - Date.parse(time)) <= COPY_WINDOW_MS;
  const isFirst = (peer as { duplicate_of?: unknown } | undefined)?.duplicate_of === undefined;
  if (!isNear || !isFirst || source !== draft.source || data !== draft.data) return false;
  const held = draft.detached ?? [];
  return (
    detached.length === held.length &&
    detached.every(({ at, blake3 }, n) => at === held[n]?.at && sameValue(home, blake3, draft.blobs?.[n]?.bytes))
  );
}

/** Whether a blob on the disk keeps the value of another. Each begins with 32 bytes of salt of its own. */
function sameValue(home: Home, hash: string, bytes: Uint8Array | undefined): boolean {
  try {
    return bytes !== undefined && readFileSync(join(home.blobs, hash)).subarray(32).equals(bytes.subarray(32));
  } catch {
    return false;
  }
}

function keyOf(reading: HookReading): string {
  const hash = createHash('sha256').update(reading.data).digest('base64');
  return [reading.facts.event ?? '', reading.facts.toolUseId ?? '', hash].join('\n');
}
