// What `nd7 ship --follow` tells: each shipment as it happens. Where a recorder runs it is the one that ships, in its own time, and this looks on; elsewhere
// this process ships.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { chainOf, listSessions, readHead, receiptCounts, type Home } from '@nd7/journal';
import { parseReceipt } from '@nd7/receipt';
import type { ShippedSegment, ShipLoop, Standing } from '@nd7/ship';
import { askJson } from '../recorder/client.js';
import { enrolledAt, loopHere, unshipped, withContinuation, type Outcome } from './flush.js';

/** How often is looked, milliseconds. */
const LOOK_MS = 500;
const GONE = { state: 'shipped', acknowledged: 0, pinned: true, failures: 0 } as const;

/**
 * What becomes of the sessions named (of all, where none is) from now on, until `stop`: an outcome for each shipment, and one for each trouble when it
 * begins. What the recorder has given up is tried again once. Throws ShipError where this home ships nowhere.
 */
export async function* follow(home: Home, chosen: readonly string[], stop: AbortSignal): AsyncGenerator<Outcome> {
  const isMeant = (session: string): boolean =>
    chosen.length === 0 || chosen.some((one) => one === session || chainOf(home, one).session === session);
  const waiting = (): string[] => unshipped(home).filter(isMeant);
  const teller = new Teller(home);
  let here: ShipLoop | undefined;
  let recorder: unknown;
  let before: string[] = [];
  try {
    while (!stop.aborted) {
      const status = await askJson(home.root, 'status', {}, 10_000);
      if (status === undefined) {
        here ??= loopHere(home, enrolledAt(home.root));
        for (const session of waiting()) here.notice(session);
      } else {
        await here?.stop();
        here = undefined;
        // The answer comes when all is shipped; what comes of it is seen before.
        if (status['pid'] !== recorder) await askJson(home.root, 'ship', { sessions: waiting() }, 1_000);
      }
      recorder = status?.['pid'];
      const { sessions = [] } = here?.status() ?? ((status?.['ship'] ?? {}) as { sessions?: Standing[] });
      const names = sessions.map(({ session }) => session);
      // Of one that nobody speaks of any more the last shipment may not have been seen.
      const gone = before.filter((session) => !names.includes(session)).map((session) => ({ ...GONE, session }));
      before = names;
      for (const standing of [...sessions, ...gone].filter(({ session }) => isMeant(session))) {
        const news = teller.newsOf(standing);
        if (news !== undefined) yield news;
      }
      await pause(LOOK_MS, undefined, { signal: stop }).catch(() => undefined);
    }
  } finally {
    await here?.stop();
  }
}

/** Tells nothing twice. */
class Teller {
  /** Up to where receipts have been told of, and the trouble that is going on. */
  readonly #told = new Map<string, { entries: number; trouble?: string }>();
  readonly #alarms = new Set<string>();

  constructor(private readonly home: Home) {
    for (const { session } of listSessions(home)) this.#told.set(session, { entries: this.#receipted(session) });
  }

  newsOf(standing: Standing): Outcome | undefined {
    const { session, code, problem } = standing;
    const told: { entries: number; trouble?: string } = this.#told.get(session) ?? { entries: 0 };
    const segments = this.#segments(session, told.entries);
    const acknowledged = segments.at(-1)?.to ?? told.entries;
    const alarms = (standing.alarms ?? []).filter(({ code: name, text }) => this.#isNew(`${session} ${name} ${text}`));
    const entries = Math.max(acknowledged, readHead(this.home, session)?.entries ?? 0);
    const report = { session, entries, acknowledged, segments, alarms };
    const outcome: Outcome =
      code !== undefined
        ? withContinuation(this.home, { session, state: 'failed', code, problem: problem ?? '' })
        : problem !== undefined
          ? { ...report, state: 'offline', problem }
          : { ...report, state: standing.state === 'pending' ? 'pending' : 'shipped' };
    const trouble =
      outcome.state === 'shipped'
        ? undefined
        : JSON.stringify([outcome.state, problem, 'continued_as' in outcome && outcome.continued_as]);
    this.#told.set(session, { entries: acknowledged, ...(trouble !== undefined && { trouble }) });
    const isNew = segments.length > 0 || alarms.length > 0 || (trouble !== undefined && trouble !== told.trouble);
    return isNew ? outcome : undefined;
  }

  #isNew(alarm: string): boolean {
    if (this.#alarms.has(alarm)) return false;
    this.#alarms.add(alarm);
    return true;
  }

  #receipted(session: string): number {
    return receiptCounts(this.home, session).at(-1) ?? 0;
  }

  /** What receipts were put on the disk since: whoever put them there has verified them. */
  #segments(session: string, told: number): ShippedSegment[] {
    return receiptCounts(this.home, session)
      .filter((count) => count > told)
      .flatMap((count) => {
        const receipt = parseReceipt(readFileSync(join(this.home.receiptsDir(session), `${String(count)}.tlog-proof`)));
        if (receipt === undefined) return [];
        const { from, to, received } = receipt.statement;
        return [{ from, to, index: receipt.index, received }];
      });
  }
}
