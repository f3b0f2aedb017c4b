import { useState } from 'react';
import { askAgain, useIncidentPages, useMachines } from '../../api/queries.js';
import { useKeys } from '../../shell/keys.js';
import { Button, Segmented } from '../../ui/controls.js';
import { cx } from '../../ui/cx.js';
import { Verdict } from '../../ui/Evidence.js';
import { useRowFocus } from '../../ui/grid.js';
import { shortHash } from '../../ui/short-hash.js';
import { PageHead, Panel } from '../../ui/Panel.js';
import { Link, useNavigate, useSearch } from '../../ui/router.js';
import { Said } from '../../ui/Said.js';
import { Empty, Loading, Trouble } from '../../ui/states.js';
import table from '../../ui/table.module.css';
import { Time } from '../../ui/Time.js';
import { machineName } from '../machines/name.js';
import { incidentSentence, isCritical, overSentence } from './words.js';

/** What the vault found to be wrong, newest first. An alarm may be anybody's word: believing it costs nothing. */
export function IncidentsPage() {
  const { state } = useSearch({ from: '/incidents' });
  const list = useIncidentPages(state);
  const machines = useMachines();
  const navigate = useNavigate();
  const incidents = list.data?.pages.flatMap((page) => page.incidents) ?? [];
  const stillOpen = list.data?.pages[0]?.open;
  const [selected, select] = useState(-1);
  const grid = useRowFocus(incidents.length, selected, select);
  const nameOf = (machine: string) => machineName(machine, machines.data?.machines ?? []);
  const open = (id: string) => void navigate({ to: '/incidents/$id', params: { id } });
  const current = incidents[selected];
  useKeys({
    j: () => {
      grid.move(selected + 1);
    },
    k: () => {
      grid.move(selected - 1);
    },
    Enter:
      current &&
      (() => {
        open(current.id);
      }),
  });
  return (
    <>
      <PageHead title="Incidents">
        <Segmented
          label="Which"
          value={state ?? 'all'}
          options={[
            { value: 'all', text: 'All' },
            { value: 'open', text: stillOpen === undefined ? 'Open' : `Open ${stillOpen.toLocaleString('en')}` },
            { value: 'over', text: 'Over' },
          ]}
          onChange={(to) =>
            void navigate({ to: '/incidents', search: to === 'all' ? {} : { state: to }, replace: true })
          }
        />
      </PageHead>
      {list.error !== null && <Trouble error={list.error} since={list.dataUpdatedAt} onRetry={askAgain} />}
      <Panel
        label="Incidents"
        footer={
          list.hasNextPage && (
            <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              Load older
            </Button>
          )
        }
      >
        {list.isPending && <Loading what="incidents" />}
        {list.data !== undefined && incidents.length === 0 && (
          <Empty icon="fork" title={state === undefined ? 'No incident' : `No incident is ${state}`}>
            <p>The vault reports none. That is its word: what this browser checked stands with each session.</p>
          </Empty>
        )}
        {incidents.length > 0 && (
          <div className="scroll">
            <table className={table.table} role="grid" aria-label="Incidents">
              <thead>
                <tr>
                  <th scope="col">Kind</th>
                  <th scope="col">What happened</th>
                  <th scope="col">Session</th>
                  <th scope="col" className="num">
                    At count
                  </th>
                  <th scope="col">When</th>
                  <th scope="col">State</th>
                </tr>
              </thead>
              <tbody>
                {incidents.map((incident, i) => (
                  <tr key={incident.id} {...grid.rowProps(i)}>
                    <td className="nowrap">
                      <Verdict shape={isCritical(incident) ? 'bad' : 'warn'}>{incident.kind}</Verdict>
                    </td>
                    <td className={cx(table.main, table.full, table.sentence)}>
                      <Link to="/incidents/$id" params={{ id: incident.id }} tabIndex={-1}>
                        <Said text={incidentSentence(incident, nameOf(incident.machine))} />
                      </Link>
                      <span className={table.sub}>{incident.id}</span>
                    </td>
                    <td>{incident.session !== undefined && <code>{shortHash(incident.session)}</code>}</td>
                    <td className="num" data-label={incident.count === undefined ? undefined : 'at count'}>
                      {incident.count?.toLocaleString('en')}
                    </td>
                    <td>
                      <Time at={incident.at} as="list" plain />
                    </td>
                    <td className={table.state}>
                      <Verdict shape="says">{incident.state}</Verdict>
                      {incident.over !== undefined && (
                        <span className={table.sub}>
                          <Said text={overSentence(incident.over)} />
                        </span>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Panel>
    </>
  );
}
