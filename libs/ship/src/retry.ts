import type { Random } from '@nd7/entry';
import { isVaultError } from './error.js';

/** Resolves after so many milliseconds, or at once when the signal stops it. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

/** The real one. */
export const pause: Sleep = (ms, signal) =>
  new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });

/** How often one request is tried in one go, and how long is waited between. */
export interface RetryPlan {
  attempts: number;
  /** Upper bound of the first wait, doubled each time, in milliseconds. */
  baseMs: number;
  capMs: number;
}

export const RETRY: RetryPlan = { attempts: 5, baseMs: 250, capMs: 15_000 };

/** Full jitter: anything from nothing to the bound, so that machines that failed together do not come back together. */
export function backOff(attempt: number, plan: RetryPlan, random: Random): number {
  const bound = Math.min(plan.capMs, plan.baseMs * 2 ** Math.min(attempt, 30));
  const [a = 0, b = 0, c = 0, d = 0] = random(4);
  return Math.floor((bound * (((a << 24) >>> 0) + (b << 16) + (c << 8) + d)) / 2 ** 32);
}

/** Tries until it succeeds, fails for good, or the plan is used up: then the last VaultError is thrown. Retry-After is waited for, up to the cap. */
export async function retrying<T>(
  task: () => Promise<T>,
  plan: RetryPlan,
  random: Random,
  sleep: Sleep,
  signal?: AbortSignal,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await task();
    } catch (error) {
      if (!isVaultError(error) || !error.isTransient || attempt + 1 >= plan.attempts || signal?.aborted === true)
        throw error;
      // A vault that asks for longer than the cap is asked again by the next pass, not waited for here.
      if ((error.retryAfter ?? 0) > plan.capMs) throw error;
      await sleep(Math.max(backOff(attempt, plan, random), error.retryAfter ?? 0), signal);
    }
  }
}
