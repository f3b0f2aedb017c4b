import { useEffect, useRef, useSyncExternalStore } from 'react';

/** What the search field of the top bar does on the page that is open. */
export interface Find {
  placeholder: string;
  value: string;
  onChange: (text: string) => void;
}

let current: Find | undefined;
const listeners = new Set<() => void>();
function set(next: Find | undefined): void {
  current = next;
  for (const listener of listeners) listener();
}

/** The field's id, so that `/` finds it. */
export const FIND_ID = 'find';

/** Gives the top bar's field to this page while it is open. */
export function useFind(find: Find): void {
  const mine = useRef(find);
  useEffect(() => {
    mine.current = find;
    if (current?.placeholder === find.placeholder && current.value === find.value) return;
    set({
      placeholder: find.placeholder,
      value: find.value,
      onChange: (text) => {
        mine.current.onChange(text);
      },
    });
  });
  useEffect(
    () => () => {
      set(undefined);
    },
    [],
  );
}

export function useCurrentFind(): Find | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
