import type { Clock, Random } from '@nd7/entry';
import type { Trust } from '@nd7/receipt';
import type { Signer } from '@nd7/tlog';
import type { VaultClient } from './client.js';
import type { SessionSource } from './cut.js';
import type { RetryPlan, Sleep } from './retry.js';

/** What a shipper works with. */
export interface ShipperOptions {
  source: SessionSource;
  client: VaultClient;
  /** The machine's key. */
  signer: Signer;
  /** The log at the vault, as pinned. */
  origin: string;
  trust: Trust;
  /** `outbox/<session>` and `sessions/<session>/receipts`; made when first needed. */
  outbox: string;
  receipts: string;
  clock: Clock;
  random: Random;
  retry?: RetryPlan;
  /** How long one pass waits for a receipt that is not published yet, milliseconds. */
  receiptWaitMs?: number;
  sleep?: Sleep;
  signal?: AbortSignal;
  onEvent?: (event: ShipEvent) => void;
}

/** Something a person should know of although shipping goes on. */
export interface Alarm {
  /**
   * `vault-behind`: the vault lost what it gave receipts for (a restored backup?). `receipt-changed`: it gave a second receipt for a leaf. `cut-changed`: the
   * log is not any more what a cut in the outbox says. `bad-receipt-file`: a receipt on the disk holds no more. `unsealed`: the tail could not be sealed.
   */
  code: 'vault-behind' | 'receipt-changed' | 'cut-changed' | 'bad-receipt-file' | 'unsealed';
  text: string;
}

/** One acknowledged segment. */
export interface ShippedSegment {
  from: number;
  to: number;
  /** Place of its leaf in the vault's log. */
  index: number;
  /** The vault's clock. */
  received: string;
}

export type ShipEvent =
  | { type: 'sending'; from: number; to: number; bytes: number; wire: number }
  | ({ type: 'acknowledged' } & ShippedSegment)
  | { type: 'alarm'; alarm: Alarm };

/** What a pass came to. */
export interface ShipReport {
  session: string;
  /** `shipped`: all entries up to the last seal are acknowledged. `pending`: taken, the receipt is not published yet. `offline`: the vault could not be reached or is busy; all is queued. */
  state: 'shipped' | 'pending' | 'offline';
  /** Entries in the log, and up to which a verified receipt is held. */
  entries: number;
  acknowledged: number;
  segments: ShippedSegment[];
  alarms: Alarm[];
  /** Why it is offline, and how long the vault asks to be left alone (milliseconds). */
  problem?: string;
  retryAfter?: number;
}
