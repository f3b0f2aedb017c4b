import type { ShipError } from './error.js';
import type { Alarm, ShipReport } from './report.js';
import type { Shipper } from './shipper.js';

/** What the loop knows of one session; written by the loop only. */
export interface Tracked {
  session: string;
  shipper?: Shipper;
  timer?: ReturnType<typeof setTimeout>;
  /** A pass under way. */
  running?: Promise<void>;
  /** When the last pass began, ms. */
  began?: number;
  /** Entries came during the pass. */
  again: boolean;
  /** Tries in a row that came to nothing. */
  failures: number;
  report?: ShipReport;
  problem?: string;
  /** Why it is given up. */
  error?: ShipError;
  /** Told when a pass is over. */
  watchers: Set<() => void>;
}

/** How one session stands. */
export interface Standing {
  session: string;
  /** `waiting` (for its first pass), `shipping`, `failed` (given up until it is flushed), or how the last pass ended. */
  state: 'waiting' | 'shipping' | 'failed' | ShipReport['state'];
  acknowledged: number;
  pinned: boolean;
  /** Tries in a row that came to nothing. */
  failures: number;
  /** Why it is given up, or `io` where the log or the disk did not let us. */
  code?: string;
  problem?: string;
  /** Of the last pass. */
  alarms?: Alarm[];
}

/** What is known of a session, as it is told. */
export function standingOf({ session, shipper, running, failures, report, problem, error }: Tracked): Standing {
  const code = error?.code ?? (problem === report?.problem ? undefined : 'io');
  return {
    session,
    state: error ? 'failed' : running ? 'shipping' : (report?.state ?? 'waiting'),
    acknowledged: shipper?.acknowledged ?? 0,
    pinned: shipper?.isPinned ?? false,
    failures,
    ...(code !== undefined && { code }),
    ...((error?.message ?? problem) !== undefined && { problem: error?.message ?? problem }),
    ...(report !== undefined && report.alarms.length > 0 && { alarms: report.alarms }),
  };
}
