import { type KeyboardEvent, useRef } from 'react';

/**
 * A table as one tab stop (the grid pattern): one row is in the tab order, arrows, Home and End move it. Gives the props of the table body's rows
 * and `move`, for `j` and `k`.
 */
export function useRowFocus(count: number, selected: number, select: (index: number) => void) {
  const rows = useRef(new Map<number, HTMLTableRowElement>());
  const move = (to: number) => {
    const next = Math.max(0, Math.min(count - 1, to));
    if (count === 0) return;
    select(next);
    rows.current.get(next)?.focus();
  };
  const steps: Record<string, number> = {
    ArrowDown: selected + 1,
    ArrowUp: selected - 1,
    Home: 0,
    End: count - 1,
    PageDown: selected + 10,
    PageUp: selected - 10,
  };
  const rowProps = (index: number) => ({
    ref: (row: HTMLTableRowElement | null) => {
      if (row === null) rows.current.delete(index);
      else rows.current.set(index, row);
    },
    tabIndex: index === Math.max(0, Math.min(count - 1, selected)) ? 0 : -1,
    'aria-selected': index === selected,
    onFocus: () => {
      if (index !== selected) select(index);
    },
    onKeyDown: (event: KeyboardEvent) => {
      const to = steps[event.key];
      if (to === undefined) return;
      event.preventDefault();
      move(to);
    },
  });
  return { rowProps, move };
}
