import type { ReactNode } from 'react';
import { cx } from './cx.js';
import css from './layout.module.css';

export { css as layout };

/** A bordered box with a heading line. */
export function Panel(props: {
  title?: ReactNode;
  note?: ReactNode;
  end?: ReactNode;
  footer?: ReactNode;
  label?: string;
  className?: string | undefined;
  children?: ReactNode;
}) {
  return (
    <section className={cx(css.panel, props.className)} aria-label={props.label}>
      {props.title !== undefined && (
        <header>
          <h2>{props.title}</h2>
          {props.note !== undefined && <p className="hide-m">{props.note}</p>}
          {props.end !== undefined && <div className="end row">{props.end}</div>}
        </header>
      )}
      {props.children}
      {props.footer !== undefined && props.footer !== false && <footer>{props.footer}</footer>}
    </section>
  );
}

/** Head of a page: where one is, the verdict or name as a sentence, and what can be done. */
export function PageHead(props: { crumb?: ReactNode; title: ReactNode; lede?: ReactNode; children?: ReactNode }) {
  return (
    <div className={css.page}>
      <div>
        {props.crumb !== undefined && <p className={css.crumb}>{props.crumb}</p>}
        <h1>{props.title}</h1>
        {props.lede !== undefined && <div className={css.lede}>{props.lede}</div>}
      </div>
      {props.children !== undefined && <div className="row wrap">{props.children}</div>}
    </div>
  );
}

/** Names and values, one pair a line. */
export function Facts(props: { rows: readonly (readonly [string, ReactNode] | undefined | false)[] }) {
  return (
    <dl className={css.kv}>
      {props.rows.map(
        (row) =>
          row && (
            <div key={row[0]}>
              <dt>{row[0]}</dt>
              <dd>{row[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
