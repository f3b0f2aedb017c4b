import type { ReceiptReport, SessionReport } from '@nd7/verify';
import { useState } from 'react';
import type { Proof } from '../../check/proofs.js';
import { inclusionInWorker } from '../../check/worker-client.js';
import { useKeys } from '../../shell/keys.js';
import { Button, controls } from '../../ui/controls.js';
import { cx } from '../../ui/cx.js';
import { Call, Verdict } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { Icon } from '../../ui/Icon.js';
import { Facts, Panel } from '../../ui/Panel.js';
import { Proven, provenClass } from '../../ui/Proof.js';
import { useQuery } from '../../ui/query.js';
import { Loading } from '../../ui/states.js';
import type { InclusionResult } from '../../worker/protocol.js';
import { ProofDrawing } from './ProofDrawing.js';
import draw from './proof-drawing.module.css';
import css from './verification.module.css';

const NOTHING = new Uint8Array(0);
const decoder = new TextDecoder();
const n = (count: number | string | undefined) =>
  typeof count === 'number' ? count.toLocaleString('en') : (count ?? '?');

/** The inclusion proof of one receipt after another, from the leaf to the signed root. */
export function InclusionPanel(props: {
  receipts: readonly Uint8Array[];
  report: SessionReport;
  vkeys: readonly string[];
}) {
  const [chosen, choose] = useState(props.receipts.length - 1);
  const receipt = props.receipts[chosen] ?? NOTHING;
  const { data: proof } = useQuery({
    queryKey: ['inclusion', decoder.decode(receipt), props.vkeys],
    queryFn: () => inclusionInWorker(receipt, props.vkeys),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  });
  const choice = props.receipts.length > 1 && (
    <select
      className={cx(controls.input, css.wide)}
      aria-label="Receipt"
      value={chosen}
      onChange={(event) => {
        choose(Number(event.currentTarget.value));
      }}
    >
      {props.receipts.map((_text, i) => (
        <option key={i} value={i}>
          {receiptName(props.report.receipts[i], i)}
        </option>
      ))}
    </select>
  );
  if (proof === undefined) {
    return (
      <Panel title="Inclusion proof, step by step" end={choice || undefined}>
        <Loading what="the proof" rows={3} />
      </Panel>
    );
  }
  return <Stepper key={chosen} proof={proof} choice={choice || undefined} />;
}

function receiptName(report: ReceiptReport | undefined, i: number): string {
  return report?.from === undefined
    ? `receipt ${String(i + 1)}`
    : `entries ${n(report.from)} to ${n((report.to ?? 1) - 1)}`;
}

function Stepper({ proof, choice }: { proof: Proof<InclusionResult>; choice: React.ReactNode }) {
  const last = proof.steps.length;
  const [step, setStep] = useState(0);
  const to = (next: number) => {
    setStep(Math.max(0, Math.min(last, next)));
  };
  useKeys({
    ArrowRight: () => {
      to(step + 1);
    },
    ArrowLeft: () => {
      to(step - 1);
    },
  });
  if (proof.leaf === undefined) {
    return (
      <Panel title="Inclusion proof, step by step" end={choice}>
        <div className="pad">
          <Call kind="bad">
            <b>bad-receipt</b>
            <span className="small">This is no receipt: there is no proof to step through.</span>
          </Call>
        </div>
      </Panel>
    );
  }
  return (
    <Panel
      title="Inclusion proof, step by step"
      note={`leaf ${n(proof.index)} of ${n(proof.size)}`}
      end={
        <>
          {choice}
          <Button square aria-label="Step back" aria-disabled={step === 0} onClick={() => to(step - 1)}>
            <Icon name="chev" flip />
          </Button>
          <span className="small strong nowrap" role="status">
            Step {step} of {last}
          </span>
          <Button square aria-label="Step on" aria-disabled={step === last} onClick={() => to(step + 1)}>
            <Icon name="chev" />
          </Button>
          <Button className="hide-m" onClick={() => to(last)}>
            <Icon name="play" size="small" />
            To the root
          </Button>
        </>
      }
      footer={
        <>
          <Key node={cx(draw.node, provenClass(proof, 'inclusion', 'node'))} round>
            recomputed here
          </Key>
          <Key node={cx(draw.node, draw.given)}>given, proved by the result</Key>
          <Key node={draw.node} round>
            not stepped through yet
          </Key>
          <span className="end hide-m">
            <kbd>←</kbd> <kbd>→</kbd>
          </span>
        </>
      }
    >
      <ProofDrawing proof={proof} step={step} onStep={to} />
      <div className={cx('pad', draw.ruled)}>
        <StepFacts proof={proof} step={step} />
      </div>
      <details className={cx('pad', draw.ruled)}>
        <summary className="small dim">The same as a table, and the statement that the leaf is</summary>
        <StepTable proof={proof} />
        <pre className={draw.statement} tabIndex={0} aria-label="The leaf’s statement">
          {proof.statement}
        </pre>
      </details>
    </Panel>
  );
}

function Key(props: { node: string | undefined; round?: boolean; children: React.ReactNode }) {
  return (
    <span className="row">
      <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
        {props.round ? (
          <circle className={props.node} cx="8" cy="8" r="6" />
        ) : (
          <rect className={props.node} x="2" y="2" width="12" height="12" rx="2" />
        )}
      </svg>
      {props.children}
    </span>
  );
}

function StepFacts({ proof, step }: { proof: Proof<InclusionResult>; step: number }) {
  const here = (name: string, hex: string) => (
    <>
      <Hash hex={hex} name={name} />{' '}
      <Proven
        by={proof}
        claim="inclusion"
        otherwise={<Verdict shape="warn">recomputed; the proof does not hold</Verdict>}
      >
        recomputed here
      </Proven>
    </>
  );
  const root = (
    <>
      <Hash hex={proof.root ?? ''} name="root" />{' '}
      <Proven
        by={proof}
        claim="signed-root"
        otherwise={
          <Verdict shape={proof.signed ? 'bad' : 'none'}>
            {proof.signed ? (proof.reason ?? 'not reached') : 'not signed by a key you pinned'}
          </Verdict>
        }
      >
        equals the signed root
      </Proven>
    </>
  );
  const current = proof.steps[step - 1];
  if (current === undefined) {
    return (
      <Facts
        rows={[
          ['Rule', <code key="r">SHA-256(0x00 ‖ leaf)</code>],
          ['Gives', here('leaf hash', proof.leaf ?? '')],
          ['At the end', root],
        ]}
      />
    );
  }
  const own = step === 1 ? (proof.leaf ?? '') : (proof.steps[step - 2]?.gives ?? '');
  const given = (
    <>
      <Hash hex={current.sibling} name="given hash" /> <span className="mute">given by the receipt</span>
    </>
  );
  const mine = (
    <>
      <Hash hex={own} name="own hash" />{' '}
      <span className="mute">{step === 1 ? 'the leaf' : `recomputed in step ${String(step - 1)}`}</span>
    </>
  );
  return (
    <Facts
      rows={[
        ['Rule', <code key="r">SHA-256(0x01 ‖ left ‖ right)</code>],
        ['Left', current.side === 'left' ? given : mine],
        ['Right', current.side === 'left' ? mine : given],
        ['Gives', here('node', current.gives)],
        ['At the end', root],
      ]}
    />
  );
}

function StepTable({ proof }: { proof: InclusionResult }) {
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label="Inclusion proof as a table">
      <table className={draw.table}>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Given</th>
            <th scope="col">Side</th>
            <th scope="col">Gives</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <td>0</td>
            <td>the leaf</td>
            <td />
            <td>
              <code>{proof.leaf}</code>
            </td>
          </tr>
          {proof.steps.map((step, i) => (
            <tr key={i}>
              <td>{i + 1}</td>
              <td>
                <code>{step.sibling}</code>
              </td>
              <td>{step.side}</td>
              <td>
                <code>{step.gives}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
