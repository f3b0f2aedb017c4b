import type { SessionPage } from '@nd7/vault-api';
import type { ReceiptReport } from '@nd7/verify';
import { useState } from 'react';
import type { Run } from '../../check/runs.js';
import { Modal } from '../../ui/base.js';
import { Button, CopyButton } from '../../ui/controls.js';
import { Verdict } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { Panel } from '../../ui/Panel.js';
import { Proven } from '../../ui/Proof.js';
import { Said } from '../../ui/Said.js';
import { Empty } from '../../ui/states.js';
import table from '../../ui/table.module.css';
import { Time } from '../../ui/Time.js';
import css from './inspector.module.css';

const decoder = new TextDecoder();
const number = (value: number | string | undefined) =>
  typeof value === 'number' ? value.toLocaleString('en') : (value ?? '');

/** The receipts of the session: what each covers, and whether it holds for the bytes that were read here. */
export function Receipts({ run }: { run: Run }) {
  const [open, setOpen] = useState<number>();
  const texts = [...run.receipts].map(([from, bytes]) => [from, decoder.decode(bytes)] as const);
  const reports = run.result?.report.receipts ?? [];
  const segments = run.page?.segments ?? [];
  if (texts.length === 0) {
    return (
      <Panel label="Receipts">
        <Empty icon="doc" title="No receipt yet">
          <p>The vault has not published one for this session. A segment counts when its receipt is there and holds.</p>
        </Empty>
      </Panel>
    );
  }
  return (
    <Panel
      label="Receipts"
      footer={
        run.skipped > 0
          ? `${number(run.skipped)} receipts between were not fetched: a later one covers the same entries`
          : undefined
      }
    >
      <div className="scroll">
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">Checked here</th>
              <th scope="col" className="num">
                Entries
              </th>
              <th scope="col" className="num">
                Leaf
              </th>
              <th scope="col" className="num">
                Of tree
              </th>
              <th scope="col">Log</th>
              <th scope="col">Received</th>
              <th scope="col">Receipt</th>
            </tr>
          </thead>
          <tbody>
            {texts.map(([from, text], i) => {
              const report = reports[i];
              return (
                <tr key={from}>
                  <td>
                    <ReceiptVerdict run={run} report={report} index={i} />
                  </td>
                  <td className="num" data-label="Entries">
                    {number(report?.from ?? from)} to{' '}
                    {number((report?.to ?? segments.find((s) => s.from === from)?.to ?? from + 1) - 1)}
                  </td>
                  <td className="num" data-label="Leaf">
                    {number(report?.index)}
                  </td>
                  <td className="num" data-label="of">
                    {number(report?.size)}
                  </td>
                  <td className={table.full}>
                    <code>{report?.origin}</code>
                  </td>
                  <td>{report?.received !== undefined && <Time at={report.received} as="list" plain />}</td>
                  <td>
                    <span className="row">
                      <Button
                        onClick={() => {
                          setOpen(from);
                        }}
                      >
                        Show
                      </Button>
                      <CopyButton text={text} label={`Copy the receipt of entries from ${String(from)}`} />
                    </span>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <Modal
        wide
        open={open !== undefined}
        onClose={() => {
          setOpen(undefined);
        }}
        title={`Receipt of the segment from entry ${number(open)}`}
      >
        <p className="small dim">
          A C2SP tlog-proof: the leaf, its place, the hashes beside its way to the root, and the signed checkpoint.
        </p>
        <pre className={css.raw} tabIndex={0} aria-label="Receipt">
          <Said text={texts.find(([from]) => from === open)?.[1] ?? ''} lines />
        </pre>
      </Modal>
    </Panel>
  );
}

/** The verdict on one receipt: held against the bytes that were read here. */
function ReceiptVerdict({ run, report, index }: { run: Run; report: ReceiptReport | undefined; index: number }) {
  if (run.result === undefined || report === undefined) return <Verdict shape="run">checking</Verdict>;
  if (report.result === 'not-checked') return <Verdict shape="none">not checked</Verdict>;
  if (report.result !== 'holds') return <Verdict shape="bad">{report.result}</Verdict>;
  return (
    <Proven by={run.result} claim={{ receipt: index }}>
      holds
    </Proven>
  );
}

/** The segments as the vault lists them: how the session was shipped. */
export function Segments({ page }: { page: SessionPage }) {
  return (
    <Panel label="Segments" footer="As the vault lists them. A cut ends in a seal and is signed by the machine.">
      <div className="scroll">
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col" className="num">
                Entries
              </th>
              <th scope="col" className="num">
                Bytes
              </th>
              <th scope="col">Head before</th>
              <th scope="col">Head after</th>
              <th scope="col">Received</th>
              <th scope="col" className="num">
                Leaf
              </th>
              <th scope="col">Receipt</th>
            </tr>
          </thead>
          <tbody>
            {page.segments.map((segment) => (
              <tr key={segment.from}>
                <td className="num" data-label="Entries">
                  {number(segment.from)} to {number(segment.to - 1)}
                </td>
                <td className="num" data-label="Bytes">
                  {number(segment.bytes)}
                </td>
                <td data-label="From">
                  <Hash hex={segment.prev} name="head before" />
                </td>
                <td data-label="To">
                  <Hash hex={segment.head} name="head after" />
                </td>
                <td>
                  <Time at={segment.received} as="millis" plain />
                </td>
                <td className="num" data-label="Leaf">
                  {number(segment.leaf_index)}
                </td>
                <td>
                  {segment.receipt ? (
                    <Verdict shape="says">published</Verdict>
                  ) : (
                    <Verdict shape="none">not yet</Verdict>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
