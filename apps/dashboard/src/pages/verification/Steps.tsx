import type { ReactNode } from 'react';
import { type AnyProof, type Claim, coveredBy, type Proof } from '../../check/proofs.js';
import { Icon } from '../../ui/Icon.js';
import { Panel } from '../../ui/Panel.js';
import { ProvenIcon } from '../../ui/Proof.js';
import { duration } from '../../ui/time-words.js';
import type { CheckpointResult, SessionResult } from '../../worker/protocol.js';
import { bytesWords } from '../session/SessionHead.js';
import css from './verification.module.css';

type Otherwise = 'warn' | 'bad' | 'none';
const n = (count: number) => count.toLocaleString('en');

/** What this browser did, one line for each kind of check. */
export function Recomputed(props: {
  result: Proof<SessionResult>;
  checkpoint: Proof<CheckpointResult> | undefined;
  detached: number | undefined;
}) {
  const { result, checkpoint, detached } = props;
  const { report } = result;
  const held = report.receipts.filter((receipt) => receipt.result === 'holds');
  const failed = report.receipts.find((receipt) => receipt.result !== 'holds' && receipt.result !== 'not-checked');
  const covered = coveredBy(report);
  const indexes = held.map((receipt) => Number(receipt.index)).sort((a, b) => a - b);
  const receiptsElse: Otherwise = failed !== undefined ? 'bad' : 'none';
  return (
    <Panel
      title="What was recomputed"
      end={
        <span className="small mute">
          {bytesWords(result.bytes)} in {duration(result.took_ms)}, signatures by{' '}
          {result.signatures === 'webcrypto' ? 'this browser’s own crypto' : 'plain JavaScript'}
        </span>
      }
    >
      <ol className={css.steps}>
        <Step
          name="Chain"
          by={result}
          claim="integrity"
          otherwise={report.integrity.state === 'bad' ? 'bad' : 'warn'}
          end={report.reason}
        >
          {n(report.lines)} {report.lines === 1 ? 'line' : 'lines'}, BLAKE3, from the genesis link
          {report.integrity.state === 'part' ? '; nothing signed stands behind all of it' : ''}
        </Step>
        <Step
          name="Seals"
          by={result}
          claim="seals"
          otherwise={report.reason === 'bad-seal' ? 'bad' : report.seals.seals === 0 ? 'none' : 'warn'}
          end={report.seals.first_key === 'not-pinned' ? 'first key not pinned' : undefined}
        >
          {report.seals.seals === 0
            ? 'none: the log is not sealed'
            : `${n(report.seals.seals)} Ed25519, each names the next key`}
          {report.seals.tail > 0 && report.seals.seals > 0
            ? `; unsealed tail: ${n(report.seals.tail)} ${report.seals.tail === 1 ? 'entry' : 'entries'}`
            : ''}
        </Step>
        <Step name="Receipts" by={result} claim="covered" otherwise={receiptsElse} end={failed?.result}>
          {report.receipts.length === 0
            ? 'none was given'
            : result.vkeys.length === 0
              ? `${n(report.receipts.length)} given; no key is pinned`
              : `${n(held.length)} of ${n(report.receipts.length)} hold`}
          {held[0]?.origin !== undefined ? `, origin ${held[0].origin}` : ''}
        </Step>
        <Step name="Inclusion" by={result} claim="covered" otherwise={receiptsElse}>
          {indexes.length === 0
            ? 'no leaf was shown to be in a signed tree'
            : `${n(indexes.length)} ${indexes.length === 1 ? 'leaf' : 'leaves'}, ${n(indexes[0] ?? 0)}${indexes.length > 1 ? ` to ${n(indexes.at(-1) ?? 0)}` : ''}`}
        </Step>
        <Step
          name="Machine"
          by={result}
          claim="authenticity"
          otherwise={
            report.authenticity.state === 'bad' ? 'bad' : report.authenticity.state === 'part' ? 'warn' : 'none'
          }
        >
          {held.length === 0
            ? 'no statement of the machine was checked'
            : `${n(held.length)} ${held.length === 1 ? 'statement' : 'statements'} signed by its key`}
        </Step>
        {checkpoint !== undefined && (
          <Step
            name="Consistency"
            by={checkpoint}
            claim="consistency"
            otherwise={checkpoint.ok ? 'warn' : 'bad'}
            end={checkpoint.reason}
          >
            {consistencyWords(checkpoint)}
          </Step>
        )}
        {report.entries > covered && report.verdict === 'intact' && (
          <Step name="Tail" by={undefined} claim="covered" otherwise="warn">
            entries {n(covered)} to {n(report.entries - 1)}:{' '}
            {failed === undefined ? 'no receipt yet' : 'no receipt that holds'}
          </Step>
        )}
        {detached !== undefined && detached > 0 && (
          <Step name="Detached" by={undefined} claim="covered" otherwise="none">
            {n(detached)} {detached === 1 ? 'value' : 'values'}: not here, the chain holds the salted{' '}
            {detached === 1 ? 'hash' : 'hashes'}
          </Step>
        )}
      </ol>
    </Panel>
  );
}

function consistencyWords(checkpoint: CheckpointResult): string {
  const size = n(checkpoint.size ?? 0);
  const before = n(checkpoint.before?.size ?? 0);
  if (!checkpoint.ok) return `the log’s checkpoint of ${size} leaves does not stand`;
  switch (checkpoint.against) {
    case 'first':
      return `the log’s checkpoint of ${size} leaves is the first this browser saw`;
    case 'same':
      return `the log’s checkpoint of ${size} leaves is the one seen before`;
    case 'extends':
      return `${before} leaves are a prefix of ${size}`;
    case 'unproved':
      return `not shown that ${before} leaves are a prefix of ${size}`;
  }
}

function Step(props: {
  name: string;
  by: AnyProof | undefined;
  claim: Claim;
  otherwise: Otherwise;
  end?: ReactNode;
  children: ReactNode;
}) {
  const look = { warn: css.stepWarn, bad: css.stepBad, none: css.stepNone }[props.otherwise];
  return (
    <li className={look}>
      <ProvenIcon by={props.by} claim={props.claim} otherwise={<Icon name={`v-${props.otherwise}`} />} />
      <b>{props.name}</b>
      <span className="dim">{props.children}</span>
      <span className="mute nowrap">{props.end}</span>
    </li>
  );
}
