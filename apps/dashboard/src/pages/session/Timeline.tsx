import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { cx } from '../../ui/cx.js';
import { useWindowVirtualizer } from '../../ui/virtual.js';
import css from './timeline.module.css';

/** What the list tells its page. */
export interface ListControl {
  /** Brings a row into sight; `focus` also moves the keyboard there. */
  show: (index: number, focus: boolean) => void;
}

/**
 * A list of any length of which only what is in sight is drawn. Heights are measured, so that rows may fold and unfold; assistive technology
 * is told the whole length by `aria-setsize` and `aria-posinset`.
 */
export function VirtualList(props: {
  count: number;
  estimate: number;
  current: number;
  label: string;
  className: (index: number) => string | undefined;
  keyOf: (index: number) => string | number;
  render: (index: number) => ReactNode;
  onSelect: (index: number) => void;
  control: React.RefObject<ListControl | undefined>;
  onRange?: ((first: number, last: number) => void) | undefined;
}) {
  const list = useRef<HTMLOListElement>(null);
  const [margin, setMargin] = useState(0);
  const wanted = useRef<number | undefined>(undefined);
  useLayoutEffect(() => {
    const top = list.current === null ? 0 : Math.round(list.current.getBoundingClientRect().top + window.scrollY);
    if (top !== margin) setMargin(top);
  });
  const virtual = useWindowVirtualizer({
    count: props.count,
    estimateSize: () => props.estimate,
    overscan: 8,
    scrollMargin: margin,
    scrollPaddingStart: 56,
    scrollPaddingEnd: 44,
    getItemKey: props.keyOf,
  });
  props.control.current = {
    show: (index, focus) => {
      virtual.scrollToIndex(index, { align: 'auto' });
      if (focus) wanted.current = index;
    },
  };
  const items = virtual.getVirtualItems();
  const { onRange } = props;
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => {
    onRange?.(first, last);
  }, [onRange, first, last]);
  useEffect(() => {
    if (wanted.current === undefined) return;
    const row = list.current?.querySelector<HTMLElement>(`[data-index="${String(wanted.current)}"]`);
    if (row === null || row === undefined) return;
    wanted.current = undefined;
    row.focus({ preventScroll: true });
  });
  const tabStop = items.some((item) => item.index === props.current) ? props.current : first;
  return (
    <ol ref={list} className={css.list} aria-label={props.label} style={{ blockSize: virtual.getTotalSize() }}>
      {items.map((item) => (
        <li
          key={item.key}
          ref={virtual.measureElement}
          data-index={item.index}
          className={cx(props.className(item.index), item.index === props.current && css.current)}
          tabIndex={item.index === tabStop ? 0 : -1}
          aria-setsize={props.count}
          aria-posinset={item.index + 1}
          aria-current={item.index === props.current ? 'true' : undefined}
          style={{ transform: `translateY(${String(item.start - margin)}px)` }}
          onFocus={(event) => {
            if (event.target === event.currentTarget && item.index !== props.current) props.onSelect(item.index);
          }}
          onClick={(event) => {
            // A click that only ends a selection of text is no choice of the row.
            if (document.getSelection()?.isCollapsed !== false && !(event.target as HTMLElement).closest('button, a'))
              props.onSelect(item.index);
          }}
        >
          {props.render(item.index)}
        </li>
      ))}
    </ol>
  );
}
