import type { Proof } from '../../check/proofs.js';
import { Call } from '../../ui/Evidence.js';
import { Icon } from '../../ui/Icon.js';
import { layout, Panel } from '../../ui/Panel.js';
import { Words } from '../../ui/Words.js';
import type { CheckpointResult, SessionResult } from '../../worker/protocol.js';
import { InclusionPanel } from './Inclusion.js';
import type { Row } from '../../worker/row.js';
import { BadEntry } from './BadEntry.js';
import { Recomputed } from './Steps.js';
import css from './verification.module.css';

/** What a report rests on and what was not checked stand side by side, at the same size; then how, step by step. */
export function ReportView(props: {
  result: Proof<SessionResult>;
  receipts: readonly Uint8Array[];
  checkpoint?: Proof<CheckpointResult> | undefined;
  /** Rows and bytes of the log where they were kept: they show what stands in a bad entry. */
  rows?: readonly Row[];
  parts?: readonly Uint8Array[];
}) {
  const { result } = props;
  const { report } = result;
  return (
    <div className="stack stack-4">
      {report.bad_entry !== undefined && (
        <BadEntry report={report} row={props.rows?.[report.bad_entry]} parts={props.parts ?? []} />
      )}
      {result.head_usable === false && (
        <Call kind="warn">
          <b>The head file counted for nothing</b>
          <span className="small">
            It is not one JSON object with the counts entries and bytes and a hash of 64 hex digits. The log was
            verified without it.
          </span>
        </Call>
      )}
      <div className={css.two}>
        <Panel title="What it rests on">
          <Sentences of={report.rests_on} none="Nothing: no success to speak of." icon="key" />
        </Panel>
        <Panel title="What was not checked">
          <Sentences of={report.not_checked} none="Nothing that this version knows of." icon="v-none" />
        </Panel>
      </div>
      <Recomputed
        result={result}
        checkpoint={props.checkpoint}
        detached={props.rows?.reduce((sum, row) => sum + (row.detached ?? 0), 0)}
      />
      {props.receipts.length > 0 && <InclusionPanel receipts={props.receipts} report={report} vkeys={result.vkeys} />}
    </div>
  );
}

function Sentences(props: { of: readonly string[]; none: string; icon: 'key' | 'v-none' }) {
  if (props.of.length === 0) return <p className="pad small mute">{props.none}</p>;
  return (
    <ul className={layout.list}>
      {props.of.map((text) => (
        <li key={text}>
          <Icon name={props.icon} size="small" />
          <Sentence text={text} />
        </li>
      ))}
    </ul>
  );
}

/** What stands before the first colon is the subject: in bold, so that the list can be skimmed. */
function Sentence({ text }: { text: string }) {
  const cut = text.indexOf(': ');
  const upper = (part: string) => part.charAt(0).toUpperCase() + part.slice(1);
  if (cut < 0)
    return (
      <span>
        <Words text={upper(text)} />.
      </span>
    );
  return (
    <span>
      <b className="strong">{upper(text.slice(0, cut))}.</b> <Words text={upper(text.slice(cut + 2))} />.
    </span>
  );
}
