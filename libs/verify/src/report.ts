import type { LogReason } from '@nd7/chain';
import type { ReceiptReason } from '@nd7/receipt';
import type { ClassCounts } from './classes.js';

/**
 * How far a verdict is a proof. `good`: recomputed here from the bytes and keys that the reader pinned. `part`: true but not whole,
 * the text names what is missing. `bad`: the first failing check. `unchecked`: nobody looked, or there is nothing to look at.
 */
export type Standing = 'good' | 'part' | 'bad' | 'unchecked';

/** One of the four verdicts: the word a page shows, a sentence, and what it rests on. */
export interface Verdict {
  state: Standing;
  verdict: string;
  text: string;
  rests_on: string[];
}

/** What became of one receipt. Members besides `result` are there where the receipt could be read. */
export interface ReceiptReport {
  from?: number;
  to?: number;
  /** `not-checked`: no vault key is pinned, so nothing could be held against it. */
  result: 'holds' | 'not-checked' | ReceiptReason;
  origin?: string;
  /** The leaf's index and the checkpoint's size; as decimal text above 2^53 - 1. */
  index?: number | string;
  size?: number | string;
  /** The vault's clock at durable acceptance. */
  received?: string;
  /** The machine key that signed the statement, 64 hex. */
  machine?: string;
}

/** The report on one session: versioned data, kept readable for ever. Printed as it stands by `nd7 verify --json`. */
export interface SessionReport {
  report: 'nd7/report/v1';
  session: string;
  verdict: 'intact' | 'broken';
  /** Good entries, and the hash after them. */
  entries: number;
  head: string;
  bad_entry?: number;
  reason?: LogReason;
  /** Lines ended by "\n", and bytes, in what was read. */
  lines: number;
  bytes: number;
  integrity: Verdict;
  completeness: Verdict;
  authenticity: Verdict;
  freshness: Verdict;
  receipts: ReceiptReport[];
  seals: {
    /** The seq of the last seal among the good entries. */
    sealed_to: number | null;
    /** Good entries after it. */
    tail: number;
    seals: number;
    /** `none`: entry 0 names no key. */
    first_key: 'pinned' | 'not-pinned' | 'none';
    /** The receipt that pins entry 0 and with it the first key: `leaf <index> of <origin>`. */
    pinned_by?: string;
    /** The machine key that certified the first key, 64 hex. */
    machine?: string;
  };
  classes: ClassCounts;
  rests_on: string[];
  not_checked: string[];
}
