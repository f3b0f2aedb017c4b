import type { LogReason } from '@nd7/chain';
import type { ReceiptReason } from '@nd7/receipt';

/** A success that rests on nothing but the local head must say so, in these words. */
export const LOCAL_HEAD_ONLY =
  'the local head only: whoever could rewrite this log could rewrite its head with it, so this shows no change by somebody who could not';

/** Without a head and without a receipt nothing says how long the log was. */
export const LENGTH_ON_NOTHING = 'the length rests on nothing: no head was given, so entries may be missing at the end';

/** What each reason says about the entry it names. */
export const REASONS: Record<LogReason, string> = {
  'too-long': 'it is longer than 1,048,576 bytes',
  'torn-tail': 'the log ends inside it: no newline ends it',
  'not-utf8': 'it is not UTF-8',
  'bad-json': 'it is not one JSON object',
  'duplicate-key': 'an object in it has one key twice',
  'unsupported-version': 'it is of a version that this nd7 does not know',
  'bad-prefix': 'it does not begin with v, seq and prev, exactly as they must be written',
  'wrong-seq': 'it is not numbered one more than the entry before',
  'wrong-genesis': 'it does not carry the link of this session: it belongs to another one, or was changed',
  'wrong-prev': 'it does not carry the hash of the entry before it: one of the two was changed',
  'bad-seal': 'its seal, key, certificate or signature does not follow',
  truncated: 'it is missing: more entries are counted than there are',
  'head-mismatch': 'its hash is not the one the head holds: it or an entry before it was rewritten',
  'receipt-mismatch': 'its hash is not the one the vault signed: it or an entry before it was rewritten',
};

/** What each result says about a receipt. */
export const RECEIPT_REASONS: Record<ReceiptReason | 'not-checked', string> = {
  'bad-receipt': 'it is not a receipt for a segment of a session',
  'bad-signature': 'its checkpoint carries no good signature by a vault key that you pinned, or a bad one beside it',
  'wrong-origin': 'its leaf is of another log than its checkpoint',
  'bad-inclusion': 'its proof does not lead from the leaf to the signed tree',
  'bad-machine-signature': "the machine's signature in its leaf is bad",
  'no-quorum': 'too few of the witnesses that your policy asks for have cosigned',
  'receipt-mismatch': 'it does not speak of this log as it stands here',
  truncated: 'it counts more entries than this log has',
  'not-checked': 'no vault key is pinned, so nobody looked',
};

/** 1061 → `1,061`. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `1 entry`, `1,061 entries`. */
export function entriesOf(count: number): string {
  return `${grouped(count)} ${count === 1 ? 'entry' : 'entries'}`;
}

/** First 8 … last 6 characters: how hashes and keys are shown. */
export function short(hex: string): string {
  return hex.length > 16 ? `${hex.slice(0, 8)}…${hex.slice(-6)}` : hex;
}

/** A span of time in its largest unit: `14 s`, `3 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${String(seconds)} s`;
  if (seconds < 3600) return `${String(Math.floor(seconds / 60))} min`;
  if (seconds < 48 * 3600) return `${String(Math.floor(seconds / 3600))} h`;
  return `${grouped(Math.floor(seconds / 86_400))} days`;
}
