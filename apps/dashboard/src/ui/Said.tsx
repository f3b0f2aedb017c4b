import { Fragment, useState } from 'react';
import { Button } from './controls.js';
import { cx } from './cx.js';
import { takeApart } from './hostile.js';
import css from './said.module.css';

/** A line longer than this is cut on the page, with its length beside it. */
const LONGEST = 4096;

/**
 * Text of unknown origin (an agent's, a file's, a command's output): text nodes only, hostile characters boxed, no links. `lines` keeps
 * line feeds and tabs as they are.
 */
export function Said(props: { text: string; lines?: boolean; className?: string | undefined }) {
  const [whole, setWhole] = useState(false);
  const lines = props.lines ?? false;
  const cut = !whole && props.text.length > LONGEST;
  const text = cut ? props.text.slice(0, LONGEST) : props.text;
  return (
    <span className={cx(css.said, lines && css.lines, props.className)} dir="ltr">
      {takeApart(text, { lines }).map((run, i) =>
        'text' in run ? (
          <Fragment key={i}>{run.text}</Fragment>
        ) : (
          <span
            key={i}
            className={css.box}
            data-box={run.box}
            title={run.name}
            role="img"
            aria-label={`${run.box}, ${run.name}`}
          >
            <span className={css.real} aria-hidden="true">
              {run.real}
            </span>
          </span>
        ),
      )}
      {cut && (
        <span className={css.long}>
          {' '}
          … {props.text.length.toLocaleString('en')} characters{' '}
          <Button
            look="ghost"
            onClick={() => {
              setWhole(true);
            }}
          >
            Show all
          </Button>
        </span>
      )}
    </span>
  );
}
