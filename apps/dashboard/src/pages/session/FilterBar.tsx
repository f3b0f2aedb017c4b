import type { Row } from '../../worker/row.js';
import { controls, Segmented } from '../../ui/controls.js';
import { type AnyClass, CLASSES, ClassToggle } from '../../ui/Evidence.js';
import { cx } from '../../ui/cx.js';
import { layout } from '../../ui/Panel.js';
import { countClasses, valuesOf } from './filter.js';
import type { SessionSearch, View } from './search.js';
import css from './filterbar.module.css';

/** How the session is shown, and which of its entries. */
export function FilterBar(props: {
  search: SessionSearch;
  set: (change: SessionSearch) => void;
  rows: readonly Row[];
  hidden: ReadonlySet<AnyClass>;
  receipts: number;
  segments: number;
  looks: number;
  /** A hairline above, where something stands there. */
  ruled: boolean;
}) {
  const { search, set, rows, hidden } = props;
  const counts = countClasses(rows);
  const view: View = search.view ?? 'story';
  return (
    <div className={cx(layout.filterbar, props.ruled && layout.ruled)} id="entry-filter">
      <Segmented<View>
        label="Show as"
        value={view}
        onChange={(next) => {
          set({ view: next === 'story' ? undefined : next });
        }}
        options={[
          { value: 'story', text: 'Story' },
          { value: 'entries', text: 'Entries' },
          { value: 'receipts', text: `Receipts ${props.receipts.toLocaleString('en')}` },
          { value: 'segments', text: `Segments ${props.segments.toLocaleString('en')}` },
        ]}
      />
      {(view === 'story' || view === 'entries') && (
        <>
          {CLASSES.filter((name) => name !== 'unclassified' || counts.unclassified > 0).map((name) => (
            <ClassToggle
              key={name}
              of={name}
              count={counts[name]}
              on={!hidden.has(name)}
              onChange={(on) => {
                const next = CLASSES.filter((other) => (other === name ? !on : hidden.has(other)));
                set({ hide: next.length === 0 ? undefined : next.join(',') });
              }}
            />
          ))}
          <Choice label="Kind" value={search.kind} values={valuesOf(rows, 'kind')} onChange={(kind) => set({ kind })} />
          <Choice label="Tool" value={search.tool} values={valuesOf(rows, 'tool')} onChange={(tool) => set({ tool })} />
          <span className="end row small hide-m">
            {props.looks > 0 && (
              <span className="t-warn strong">
                {props.looks.toLocaleString('en')} {props.looks === 1 ? 'needs' : 'need'} a look
              </span>
            )}
            {props.looks > 0 && (
              <span className="mute nowrap">
                <kbd>N</kbd>
              </span>
            )}
            <span className="mute nowrap">
              jump <kbd>G</kbd>
            </span>
          </span>
        </>
      )}
    </div>
  );
}

function Choice(props: {
  label: string;
  value: string | undefined;
  values: readonly string[];
  onChange: (value: string | undefined) => void;
}) {
  const unknown = props.value !== undefined && !props.values.includes(props.value);
  return (
    <select
      className={cx(controls.input, css.choice)}
      aria-label={props.label}
      value={props.value ?? ''}
      onChange={(event) => {
        props.onChange(event.currentTarget.value === '' ? undefined : event.currentTarget.value);
      }}
    >
      <option value="">All {props.label.toLowerCase()}s</option>
      {unknown && <option value={props.value}>{props.value}</option>}
      {props.values.map((value) => (
        <option key={value} value={value}>
          {value}
        </option>
      ))}
    </select>
  );
}
