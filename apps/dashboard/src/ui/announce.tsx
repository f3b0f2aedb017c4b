import { useSyncExternalStore } from 'react';

let text = '';
const listeners = new Set<() => void>();

/** Says a short thing politely to screen readers and in the trust bar's notice; never evidence, never an alarm alone. */
export function announce(message: string): void {
  text = message;
  for (const listener of listeners) listener();
  setTimeout(() => {
    if (text !== message) return;
    text = '';
    for (const listener of listeners) listener();
  }, 4000);
}

/** The text announced last, empty after four seconds. */
export function useAnnouncement(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => text,
  );
}
