import { useState } from 'react';
import type { Proof } from '../../check/proofs.js';
import { hashInWorker } from '../../check/worker-client.js';
import { Modal } from '../../ui/base.js';
import { Button, copyText } from '../../ui/controls.js';
import { ClassChip, Verdict } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { Facts } from '../../ui/Panel.js';
import { Proven } from '../../ui/Proof.js';
import { useQuery } from '../../ui/query.js';
import { Said } from '../../ui/Said.js';
import { Time } from '../../ui/Time.js';
import { utcText } from '../../ui/time-words.js';
import type { SessionResult } from '../../worker/protocol.js';
import type { Row } from '../../worker/row.js';
import type { SessionBytes } from './bytes.js';
import css from './inspector.module.css';
import { entryOf, layOut } from './payload.js';
import { type Item, rowsOf } from './story.js';

const decoder = new TextDecoder();

/** All about one entry: its members, its hash made here, what it rests on, the other entries of its call, its payload as it was said. */
export function Inspector(props: {
  row: Row;
  rows: readonly Row[];
  item: Item | undefined;
  bytes: SessionBytes;
  machine: string;
  session: string;
  result: Proof<SessionResult> | undefined;
  /** The check was given up: bytes could not be had. */
  failed: boolean;
  onSelect: (seq: number) => void;
  raw: boolean;
  onRaw: (open: boolean) => void;
}) {
  const { row, bytes } = props;
  const entry = entryOf(bytes, row);
  const hash = useEntryHash(props.machine, props.session, row, bytes);
  const siblings = props.item === undefined ? [] : rowsOf(props.item).filter((other) => other.seq !== row.seq);
  const [whole, setWhole] = useState(false);
  const payload = entry?.view.data === undefined ? '' : layOut(entry.view.data);
  return (
    <aside className={css.inspector} aria-label={`Entry ${String(row.seq)}`}>
      <header>
        <h2>Entry {row.seq.toLocaleString('en')}</h2>
        <ClassChip of={row.class} />
        <span className="end row hide-m">
          <kbd>[</kbd>
          <kbd>]</kbd>
        </span>
      </header>
      <div className="pad stack stack-4">
        <Facts
          rows={[
            row.kind !== undefined && ['Kind', <code key="k">{row.kind}</code>],
            entry?.view.source !== undefined && ['Source', <code key="s">{entry.view.source}</code>],
            row.event !== undefined && [
              'Event',
              <code key="e">
                <Said text={row.event} />
              </code>,
            ],
            row.call !== undefined && [
              'Call',
              <code key="c">
                <Said text={row.call} />
              </code>,
            ],
            row.agent !== undefined && [
              'Subagent',
              <code key="a">
                <Said text={row.agent} />
              </code>,
            ],
            row.time !== undefined && ['Taken', <Time key="t" at={row.time} as="millis" />],
            ['Size', `${(row.end - row.start).toLocaleString('en')} bytes`],
            entry?.view.prev !== undefined && ['Link', <Hash key="l" hex={entry.view.prev} name="previous hash" />],
            [
              'Hash',
              hash === undefined ? (
                <span key="h" className="mute">
                  …
                </span>
              ) : (
                <Hash key="h" hex={hash} name="entry hash" />
              ),
            ],
          ]}
        />
        <div className="stack">
          <h3>Rests on</h3>
          <RestsOn row={row} rows={props.rows} result={props.result} failed={props.failed} />
        </div>
        {siblings.length > 0 && (
          <div className="stack">
            <h3>Same call</h3>
            <ul className={css.links}>
              {siblings.map((other) => (
                <li key={other.seq}>
                  <ClassChip of={other.class} />
                  <button
                    type="button"
                    onClick={() => {
                      props.onSelect(other.seq);
                    }}
                  >
                    #{other.seq.toLocaleString('en')} {other.kind}
                  </button>
                </li>
              ))}
            </ul>
          </div>
        )}
        {payload !== '' && (
          <div className="stack">
            <h3>Payload, as it was said</h3>
            <pre className={css.payload} tabIndex={0} aria-label="Payload">
              <Said text={whole ? payload : payload.slice(0, 3000)} lines />
            </pre>
            {payload.length > 3000 && !whole && (
              <Button
                onClick={() => {
                  setWhole(true);
                }}
              >
                All {payload.length.toLocaleString('en')} characters
              </Button>
            )}
          </div>
        )}
        <div className="row wrap">
          <Button
            onClick={() => {
              props.onRaw(true);
            }}
          >
            Raw line <kbd>R</kbd>
          </Button>
          <Button onClick={() => void copyText(evidenceOf(props.machine, props.session, row, bytes, hash))}>
            Copy <kbd>C</kbd>
          </Button>
        </div>
      </div>
      <Modal
        wide
        open={props.raw}
        onClose={() => {
          props.onRaw(false);
        }}
        title={`Entry ${row.seq.toLocaleString('en')}, the raw line`}
      >
        <p className="small dim">
          {(row.end - row.start).toLocaleString('en')} bytes, exactly as they are hashed; the line feed after them is
          not part of it.{' '}
          {hash !== undefined && (
            <>
              BLAKE3 <Hash hex={hash} name="entry hash" />
            </>
          )}
        </p>
        <pre className={css.raw} tabIndex={0} aria-label="Raw line">
          <Said text={decoder.decode(bytes.line(row))} />
        </pre>
        <p className="small mute">
          Check it by hand: <code>sed -n {row.seq + 1}p log.jsonl | tr -d &apos;\n&apos; | b3sum</code>
        </p>
      </Modal>
    </aside>
  );
}

/** An entry as evidence: where it stands, its hash, and the line itself. */
export function evidenceOf(
  machine: string,
  session: string,
  row: Row,
  bytes: SessionBytes,
  hash: string | undefined,
): string {
  return [
    `session ${session} of machine ${machine}`,
    `entry ${String(row.seq)}${row.time === undefined ? '' : `, taken ${utcText(row.time)}`}`,
    `blake3 ${hash ?? 'not computed'}`,
    decoder.decode(bytes.line(row)),
    '',
  ].join('\n');
}

function useEntryHash(machine: string, session: string, row: Row, bytes: SessionBytes): string | undefined {
  const { data } = useQuery({
    queryKey: ['entry-hash', machine, session, row.seq, row.start, row.end, bytes.length],
    queryFn: () => hashInWorker(bytes.line(row)),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  });
  return data;
}

function RestsOn(props: { row: Row; rows: readonly Row[]; result: Proof<SessionResult> | undefined; failed: boolean }) {
  const { row, rows, result } = props;
  if (result === undefined)
    return props.failed ? (
      <Verdict shape="none">not checked: bytes are missing</Verdict>
    ) : (
      <Verdict shape="run">not yet checked to the end</Verdict>
    );
  const { report } = result;
  const bad = report.bad_entry;
  if (bad === row.seq) return <Verdict shape="bad">{report.reason}</Verdict>;
  if (bad !== undefined && row.seq > bad)
    return <Verdict shape="none">not read: entry {bad.toLocaleString('en')} before it fails</Verdict>;
  const covering = report.receipts
    .filter((receipt) => receipt.result === 'holds' && (receipt.to ?? 0) > row.seq)
    .sort((a, b) => (a.to ?? 0) - (b.to ?? 0))[0];
  const seal = rows.find((other) => other.seq >= row.seq && other.kind === 'seal' && other.class === 'recorder');
  const isSealed = seal !== undefined && report.seals.sealed_to !== null && seal.seq <= report.seals.sealed_to;
  return (
    <ul className={css.rests}>
      <li>
        <Proven
          by={result}
          claim={{ entry: row.seq }}
          otherwise={<Verdict shape="warn">link recomputed, no receipt covers it</Verdict>}
        >
          link recomputed
        </Proven>
      </li>
      {isSealed && (
        <li>
          <Proven
            by={result}
            claim={{ seal: seal.seq }}
            otherwise={<Verdict shape="warn">seal {seal.seq.toLocaleString('en')}, first key not pinned</Verdict>}
          >
            seal {seal.seq.toLocaleString('en')}
          </Proven>
        </li>
      )}
      {covering !== undefined && (
        <li>
          <Proven by={result} claim={{ entry: row.seq }}>
            receipt, leaf {covering.index?.toLocaleString('en')}
          </Proven>
        </li>
      )}
    </ul>
  );
}
