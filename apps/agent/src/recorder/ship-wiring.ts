import type { Clock, Random } from '@nd7/entry';
import { chainOf, listSessions, readFirst, readReceipts, SessionReader, startOf } from '@nd7/journal';
import type { Home } from '@nd7/journal';
import { Heart, readVaultFile, ShipLoop as Shipping } from '@nd7/ship';
import type { AwayReason, HeartOptions, SessionMark, SessionSource, ShipCode } from '@nd7/ship';
import type { KeyPair } from '@nd7/signing';
import { keepHeartbeat, markOf } from './heartbeat.js';
import { TeamPolicyWatch } from './team-policy.js';
import type { LogFailure, ShipHost, ShipLoop } from './ship-loop.js';

/** Whether a failure is about the log of one session, so that no other try can do better. */
function isOfTheLog(code: ShipCode): code is LogFailure {
  return code === 'fork' || code === 'disagrees' || code === 'log-behind' || code === 'log-broken';
}

/** A session's log as shipping reads it; each call looks at the file as it is then. */
class LogSource implements SessionSource {
  private readonly reader: SessionReader;

  constructor(
    private readonly home: Home,
    readonly session: string,
    private readonly host: ShipHost,
  ) {
    this.reader = new SessionReader(home, session);
  }

  entries(): number {
    return this.reader.entries();
  }

  range(from: number, to: number): Uint8Array {
    return this.reader.range(from, to);
  }

  seal(): Promise<unknown> {
    return this.host.seal(this.session);
  }

  isContinued(): boolean {
    return chainOf(this.home, this.session).session !== this.session;
  }
}

/** What a recorder ships and beats with. */
export interface ShipParts {
  home: Home;
  machine: KeyPair;
  clock: Clock;
  random: Random;
  host: ShipHost;
  warn(line: string): void;
  /** Between heartbeats, milliseconds. */
  heartbeatMs?: number;
  /** Told after each heartbeat and each shipment. */
  onWork?(): void;
}

/**
 * The loop that ships for a recorder, and its heartbeats beside it; undefined where this machine is not enrolled. What earlier recorders left
 * unshipped is taken up at once. A fork answer, or a log that is not any more what was shipped, is an alarm, and the session goes on as a new chain.
 */
export function shipLoop(parts: ShipParts): ShipLoop | undefined {
  const vault = readVaultFile(parts.home.root);
  if (vault === undefined) return undefined;
  const { home, machine, clock, random, host, warn, heartbeatMs } = parts;
  const note = (session: string, data: Record<string, unknown>): void =>
    void host
      .note(session, 'alarm', data)
      .catch((error: unknown) => warn(`alarm of ${session} not written: ${String(error)}`));
  const shipping = new Shipping({
    home: home.root,
    vault,
    signer: machine,
    clock,
    random,
    source: (session) => {
      // What this chain continues is stated closed, though nothing of it may be left to ship.
      const before = startOf(readFirst(home, session)).continues?.session;
      if (before !== undefined) shipping.notice(before);
      return new LogSource(home, session, host);
    },
    onAlarm: (session, alarm) => note(session, { reason: alarm.code, detail: alarm.text }),
    onShipped: () => {
      heart.settle();
      parts.onWork?.();
    },
    onFailure: (session, error) => {
      warn(`shipping ${session} has stopped: ${error.message}`);
      if (isOfTheLog(error.code))
        void host
          .goOn(session, error.code, error.message)
          .then(() => shipping.conclude(session))
          .catch((failure: unknown) => warn(`${session} cannot go on: ${String(failure)}`));
    },
  });
  const withUnshipped = (open: readonly SessionMark[]): SessionMark[] => {
    const named = new Set(open.map(({ session }) => session));
    const closed = shipping.unfinished().filter((session) => !named.has(session));
    return [...open, ...closed.reverse().flatMap((session) => markOf(home, session))];
  };
  const alarm = async (data: Record<string, unknown>): Promise<boolean> => {
    const open = await host.open();
    await Promise.all(open.map(({ session }) => host.note(session, 'alarm', data)));
    return open.length > 0;
  };
  const policy = new TeamPolicyWatch({ home: home.root, signer: machine, clock, random }, { warn, alarm });
  const heart = new Heart({
    vault,
    signer: machine,
    clock,
    random,
    sessions: async () => withUnshipped(await host.open()),
    onBeat: (status) => {
      keepHeartbeat(home.root, status);
      if (status.failures === 0) policy.look();
      parts.onWork?.();
    },
    ...(heartbeatMs !== undefined && { intervalMs: heartbeatMs }),
  });
  for (const { session, head } of listSessions(home))
    if ((head?.entries ?? 0) > (readReceipts(home, session).at(-1)?.entries ?? 0)) shipping.notice(session);
  heart.wake();
  return {
    notice: (session) => {
      shipping.notice(session);
      heart.wake();
    },
    settle: () => heart.settle(),
    pinned: (session, timeoutMs) => shipping.pinned(session, timeoutMs),
    flush: (sessions) => shipping.flush(sessions),
    status: () => ({ ...shipping.status(), heartbeat: heart.status() }),
    away: async (reason, left) => heart.away(reason, left === undefined ? undefined : withUnshipped(left)),
    stop: async () => {
      await Promise.all([heart.stop(), shipping.stop()]);
    },
  };
}

/** Announces that this machine will not be heard, where no recorder runs to do it; false where it is not enrolled or the vault did not take it. */
export async function announceAway(
  reason: AwayReason,
  parts: Pick<HeartOptions, 'signer' | 'clock' | 'random'> & { home: Home },
): Promise<boolean> {
  const vault = readVaultFile(parts.home.root);
  if (vault === undefined) return false;
  const heart = new Heart({
    ...parts,
    vault,
    sessions: () => Promise.resolve([]),
    onBeat: (status) => keepHeartbeat(parts.home.root, status),
  });
  const isTaken = await heart.away(reason);
  await heart.stop();
  return isTaken;
}
