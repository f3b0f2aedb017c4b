import type { MachineRow, SessionRow } from '@nd7/vault-api';
import { runOf } from '../../check/runs.js';
import { cx } from '../../ui/cx.js';
import { CLASSES, ClassChip, Verdict } from '../../ui/Evidence.js';
import type { useRowFocus } from '../../ui/grid.js';
import { shortHash } from '../../ui/short-hash.js';
import { Link } from '../../ui/router.js';
import { Said } from '../../ui/Said.js';
import table from '../../ui/table.module.css';
import { Time } from '../../ui/Time.js';
import { duration } from '../../ui/time-words.js';
import { machineName } from '../machines/name.js';
import { agentName } from './agents.js';
import { CheckedHere } from './checked.js';
import css from './sessions.module.css';

/** The rows; on a narrow screen each is a card. */
export function SessionsTable(props: {
  rows: readonly SessionRow[];
  machines: readonly MachineRow[];
  rowProps: ReturnType<typeof useRowFocus>['rowProps'];
  onOpen: (row: SessionRow) => void;
}) {
  return (
    <div className={css.wide}>
      <table className={table.table} role="grid" aria-label="Sessions" aria-rowcount={props.rows.length}>
        <thead>
          <tr>
            <th scope="col">Checked here</th>
            <th scope="col">Session</th>
            <th scope="col" aria-sort="descending">
              Started
            </th>
            {CLASSES.slice(0, 4).map((name) => (
              <th key={name} scope="col" className={cx('num', css.classes)}>
                <ClassChip of={name} />
              </th>
            ))}
            <th scope="col" className="num">
              Entries
            </th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, i) => (
            <tr
              key={`${row.machine}/${row.session}`}
              {...props.rowProps(i)}
              className={css.row}
              onDoubleClick={() => {
                props.onOpen(row);
              }}
            >
              <td className="nowrap">
                <CheckedHere row={row} run={runOf(row)} />
              </td>
              <td className={cx(table.main, table.full)}>
                <Link
                  to="/machines/$machine/sessions/$session"
                  params={{ machine: row.machine, session: row.session }}
                  tabIndex={-1}
                >
                  <span className="mono" title={row.session}>
                    {shortHash(row.session)}
                  </span>
                </Link>
                <span className={table.sub}>
                  <Said text={machineName(row.machine, props.machines, row.machine_name)} /> · {agentName(row.agent)}
                </span>
              </td>
              <td className="nowrap">
                {row.started === null ? (
                  <span className="mute">no time</span>
                ) : (
                  <Time at={row.started} as="list" plain />
                )}
                <span className={table.sub}>{lasted(row)}</span>
              </td>
              {CLASSES.slice(0, 4).map((name) => (
                <td key={name} className={cx('num', css.classes)}>
                  <Count of={row.counts[name]} />
                </td>
              ))}
              <td className="num" data-label="Entries">
                <Count of={row.entries} />
              </td>
              <td className={css.state}>
                <State row={row} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Count({ of }: { of: number }) {
  return <span className={of === 0 ? table.zero : undefined}>{of.toLocaleString('en')}</span>;
}

function lasted(row: SessionRow): string {
  if (row.started === null || row.last_time === null) return '';
  return duration(Date.parse(row.last_time) - Date.parse(row.started));
}

function State({ row }: { row: SessionRow }) {
  if (row.state === 'forked') return <Verdict shape="bad">forked</Verdict>;
  if (row.state === 'open') return <span className="strong">open</span>;
  if (row.close_reason === 'lost') return <Verdict shape="warn">broken off</Verdict>;
  return <span className="mute">{row.close_reason === 'continued' ? 'continued' : 'closed'}</span>;
}
