import { cx } from './cx.js';
import { utcText } from './time-words.js';
import css from './time.module.css';

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const minutes = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const dayYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

type TimeAs = 'clock' | 'millis' | 'list' | 'exact' | 'day';

/**
 * A time in the reader's zone, UTC on hover. `as` picks the detail: the clock alone, for where the day stands elsewhere; what a list needs (the
 * minute today, else with the day), the same to the second (`exact`) or to the millisecond (`millis`); the day.
 */
export function Time(props: { at: string | number; as?: TimeAs; plain?: boolean; className?: string | undefined }) {
  const date = new Date(props.at);
  const ms = date.getTime();
  if (Number.isNaN(ms)) return <span className="mute">no time</span>;
  return (
    <time dateTime={date.toISOString()} title={utcText(ms)} className={cx(!props.plain && css.dotted, props.className)}>
      {words(date, props.as ?? 'clock')}
    </time>
  );
}

function words(date: Date, as: TimeAs): string {
  const now = new Date();
  const today = date.toDateString() === now.toDateString();
  if (as === 'clock') return clock.format(date);
  const time =
    as === 'millis'
      ? `${clock.format(date)}.${String(date.getMilliseconds()).padStart(3, '0')}`
      : (as === 'exact' ? clock : minutes).format(date);
  if (as !== 'day' && today) return time;
  const named = date.getFullYear() === now.getFullYear() ? day.format(date) : dayYear.format(date);
  return as === 'day' ? named : `${named} ${time}`;
}
