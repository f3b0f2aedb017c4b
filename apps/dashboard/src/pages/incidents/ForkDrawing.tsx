import { cx } from '../../ui/cx.js';
import { shortHash } from '../../ui/Hash.js';
import type { ForkClaim } from '../../worker/protocol.js';
import css from './incident.module.css';

const WIDTH = 820;
const HEIGHT = 176;
const MIDDLE = 84;
const [A, B] = [46, 122];
/** Most nodes drawn of a branch; the rest are said in words. */
const MOST = 12;

/**
 * The two histories as a fork. What the claims tell is drawn and no more: which entries each is about, and the count at which the hashes
 * differ. Where exactly the bytes part, the claims do not say.
 */
export function ForkDrawing({ a, b, count }: { a: ForkClaim; b: ForkClaim; count: number }) {
  const agree = agreed(a, b);
  const split = 236;
  const end = WIDTH - 40;
  const label = `Fork: ${agree === 0 ? 'no entry in common is shown by the claims' : `the claims agree up to ${String(agree)} entries`}; at ${String(count)} entries history A has the hash ${shortHash(at(a, count))}, history B ${shortHash(at(b, count))}.`;
  return (
    <div className={css.drawing} tabIndex={0} role="group" aria-label="Where the two histories part">
      <svg width={WIDTH} height={HEIGHT} viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`} role="img" aria-label={label}>
        <path className={css.rail} d={`M24 ${String(MIDDLE)}H${String(split - 44)}`} />
        <path className={css.rail} d={`M${String(split - 44)} ${String(MIDDLE)}C${String(split - 14)} ${String(MIDDLE)} ${String(split - 30)} ${String(A)} ${String(split)} ${String(A)}H${String(end)}`} />
        <path className={cx(css.rail, css.badRail)} d={`M${String(split - 44)} ${String(MIDDLE)}C${String(split - 14)} ${String(MIDDLE)} ${String(split - 30)} ${String(B)} ${String(split)} ${String(B)}H${String(end)}`} />
        <circle className={css.node} cx={24} cy={MIDDLE} r={7} />
        <text className={css.note} x={24} y={MIDDLE + 24} textAnchor="middle">
          0
        </text>
        <circle className={cx(css.node, css.full)} cx={split - 44} cy={MIDDLE} r={7} />
        <text className={css.note} x={split - 44} y={MIDDLE + 24} textAnchor="middle">
          {agree === 0 ? '?' : agree.toLocaleString('en')}
        </text>
        <text className={css.note} x={24} y={MIDDLE - 20}>
          {agree === 0 ? 'where they part, the claims do not say' : `agreed: ${agree.toLocaleString('en')} entries`}
        </text>
        <Branch claim={a} y={A} from={split} to={end} count={count} />
        <Branch claim={b} y={B} from={split} to={end} count={count} bad />
        <text className={css.name} x={split} y={A - 20}>
          A · signed first, in the log
        </text>
        <text className={css.note} x={end} y={A - 20} textAnchor="end">
          head {shortHash(a.head)}
        </text>
        <text className={cx(css.name, css.badText)} x={split} y={B + 38}>
          B · sent later, refused
        </text>
        <text className={css.note} x={end} y={B + 38} textAnchor="end">
          head {shortHash(b.head)}
        </text>
      </svg>
    </div>
  );
}

function Branch(props: { claim: ForkClaim; y: number; from: number; to: number; count: number; bad?: boolean }) {
  const { claim, y, bad } = props;
  const total = claim.to - claim.from;
  const shown = Math.min(MOST, total);
  const nodes = Array.from({ length: shown }, (_, i) => {
    const entry = shown === total ? claim.from + i : Math.round(claim.from + ((total - 1) * i) / Math.max(1, shown - 1));
    return { entry, x: props.from + ((props.to - props.from) * i) / Math.max(1, shown - 1) };
  });
  return (
    <>
      {nodes.map(({ entry, x }) => {
        const isCount = entry + 1 === props.count;
        return (
          <g key={entry}>
            {bad ? (
              <rect className={cx(css.node, css.bad, isCount && css.hit)} x={x - 6.5} y={y - 6.5} width={13} height={13} rx={2} />
            ) : (
              <circle className={cx(css.node, isCount && css.full)} cx={x} cy={y} r={7} />
            )}
            <text className={css.note} x={x} y={y + 22} textAnchor="middle">
              {entry.toLocaleString('en')}
            </text>
          </g>
        );
      })}
    </>
  );
}

/** The largest count of which both claims speak with one hash; 0 where there is none (every session begins alike). */
function agreed(a: ForkClaim, b: ForkClaim): number {
  const counts = [a.from, a.to].filter((count) => at(a, count) !== '' && at(a, count) === at(b, count));
  return Math.max(0, ...counts);
}

function at(claim: ForkClaim, count: number): string {
  if (count === claim.from) return claim.prev;
  return count === claim.to ? claim.head : '';
}
