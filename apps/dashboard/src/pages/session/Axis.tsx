import { useEffect, useMemo, useRef, useState } from 'react';
import { cx } from '../../ui/cx.js';
import { axisOf, type Lane, LANES } from './axis.js';
import css from './axis.module.css';
import type { Item } from './story.js';

const LABELS = 64;
const LANE = 17;
const TOP = 6;
const NARROWEST = 560;

const hours = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const seconds = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** The whole session drawn: who was at work when, what was seen and decided, and which part the story below shows. A click leads there. */
export function TimeAxis(props: {
  items: readonly Item[];
  window: { from: number; to: number } | undefined;
  /** All entries are among the items: only then is it known that a lane has none. */
  whole: boolean;
  onSelect: (seq: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(1100);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setWidth(Math.max(NARROWEST, Math.floor(entry.contentRect.width)));
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
    };
  }, []);
  const axis = useMemo(() => axisOf(props.items, width - LABELS), [props.items, width]);
  if (axis === undefined) return null;
  const place = (time: number) =>
    LABELS + ((time - axis.from) / Math.max(1, axis.to - axis.from)) * (width - LABELS - 4);
  const has = new Set(axis.marks.map((mark) => mark.lane));
  const bottom = TOP + LANES.length * LANE;
  const label = (at: number) => {
    if (axis.detail === 'minutes') return hours.format(at);
    return axis.detail === 'seconds'
      ? seconds.format(at)
      : `${seconds.format(at)}.${String(at % 1000).padStart(3, '0')}`;
  };
  return (
    <div
      className={cx('scrolls', css.box)}
      ref={box}
      tabIndex={0}
      role="group"
      aria-label="Whole session on a time axis"
    >
      <svg
        width={width}
        height={bottom + 18}
        viewBox={`0 0 ${String(width)} ${String(bottom + 18)}`}
        role="img"
        aria-label={`Whole session from ${label(axis.from)} to ${label(axis.to)}, in four lanes: main agent, subagents, effects, decisions. The story below tells the same in words.`}
      >
        {props.window !== undefined && (
          <rect
            className={css.window}
            x={Math.max(LABELS, place(props.window.from) - 4)}
            y={1}
            width={Math.max(
              8,
              Math.min(width - 1, place(props.window.to) + 6) - Math.max(LABELS, place(props.window.from) - 4),
            )}
            height={bottom - 2}
            rx={3}
          />
        )}
        {LANES.map((lane, i) => (
          <text key={lane} className={css.label} x={0} y={TOP + i * LANE + 9}>
            {lane}
          </text>
        ))}
        {LANES.map((lane, i) =>
          has.has(lane) ? null : (
            <text key={lane} className={css.none} x={LABELS + 6} y={TOP + i * LANE + 9}>
              {props.whole ? EMPTY[lane] : 'nothing so far'}
            </text>
          ),
        )}
        {axis.marks.map((mark) => {
          const y = TOP + LANES.indexOf(mark.lane) * LANE;
          const pick = () => {
            props.onSelect(mark.seq);
          };
          if (mark.lane === 'decisions') {
            const x = LABELS + mark.x + 1;
            return (
              <path
                key={`d${String(mark.x)}`}
                className={css.decision}
                d={`M${String(x)} ${String(y)}l5 5-5 5-5-5z`}
                onClick={pick}
              />
            );
          }
          return (
            <rect
              key={`${mark.lane}${String(mark.x)}`}
              className={cx(css.bar, mark.lane === 'effects' && css.effect)}
              x={LABELS + mark.x}
              y={y}
              width={mark.lane === 'effects' ? 5 : mark.width}
              height={mark.lane === 'effects' ? 7 : 9}
              rx={mark.lane === 'effects' ? 0 : 1}
              onClick={pick}
            />
          );
        })}
        {axis.ticks.map((tick) => (
          <text
            key={tick.at}
            className={css.label}
            x={Math.min(LABELS + tick.x, width - 30)}
            y={bottom + 14}
            textAnchor={tick.x < 20 ? 'start' : 'middle'}
          >
            {label(tick.at)}
          </text>
        ))}
      </svg>
    </div>
  );
}

const EMPTY: Record<Lane, string> = {
  main: 'nothing said',
  subagents: 'none',
  effects: 'no effect source in this session',
  decisions: 'no rule was asked',
};
