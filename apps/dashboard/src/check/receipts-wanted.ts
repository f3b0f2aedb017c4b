/** Of a session with more segments than this, only the first receipt and the newest are fetched. */
const ALL_RECEIPTS = 256;
const NEWEST = 32;

/** All receipts of a session of usual size; of a very long one the first (it pins the first key) and the newest (they cover the rest). */
export function receiptsWanted(segments: readonly { from: number; receipt: boolean }[]): number[] {
  const published = segments.filter((segment) => segment.receipt).map((segment) => segment.from);
  return published.length <= ALL_RECEIPTS ? published : [...published.slice(0, 1), ...published.slice(-NEWEST)];
}
