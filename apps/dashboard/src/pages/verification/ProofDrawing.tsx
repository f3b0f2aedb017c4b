import type { Proof } from '../../check/proofs.js';
import { cx } from '../../ui/cx.js';
import { provenClass } from '../../ui/Proof.js';
import type { InclusionResult } from '../../worker/protocol.js';
import css from './proof-drawing.module.css';

const GAP = 52;
const START = 30;
const HEIGHT = 172;
const MIDDLE = 84;

/** The way from the leaf to the root: what is given hangs above (to the right) or below (to the left); what is recomputed lies on the rail. */
export function ProofDrawing({
  proof,
  step,
  onStep,
}: {
  proof: Proof<InclusionResult>;
  step: number;
  onStep: (step: number) => void;
}) {
  const last = proof.steps.length;
  const width = Math.max(420, START + last * GAP + 60);
  const x = (i: number) => START + i * GAP;
  const green = provenClass(proof, 'inclusion', 'node');
  const rail = provenClass(proof, 'inclusion', 'rail');
  const label = `Inclusion proof of leaf ${String(proof.index)} in a tree of ${String(proof.size)}: ${String(last)} hashes from leaf to root; step ${String(step)} is shown. The table below tells the same.`;
  return (
    <div className={cx('scrolls', css.box)} tabIndex={0} role="group" aria-label="Inclusion proof, drawn">
      <svg
        width={width}
        height={HEIGHT}
        viewBox={`0 0 ${String(width)} ${String(HEIGHT)}`}
        role="img"
        aria-label={label}
      >
        <path className={cx(css.rail, css.ahead)} d={`M${String(x(step))} ${String(MIDDLE)}H${String(x(last))}`} />
        <path className={rail ?? css.rail} d={`M${String(x(0))} ${String(MIDDLE)}H${String(x(step))}`} />
        {proof.steps.map((one, i) => {
          const up = one.side === 'right';
          const [px, py] = [x(i + 1) - 22, up ? 30 : 138];
          return (
            <g key={i}>
              <path
                className={css.branch}
                d={`M${String(px)} ${String(up ? 37 : 131)}Q${String(px + 12)} ${String(up ? 57 : 111)} ${String(x(i + 1) - 4)} ${String(up ? 78 : 90)}`}
              />
              <rect
                className={cx(css.node, css.given, i + 1 === step && css.used)}
                x={px - 7}
                y={py - 7}
                width={14}
                height={14}
                rx={2}
              />
              <text className={css.hex} x={px} y={up ? 17 : 160} textAnchor="middle">
                {one.sibling.slice(0, 6)}
              </text>
            </g>
          );
        })}
        <rect
          className={cx(css.node, green, step === 0 && css.now)}
          x={x(0) - 8}
          y={MIDDLE - 8}
          width={16}
          height={16}
          rx={2}
          onClick={() => onStep(0)}
        />
        <text className={css.end} x={x(0)} y={MIDDLE - 16} textAnchor="middle">
          {last === 0 ? 'leaf = root' : 'leaf'}
        </text>
        {proof.steps.map((one, i) => {
          const at = i + 1;
          const look = cx(css.node, at <= step && green, at === step && css.now);
          const pick = () => {
            onStep(at);
          };
          return (
            <g key={at}>
              {at === last ? (
                <path
                  className={look}
                  d={`M${String(x(at))} ${String(MIDDLE - 10)}l10 10-10 10-10-10z`}
                  onClick={pick}
                />
              ) : (
                <circle className={look} cx={x(at)} cy={MIDDLE} r={6.5} onClick={pick} />
              )}
              <text
                className={cx(css.number, at === step && css.numberNow)}
                x={x(at)}
                y={one.side === 'right' ? MIDDLE + 22 : MIDDLE - 14}
                textAnchor="middle"
              >
                {at}
              </text>
            </g>
          );
        })}
        {last > 0 && (
          <text className={css.end} x={x(last) + 16} y={MIDDLE + 4}>
            root
          </text>
        )}
      </svg>
    </div>
  );
}
