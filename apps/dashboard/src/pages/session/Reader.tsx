import type { SessionPage } from '@nd7/vault-api';
import { type ReactNode, useCallback, useMemo, useRef, useState } from 'react';
import type { SessionAddress } from '../../api/client.js';
import type { Run } from '../../check/runs.js';
import { hashInWorker } from '../../check/worker-client.js';
import { useFind } from '../../shell/find.js';
import { useKeys } from '../../shell/keys.js';
import { Button, copyText } from '../../ui/controls.js';
import { cx } from '../../ui/cx.js';
import { type AnyClass, CLASSES, ClassChip } from '../../ui/Evidence.js';
import { layout, Panel } from '../../ui/Panel.js';
import { Said } from '../../ui/Said.js';
import { Empty, Loading } from '../../ui/states.js';
import { Time } from '../../ui/Time.js';
import { agentName } from '../sessions/agents.js';
import { TimeAxis } from './Axis.js';
import { SessionBytes } from './bytes.js';
import { countClasses, type Filter, hidesNothing, itemPasses, passes } from './filter.js';
import { FilterBar } from './FilterBar.js';
import { evidenceOf, Inspector } from './Inspector.js';
import { firstSeq, indexBy, isInLane, itemKey, useFound, windowOf } from './reader-parts.js';
import type { SessionSearch } from './search.js';
import { needsLook, tellStory } from './story.js';
import { type StoryContext, StoryItem } from './StoryItem.js';
import { type ListControl, VirtualList } from './Timeline.js';
import css from './timeline.module.css';

/** The entries of a session, as a story or one by one, with what is known of the current one beside them. */
export function Reader(props: {
  at: SessionAddress;
  page: SessionPage;
  run: Run;
  search: SessionSearch;
  set: (change: SessionSearch) => void;
  onCheck: () => void;
  children?: ReactNode;
}) {
  const { at, page, run, search, set } = props;
  const view = search.view ?? 'story';
  // The rows grow in place while the log is read; the version says that they did.
  const rows = useMemo(() => run.rows.slice(), [run.rows, run.version]);
  const bytes = useMemo(() => new SessionBytes(run.parts.slice()), [run.parts, run.version]);
  const items = useMemo(() => tellStory(rows), [rows]);
  const found = useFound(bytes, rows, search.q);
  const hidden = useMemo(
    () =>
      new Set((search.hide ?? '').split(',').filter((name): name is AnyClass => CLASSES.includes(name as AnyClass))),
    [search.hide],
  );
  const filter: Filter = useMemo(
    () => ({ hidden, kind: search.kind, tool: search.tool, found }),
    [hidden, search.kind, search.tool, found],
  );
  const shownItems = useMemo(
    () => (hidesNothing(filter) ? items : items.filter((item) => itemPasses(item, filter))),
    [items, filter],
  );
  const shownRows = useMemo(
    () => (view === 'entries' ? rows.filter((row) => passes(row, filter)) : []),
    [view, rows, filter],
  );
  const indexOfEntry = useMemo(() => indexBy(shownItems, shownRows, view === 'entries'), [shownItems, shownRows, view]);
  const itemOfEntry = useMemo(
    () => (view === 'entries' ? indexBy(items, [], false) : new Map<number, number>()),
    [items, view],
  );
  const count = view === 'entries' ? shownRows.length : shownItems.length;

  const list = useRef<ListControl>(undefined);
  const [raw, setRaw] = useState(false);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const seq = search.entry ?? firstSeq(view === 'entries' ? shownRows[0] : shownItems[0]);
  const row = rows[seq];
  const current = indexOfEntry.get(seq) ?? -1;
  const item = view === 'entries' ? items[itemOfEntry.get(seq) ?? -1] : shownItems[current];

  const go = (to: number, focus: boolean) => {
    set({ entry: Math.max(0, Math.min(rows.length - 1, to)) });
    const index = indexOfEntry.get(to);
    if (index !== undefined) list.current?.show(index, focus);
  };
  const goIndex = (index: number) => {
    const to = Math.max(0, Math.min(count - 1, index));
    const target = view === 'entries' ? shownRows[to]?.seq : shownItems[to]?.seq;
    if (target !== undefined) go(target, true);
  };
  const looks = useMemo(
    () =>
      [
        ...new Set([
          ...rows.filter(needsLook).map((one) => one.seq),
          ...(run.result?.report.bad_entry === undefined ? [] : [run.result.report.bad_entry]),
        ]),
      ].sort((a, b) => a - b),
    [rows, run.result],
  );
  const toggle = useCallback((id: string) => {
    setOpen((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);
  const fold = () => {
    if (item?.type === 'call') toggle(item.id);
  };
  useKeys(
    {
      j: () => {
        goIndex(current + 1);
      },
      k: () => {
        goIndex(current - 1);
      },
      o: fold,
      Enter: fold,
      '[': () => {
        go(seq - 1, false);
      },
      ']': () => {
        go(seq + 1, false);
      },
      n: () => {
        const next = looks.find((one) => one > seq) ?? looks[0];
        if (next !== undefined) go(next, true);
      },
      p: () => {
        const before = looks.findLast((one) => one < seq) ?? looks.at(-1);
        if (before !== undefined) go(before, true);
      },
      r: () => {
        setRaw(true);
      },
      c: () => {
        if (row !== undefined)
          void hashInWorker(bytes.line(row)).then((hash) =>
            copyText(evidenceOf(at.machine, at.session, row, bytes, hash)),
          );
      },
      f: () => document.getElementById('entry-filter')?.querySelector('button')?.focus(),
      v: props.onCheck,
    },
    (entry) => {
      go(entry, true);
    },
  );
  useFind({
    placeholder: 'Find in this session',
    value: search.q ?? '',
    onChange: (q) => {
      set({ q: q === '' ? undefined : q });
    },
  });

  const [range, setRange] = useState<readonly [number, number]>([0, 0]);
  const onRange = useCallback((first: number, last: number) => {
    setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
  }, []);
  const counts = useMemo(() => countClasses(rows), [rows]);
  const context: StoryContext = {
    bytes,
    agent: agentName(page.agent),
    effects: counts.effect,
    decisions: counts.decision,
    // While entries are still to be read, nobody knows that a result never came.
    isOver:
      run.phase === 'done' &&
      (page.state !== 'open' || rows.some((one) => one.kind === 'session.end' && one.class === 'recorder')),
    bad:
      run.result?.report.bad_entry === undefined
        ? undefined
        : { entry: run.result.report.bad_entry, reason: run.result.report.reason ?? 'broken' },
    isOpen: (id) => open.has(id),
    toggle,
    select: (to) => {
      go(to, false);
    },
  };
  const isList = view === 'story' || view === 'entries';
  return (
    <>
      <Panel label="Whole session">
        {isList && items.length > 0 && (
          <TimeAxis
            items={items}
            whole={run.phase === 'done'}
            window={windowOf(view === 'story' ? shownItems : [], range)}
            onSelect={(to) => go(to, false)}
          />
        )}
        <FilterBar
          search={search}
          set={set}
          rows={rows}
          hidden={hidden}
          receipts={run.receipts.size}
          segments={page.segments.length}
          looks={looks.length}
          ruled={isList && items.length > 0}
        />
      </Panel>
      {!isList && props.children}
      {isList && (
        <div className={layout.aside}>
          <div>
            <h2 className="sr">{view === 'story' ? 'Story' : 'Entries'}</h2>
            {rows.length === 0 && run.phase === 'fetching' && <Loading what="entries" rows={8} />}
            {rows.length > 0 && count === 0 && (
              <Panel label="Nothing shown">
                <Empty
                  icon="filter"
                  title={search.q !== undefined && found === undefined ? 'Looking …' : 'No entry matches'}
                  action={
                    <Button
                      onClick={() => {
                        set({ hide: undefined, kind: undefined, tool: undefined, q: undefined });
                      }}
                    >
                      Clear filters
                    </Button>
                  }
                >
                  <p>{rows.length.toLocaleString('en')} entries are there; the filters hide them all.</p>
                </Empty>
              </Panel>
            )}
            {view === 'story' && count > 0 && (
              <VirtualList
                count={count}
                estimate={56}
                current={current}
                label="Story"
                control={list}
                onRange={onRange}
                keyOf={(index) => itemKey(shownItems[index])}
                className={(index) =>
                  cx(
                    css.event,
                    isInLane(shownItems[index]) && css.lane,
                    index === 0 && css.first,
                    index === count - 1 && css.last,
                  )
                }
                onSelect={(index) => {
                  set({ entry: shownItems[index]?.seq });
                }}
                render={(index) => {
                  const shown = shownItems[index];
                  return shown === undefined ? null : <StoryItem item={shown} context={context} />;
                }}
              />
            )}
            {view === 'entries' && count > 0 && (
              <Panel label="Entries">
                <VirtualList
                  count={count}
                  estimate={32}
                  current={current}
                  label="Entries"
                  control={list}
                  onRange={onRange}
                  keyOf={(index) => shownRows[index]?.seq ?? index}
                  className={() => css.entry}
                  onSelect={(index) => {
                    set({ entry: shownRows[index]?.seq });
                  }}
                  render={(index) => {
                    const shown = shownRows[index];
                    if (shown === undefined) return null;
                    return (
                      <>
                        <span className={css.seq}>#{shown.seq.toLocaleString('en')}</span>
                        <span className="mute">{shown.time !== undefined && <Time at={shown.time} plain />}</span>
                        <span>
                          <ClassChip of={shown.class} />
                        </span>
                        <code className="cut">{shown.kind ?? shown.fault}</code>
                        <span className="cut dim">
                          {shown.tool !== undefined && (
                            <b>
                              <Said text={`${shown.tool} `} />
                            </b>
                          )}
                          {shown.text !== undefined && <Said text={shown.text} />}
                        </span>
                      </>
                    );
                  }}
                />
              </Panel>
            )}
          </div>
          {row !== undefined && (
            <Inspector
              key={row.seq}
              row={row}
              rows={rows}
              item={item}
              bytes={bytes}
              machine={at.machine}
              session={at.session}
              result={run.result}
              failed={run.phase === 'failed'}
              onSelect={(to) => {
                go(to, false);
              }}
              raw={raw}
              onRaw={setRaw}
            />
          )}
        </div>
      )}
    </>
  );
}
