import { askAgain, useMachines } from '../../api/queries.js';
import { Verdict } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { PageHead, Panel } from '../../ui/Panel.js';
import { Link } from '../../ui/router.js';
import { Said } from '../../ui/Said.js';
import { Empty, Loading, Trouble } from '../../ui/states.js';
import table from '../../ui/table.module.css';
import { Time } from '../../ui/Time.js';

/** The team's machines, as the vault lists them. */
export function MachinesPage() {
  const list = useMachines();
  const machines = list.data?.machines ?? [];
  return (
    <>
      <PageHead
        title="Machines"
        lede={
          <p className="small">
            All of this is the vault’s word. What a machine’s key signed stands in its sessions’ receipts.
          </p>
        }
      />
      {list.error !== null && <Trouble error={list.error} since={list.dataUpdatedAt} onRetry={askAgain} />}
      <Panel label="Machines">
        {list.isPending && <Loading what="machines" />}
        {list.data !== undefined && machines.length === 0 && (
          <Empty icon="laptop" title="No machine yet">
            <p>
              Whoever runs the vault makes a one-time token; on the machine it is used with{' '}
              <code>nd7 enrol URL TOKEN</code>.
            </p>
          </Empty>
        )}
        {machines.length > 0 && (
          <div className="scroll">
            <table className={table.table}>
              <thead>
                <tr>
                  <th scope="col">Machine</th>
                  <th scope="col">Key</th>
                  <th scope="col">Enrolled</th>
                  <th scope="col">Last seen</th>
                  <th scope="col" className="num">
                    Sessions
                  </th>
                  <th scope="col">State</th>
                </tr>
              </thead>
              <tbody>
                {machines.map((machine) => (
                  <tr key={machine.machine}>
                    <td className={table.main}>
                      <Link to="/sessions" search={{ machine: machine.machine }}>
                        <Said text={machine.name} />
                      </Link>
                    </td>
                    <td>
                      <Hash hex={machine.machine} name="machine key" />
                    </td>
                    <td data-label="Enrolled">
                      <Time at={machine.enrolled} as="list" plain />
                    </td>
                    <td data-label="Seen">
                      {machine.last_seen === null ? (
                        <span className="mute">never</span>
                      ) : (
                        <Time at={machine.last_seen} as="list" plain />
                      )}
                    </td>
                    <td className="num" data-label="Sessions">
                      {machine.sessions.toLocaleString('en')}
                    </td>
                    <td>
                      {machine.revoked === undefined ? (
                        <Verdict shape="says">enrolled</Verdict>
                      ) : (
                        <Verdict shape="none">
                          revoked <Time at={machine.revoked} as="day" plain />
                        </Verdict>
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
