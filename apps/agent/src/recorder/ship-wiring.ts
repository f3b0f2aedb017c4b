import type { Clock, Random } from '@nd7/entry';
import { listSessions, readReceipts, SessionReader } from '@nd7/journal';
import type { Home } from '@nd7/journal';
import { readVaultFile, ShipLoop as Shipping } from '@nd7/ship';
import type { SessionSource } from '@nd7/ship';
import type { KeyPair } from '@nd7/signing';
import type { ShipHost, ShipLoop } from './ship-loop.js';

/** A session's log as shipping reads it; each call looks at the file as it is then. */
class LogSource implements SessionSource {
  private readonly reader: SessionReader;

  constructor(
    home: Home,
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
}

/**
 * The loop that ships for a recorder; undefined where this machine is not enrolled. What earlier recorders left unshipped is taken up at
 * once. A fork answer, or a log that is not any more what was shipped, is an alarm, and the session goes on as a new chain.
 */
export function shipLoop(options: {
  home: Home;
  machine: KeyPair;
  clock: Clock;
  random: Random;
  host: ShipHost;
  warn(line: string): void;
}): ShipLoop | undefined {
  const { home, machine, clock, random, host, warn } = options;
  const vault = readVaultFile(home.root);
  if (vault === undefined) return undefined;
  const note = (session: string, data: Record<string, unknown>): void =>
    void host
      .note(session, 'alarm', data)
      .catch((error: unknown) => warn(`alarm of ${session} not written: ${String(error)}`));
  const loop = new Shipping({
    home: home.root,
    vault,
    signer: machine,
    clock,
    random,
    source: (session) => new LogSource(home, session, host),
    onAlarm: (session, alarm) => note(session, { reason: alarm.code, detail: alarm.text }),
    onFailure: (session, error) => {
      warn(`shipping ${session} has stopped: ${error.message}`);
      if (error.code === 'fork' || error.code === 'disagrees' || error.code === 'log-behind')
        void host
          .forked(session, error.message)
          .catch((failure: unknown) => warn(`${session} cannot go on: ${String(failure)}`));
    },
  });
  for (const { session, head } of listSessions(home))
    if ((head?.entries ?? 0) > (readReceipts(home, session).at(-1)?.entries ?? 0)) loop.notice(session);
  return loop as ShipLoop;
}
