import { useState } from 'react';
import { cx } from '../../ui/cx.js';
import { ClassChip } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { Icon } from '../../ui/Icon.js';
import { Said } from '../../ui/Said.js';
import type { Row } from '../../worker/row.js';
import { detailsOf, type DiffLine, diffOf, inputOf, type Output, outputsOf, subjectOf } from './call-words.js';
import { type Entry, entryOf, textOf } from './payload.js';
import type { CallItem, CallState } from './story.js';
import type { StoryContext } from './StoryItem.js';
import css from './timeline.module.css';

/** Lines shown before the rest is folded. */
const LINES = 40;

const STATES: Record<CallState, string> = {
  returned: 'it reported a result',
  failed: 'it reported a failure',
  reported: 'the result stands in a report of several calls',
  running: 'no result yet',
  never: 'no result ever came',
};

/** An open call: said, decided and happened side by side, then what it put out. */
export function CallBody({ item, state, context }: { item: CallItem; state: CallState; context: StoryContext }) {
  const before = entryOf(context.bytes, item.before);
  const after = entryOf(context.bytes, item.after ?? item.failed);
  const batch = after === undefined ? entryOf(context.bytes, item.batch) : undefined;
  const input = inputOf(before ?? after);
  const diff = diffOf(input, after);
  const outputs = outputsOf(after, batch, item.id);
  const detached = [before, after, batch].flatMap((entry) => entry?.view.detached ?? []);
  return (
    <>
      <div className={css.columns}>
        <div>
          <h3>
            Said <ClassChip of="intent" />
          </h3>
          <SaidColumn input={input} state={state} />
        </div>
        <div>
          <h3>
            Decided <ClassChip of="decision" />
          </h3>
          <Rows
            rows={item.decisions}
            context={context}
            none={context.decisions === 0 ? 'no rule was asked in this session' : 'no rule was asked'}
          />
        </div>
        <div>
          <h3>
            Happened <ClassChip of="effect" />
          </h3>
          <Rows
            rows={item.effects}
            context={context}
            none={
              context.effects === 0 ? 'no effect source in this session' : 'no effect source saw anything of this call'
            }
          />
        </div>
      </div>
      {detached.map((one) => (
        <div key={`${one.at} ${one.blake3}`} className={css.detached}>
          <Icon name={one.why === 'secret' ? 'lock' : 'note'} size="small" />
          <b>Detached: {one.why}</b>
          <span className="dim">
            <code>
              <Said text={one.at} />
            </code>{' '}
            {one.bytes === undefined ? 'its length is not told' : `${one.bytes.toLocaleString('en')} bytes`} stayed on
            the machine; salted hash
          </span>
          <Hash hex={one.blake3} name="detached hash" />
        </div>
      ))}
      {diff.length > 0 && <Diff lines={diff} path={subjectOf(input) ?? 'the file'} />}
      {outputs.map((output, i) => (
        <OutputBlock key={i} output={output} />
      ))}
      {diff.length === 0 && textOf(input.content) !== undefined && (
        <OutputBlock output={{ name: 'What it said it writes', text: textOf(input.content) ?? '' }} />
      )}
    </>
  );
}

function SaidColumn({ input, state }: { input: Entry['data']; state: CallState }) {
  const subject = subjectOf(input);
  return (
    <>
      {subject !== undefined && (
        <code>
          <Said text={subject} lines />
        </code>
      )}
      {detailsOf(input).map(([key, value]) => (
        <div key={key}>
          {key} <Said text={value} />
        </div>
      ))}
      <div className={state === 'failed' || state === 'never' ? 'strong' : ''}>{STATES[state]}</div>
    </>
  );
}

function Rows(props: { rows: readonly Row[]; context: StoryContext; none: string }) {
  if (props.rows.length === 0) return <span className={css.none}>{props.none}</span>;
  return (
    <ul>
      {props.rows.map((row) => (
        <li key={row.seq}>
          <button
            type="button"
            className={css.seq}
            onClick={() => {
              props.context.select(row.seq);
            }}
          >
            #{row.seq.toLocaleString('en')}
          </button>{' '}
          <span className={row.kind === 'rule.deny' ? 't-warn' : undefined}>{row.kind}</span>{' '}
          {row.text !== undefined && <Said text={row.text} />}
        </li>
      ))}
    </ul>
  );
}

/** What a program put out: control characters are shown, not carried out; long output is folded. */
function OutputBlock({ output }: { output: Output }) {
  const [open, setOpen] = useState(false);
  const lines = output.text.replace(/\n$/, '').split('\n');
  const folded = !open && lines.length > LINES;
  const shown = folded ? [lines.slice(0, LINES - 8), lines.slice(-8)] : [lines];
  return (
    <div className={css.output}>
      <div className={css.outputHead}>
        {output.name}, {lines.length.toLocaleString('en')} {lines.length === 1 ? 'line' : 'lines'}
        <span className="end hide-m">control characters shown, not carried out</span>
      </div>
      {shown.map((part, i) => (
        <div key={i}>
          {i === 1 && (
            <button
              type="button"
              className={css.more}
              onClick={() => {
                setOpen(true);
              }}
            >
              <Icon name="plus" size="small" />
              {(lines.length - LINES).toLocaleString('en')} lines folded
            </button>
          )}
          <pre className={css.terminal} tabIndex={0} aria-label={output.name}>
            {part.map((line, n) => (
              <span key={n}>
                <Said text={line} lines />
                {'\n'}
              </span>
            ))}
          </pre>
        </div>
      ))}
    </div>
  );
}

function Diff({ lines, path }: { lines: readonly DiffLine[]; path: string }) {
  return (
    <div className={css.diff} tabIndex={0} role="group" aria-label={`Change of ${path}`}>
      {lines.slice(0, 400).map((line, i) => (
        <div key={i} className={cx(line.sign === '+' && css.added, line.sign === '-' && css.removed)}>
          <i>{line.old}</i>
          <i>{line.now}</i>
          <b>{line.sign === '-' ? '−' : line.sign}</b>
          <Said text={line.text} lines />
        </div>
      ))}
      {lines.length > 400 && <div>{(lines.length - 400).toLocaleString('en')} more lines: see the payload</div>}
    </div>
  );
}
