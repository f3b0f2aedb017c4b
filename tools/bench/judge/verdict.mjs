// One rule for all benchmarks: each ends with 1 when a must that it measured was not reached, and with 0 otherwise. What cannot be measured here
// (no compiler, no pgbench, one processor) is said, and judges nothing.

/** How a must is called, everywhere in the same words; one that was not reached makes the program end with 1. */
export function verdict(isReached) {
  if (!isReached) process.exitCode = 1;
  return isReached ? 'reached' : 'NOT reached';
}
