import type { SessionRow } from '@nd7/vault-api';
import { useMemo, useState, useSyncExternalStore } from 'react';
import { askAgain, useMachines, useMe, useNewest, useSessions } from '../../api/queries.js';
import { runOf, startRun, subscribeRuns } from '../../check/runs.js';
import { useFind } from '../../shell/find.js';
import { useKeys } from '../../shell/keys.js';
import { usePin } from '../../trust/pins.js';
import { Button } from '../../ui/controls.js';
import { useRowFocus } from '../../ui/grid.js';
import { Icon } from '../../ui/Icon.js';
import { layout, PageHead, Panel } from '../../ui/Panel.js';
import { useNavigate, useSearch } from '../../ui/router.js';
import { Empty, Loading, Trouble } from '../../ui/states.js';
import { checkedOf } from './checked.js';
import { ActiveFilters, Facets } from './Filters.js';
import { type SessionsSearch, vaultQuery } from './search.js';
import css from './sessions.module.css';
import { SessionsTable } from './SessionsTable.js';

/** The list of sessions: what the vault says of them, and what this browser has checked. All filters stand in the address. */
export function SessionsPage() {
  const search: SessionsSearch = useSearch({ from: '/sessions' });
  const navigate = useNavigate();
  const set = (change: SessionsSearch) =>
    void navigate({
      to: '/sessions',
      search: (before) => ({ ...before, ...change }),
      replace: true,
      resetScroll: false,
    });
  const clear = () => void navigate({ to: '/sessions', search: {} });

  const query = useMemo(() => vaultQuery(search), [search]);
  const list = useSessions(query);
  const machines = useMachines();
  const loaded = useMemo(() => list.data?.pages.flatMap((page) => page.sessions) ?? [], [list.data]);
  useSyncExternalStore(subscribeRuns, () => checkedVersion(loaded));
  const rows = loaded.filter((row) => matches(row, search));

  const [selected, select] = useState(-1);
  const grid = useRowFocus(rows.length, selected, select);
  const verify = useVerifyRows();
  useFind({
    placeholder: 'Find by session, machine or agent',
    value: search.q ?? '',
    onChange: (q) => {
      set({ q: q === '' ? undefined : q });
    },
  });
  const current = rows[selected];
  const open = (row: SessionRow) =>
    void navigate({
      to: '/machines/$machine/sessions/$session',
      params: { machine: row.machine, session: row.session },
    });
  useKeys({
    j: () => {
      if (selected === rows.length - 1 && list.hasNextPage) void list.fetchNextPage();
      grid.move(selected + 1);
    },
    k: () => {
      grid.move(selected - 1);
    },
    Enter: current && (() => open(current)),
    v: current && (() => void verify.start([current])),
    f: () => document.getElementById('facets')?.querySelector('input')?.focus(),
  });

  const hidden = Object.values(search).filter((value) => value !== undefined).length;
  return (
    <>
      <PageHead title="Sessions">
        <KeyHints />
      </PageHead>
      <Panel>
        <div className={layout.filterbar}>
          <Icon name="filter" size="small" />
          <ActiveFilters search={search} set={set} machines={machines.data?.machines ?? []} />
          <span className="end small mute nowrap">
            {list.data !== undefined && (
              <>
                <b className="strong">{rows.length.toLocaleString('en')}</b> of {loaded.length.toLocaleString('en')}{' '}
                loaded
              </>
            )}
          </span>
          <Button disabled={rows.length === 0 || verify.going} onClick={() => void verify.start(rows)}>
            <Icon name="shield" size="small" />
            {verify.going
              ? `Checking ${String(verify.done)} of ${String(verify.all)}`
              : rows.length === 0
                ? 'Verify'
                : rows.length === 1
                  ? 'Verify this 1'
                  : `Verify these ${rows.length.toLocaleString('en')}`}
          </Button>
        </div>
      </Panel>
      <div className={layout.facets}>
        <Facets
          search={search}
          set={set}
          rows={list.data === undefined ? undefined : loaded}
          machines={machines.data?.machines ?? []}
        />
        <div className="stack stack-4">
          {list.error !== null && <Trouble error={list.error} since={list.dataUpdatedAt} onRetry={askAgain} />}
          <NewRows query={query} loaded={loaded} onShow={() => void list.refetch()} />
          {(list.isPending || list.data !== undefined) && (
            <Panel
              label="Sessions"
              footer={
                <>
                  <span>
                    {list.isPending
                      ? 'loading'
                      : `${loaded.length.toLocaleString('en')} loaded${list.hasNextPage ? ', more there are' : ''}`}
                  </span>
                  {list.hasNextPage && (
                    <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                      Load more
                    </Button>
                  )}
                  <span className="end">Sealed is the vault’s word until it is checked here</span>
                </>
              }
            >
              {list.isPending ? (
                <Loading what="sessions" rows={6} />
              ) : rows.length > 0 ? (
                <SessionsTable
                  rows={rows}
                  machines={machines.data?.machines ?? []}
                  rowProps={grid.rowProps}
                  onOpen={open}
                />
              ) : (
                <NoRows filters={hidden} loaded={loaded.length} more={list.hasNextPage} onClear={clear} />
              )}
            </Panel>
          )}
        </div>
      </div>
    </>
  );
}

function KeyHints() {
  return (
    <div className={`row hide-m ${css.hints ?? ''}`}>
      <span>
        Move <kbd>J</kbd> <kbd>K</kbd>
      </span>
      <span>
        Open <kbd>Enter</kbd>
      </span>
      <span>
        Verify <kbd>V</kbd>
      </span>
      <span>
        Filter <kbd>F</kbd>
      </span>
    </div>
  );
}

function NoRows(props: { filters: number; loaded: number; more: boolean; onClear: () => void }) {
  if (props.filters === 0) {
    return (
      <Empty icon="list" title="No session yet">
        <p>
          A machine that is enrolled ships what it records by itself: <code>nd7 enrol URL TOKEN</code>, then{' '}
          <code>nd7 init</code>.
        </p>
      </Empty>
    );
  }
  return (
    <Empty icon="filter" title="No session matches" action={<Button onClick={props.onClear}>Clear filters</Button>}>
      <p>
        {props.filters === 1 ? 'One filter hides' : `${String(props.filters)} filters hide`}{' '}
        {props.loaded === 0 ? 'what there may be' : `all ${props.loaded.toLocaleString('en')} that are loaded`}
        {props.more ? '; more can be loaded' : ''}.
      </p>
    </Empty>
  );
}

/** Says that there is something new; the list itself never moves under the reader. */
function NewRows(props: { query: ReturnType<typeof vaultQuery>; loaded: readonly SessionRow[]; onShow: () => void }) {
  const newest = useNewest(props.query, props.loaded.length > 0);
  const known = new Map(props.loaded.map((row) => [`${row.machine}/${row.session}`, row]));
  const changed = (newest.data?.sessions ?? []).filter((row) => {
    const old = known.get(`${row.machine}/${row.session}`);
    return old?.head !== row.head || old.state !== row.state;
  }).length;
  if (changed === 0) return null;
  return (
    <div className="row" role="status">
      <Button onClick={props.onShow}>
        <Icon name="down" size="small" />
        {changed === 1
          ? '1 session is new or has grown'
          : `${changed.toLocaleString('en')} sessions are new or have grown`}
        : show
      </Button>
    </div>
  );
}

function matches(row: SessionRow, search: SessionsSearch): boolean {
  if (search.checked !== undefined && checkedOf(row, runOf(row)) !== search.checked) return false;
  if (search.state !== undefined && row.state !== search.state) return false;
  if (search.machine !== undefined && row.machine !== search.machine) return false;
  if (search.agent !== undefined && row.agent !== search.agent) return false;
  const words = search.q?.trim().toLowerCase() ?? '';
  return (
    words === '' ||
    [row.session, row.machine_name, row.machine, row.agent ?? ''].some((text) => text.toLowerCase().includes(words))
  );
}

/** A number that changes when a verdict of a listed session does. */
function checkedVersion(rows: readonly SessionRow[]): string {
  return rows.map((row) => runOf(row)?.version ?? '').join();
}

/** Checks sessions one after another in this browser. */
function useVerifyRows() {
  const me = useMe();
  const pin = usePin(me.data?.origin);
  const [state, setState] = useState({ going: false, done: 0, all: 0 });
  return {
    ...state,
    async start(rows: readonly SessionRow[]) {
      setState({ going: true, done: 0, all: rows.length });
      for (const [i, row] of rows.entries()) {
        await startRun(
          { machine: row.machine, session: row.session },
          { vkeys: pin === undefined ? [] : [pin.vkey], rows: false },
        );
        setState({ going: true, done: i + 1, all: rows.length });
      }
      setState({ going: false, done: 0, all: 0 });
    },
  };
}
