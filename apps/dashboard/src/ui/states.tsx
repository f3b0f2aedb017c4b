import type { ReactNode } from 'react';
import { useEffect, useState } from 'react';
import { Button } from './controls.js';
import { cx } from './cx.js';
import { Call } from './Evidence.js';
import { Icon, type IconName } from './Icon.js';
import css from './states.module.css';
import { Time } from './Time.js';

/** Nothing to show, and why. */
export function Empty(props: { icon: IconName; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={css.empty}>
      <Icon name={props.icon} size="large" />
      <b>{props.title}</b>
      {props.children}
      {props.action !== undefined && <div className="row wrap">{props.action}</div>}
    </div>
  );
}

/** Bars in the place of what is loading, after 300 ms only; `rows` keeps the height that the rows will have. */
export function Loading(props: { what: string; rows?: number }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => {
      setLate(true);
    }, 300);
    return () => {
      clearTimeout(timer);
    };
  }, []);
  const widths = [css.w3, css.w2, css.w3, css.w1];
  return (
    <div className={css.loading} aria-busy="true">
      <span className="sr">Loading {props.what}</span>
      {late &&
        Array.from({ length: props.rows ?? 4 }, (_, i) => <span key={i} className={cx(css.bar, widths[i % 4])} />)}
    </div>
  );
}

/** The vault did not give what was asked for. What is on the page stays; `since` says from when it is. */
export function Trouble(props: { error: Error; since?: number | undefined; onRetry: () => void }) {
  return (
    <Call kind="bad">
      <b>{props.error.message}</b>
      {props.since !== undefined && props.since > 0 && (
        <span className="small">
          What is on the page is from <Time at={props.since} />; verdicts stay, they were computed here.
        </span>
      )}
      <div className="row">
        <Button onClick={props.onRetry}>Try again</Button>
      </div>
    </Call>
  );
}
