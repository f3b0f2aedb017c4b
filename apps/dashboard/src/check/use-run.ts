import { useSyncExternalStore } from 'react';
import type { SessionAddress } from '../api/client.js';
import { type Run, runOf, subscribeRuns } from './runs.js';

/** The run of a session, redrawn as it goes on. */
export function useRun(at: SessionAddress): Run | undefined {
  return useSyncExternalStore(subscribeRuns, () => runOf(at));
}
