import type { AwayReason, SessionMark, ShipCode } from '@nd7/ship';

/** Why a log cannot be shipped any more, whoever asks again. */
export type LogFailure = Extract<ShipCode, 'fork' | 'disagrees' | 'log-behind' | 'log-broken'>;

/**
 * The vault as the recorder sees it: told of entries, asked about pins, told when this machine will not be heard. The recorder of a machine that
 * is not enrolled has none. The implementation decides what is cut and said when; it must not throw into the recorder.
 */
export interface ShipLoop {
  /** New entries stand in this session's log (written, perhaps not yet durable); they are to be shipped within 2 s. */
  notice(session: string): void;
  /** No session is open here any more: there may be nothing left to do. */
  settle(): void;
  /** Resolves true as soon as a receipt pins the session's first key, false after `timeoutMs`. */
  pinned(session: string, timeoutMs: number): Promise<boolean>;
  /** Ships what there is now; of all sessions when none is named. Resolves when done or given up, with what happened. */
  flush(sessions?: readonly string[]): Promise<Record<string, unknown>>;
  /** For `nd7 status`, snake_case. */
  status(): Record<string, unknown>;
  /** Announces that this machine will not be heard for a while, with the sessions left open; at most 2 s. False where the vault did not take it. */
  away(reason: AwayReason, left?: readonly SessionMark[]): Promise<boolean>;
  /** Resolves when nothing is under way any more. */
  stop(): Promise<void>;
}

/** What a ShipLoop may ask of the recorder. */
export interface ShipHost {
  readonly home: string;
  /** The sessions that are open here, each with what is on the disk of it. */
  open(): Promise<SessionMark[]>;
  /** Seals a session's tail and makes it durable: the cut. Opens the session when it is closed. */
  seal(session: string): Promise<{ entries: number; head: string }>;
  /**
   * What stands here of a session cannot be shipped any more, for a reason of libs/ship that is about its log: it goes on as a new chain after what
   * was last receipted, which tells why in an alarm. Where it has gone on already nothing is done.
   */
  goOn(session: string, reason: LogFailure, detail: string): Promise<void>;
  /** Writes an entry of the recorder into a session, such as an alarm that the vault answered fork. */
  note(session: string, kind: string, data: Record<string, unknown>): Promise<void>;
}
