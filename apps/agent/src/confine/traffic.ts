// What went through connections that have ended, for the record: each by itself, or, where there are many, in sums.
import type { EndedConnection } from '@nd7/egress';

/** So many are told one by one, and as many again in so many milliseconds each. */
const FIRST = 200;
const AGAIN_MS = 500;
/** Sums are told after so long, and at the end of the session. */
const SUM_MS = 10_000;
/** So many are kept apart; what is more goes into one. */
const MOST_SUMS = 64;

/** Appends an entry; where that fails, whoever has to know does already. */
type Note = (kind: string, data: Record<string, unknown>) => Promise<void>;

interface Sum {
  said: Record<string, unknown>;
  connections: number;
  sent: number;
  received: number;
  /** Of some it is not known. */
  lost: number;
  ms: number;
}

const KIND = 'network.end';

export class Traffic {
  readonly #sums = new Map<string, Sum>();
  /** Entries that are being written. */
  readonly #writing = new Set<Promise<void>>();
  #left = FIRST;
  #at: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly note: Note,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#at = now();
  }

  ended(end: EndedConnection): void {
    const { connection, via, host, port, asker, sent, received, ms } = end;
    if (this.#mayTell()) {
      const number = connection === null ? {} : { connection };
      return this.#tell({ via, host, port, ...number, sent, received, ms, ...asker?.entry });
    }
    const sum = this.#sumOf(end);
    sum.connections++;
    sum.sent += sent ?? 0;
    sum.received += received ?? 0;
    if (sent === null) sum.lost++;
    sum.ms = Math.max(sum.ms, ms);
    this.#timer ??= setTimeout(() => void this.flush(), SUM_MS).unref();
  }

  /** Tells the sums that there are, and resolves when all that was told is written. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { said, lost, ...sum } of this.#sums.values())
      this.#tell({ ...said, ...sum, ...(lost > 0 ? { lost } : {}) });
    this.#sums.clear();
    await Promise.all(this.#writing);
  }

  #tell(data: Record<string, unknown>): void {
    const written = this.note(KIND, data).finally(() => this.#writing.delete(written));
    this.#writing.add(written);
  }

  #mayTell(): boolean {
    const now = this.now();
    const more = Math.floor((now - this.#at) / AGAIN_MS);
    this.#at += more * AGAIN_MS;
    this.#left = Math.min(FIRST, this.#left + more);
    return this.#left > 0 && this.#left-- > 0;
  }

  #sumOf({ via, host, port, asker }: EndedConnection): Sum {
    const key = JSON.stringify([via, host, port, asker?.key]);
    const known = this.#sums.get(key);
    if (known !== undefined) return known;
    const isFull = this.#sums.size >= MOST_SUMS;
    // Of many askers what tells one of them from another is not said.
    const of = Object.entries(asker?.entry ?? {}).filter(([name]) => name !== 'pid' && name !== 'program');
    const sum = { connections: 0, sent: 0, received: 0, lost: 0, ms: 0 };
    const others = isFull ? this.#sums.get('') : undefined;
    if (others !== undefined) return others;
    const made = { said: isFull ? { host: null } : { via, host, port, ...Object.fromEntries(of) }, ...sum };
    this.#sums.set(isFull ? '' : key, made);
    return made;
  }
}
