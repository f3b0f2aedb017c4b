import { cx } from '../../ui/cx.js';
import { shortHash } from '../../ui/short-hash.js';
import type { ForkClaim } from '../../worker/protocol.js';
import css from './incident.module.css';

const WIDTH = 700;
const HEIGHT = 176;
const MIDDLE = 84;
const [A, B] = [46, 122];
/** Most nodes drawn of a branch: beyond it the middle is left out. */
const MOST = 10;
const ENDS = [4, 5] as const;

/**
 * The two histories as a fork. What the claims tell is drawn and no more: which entries each is about, and the count at which the hashes
 * differ. Where exactly the bytes part, the claims do not say.
 */
export function ForkDrawing({ a, b, count }: { a: ForkClaim; b: ForkClaim; count: number }) {
  const agree = agreed(a, b);
  const [joint, split, end] = [210, 262, WIDTH - 40];
  const curve = (y: number) =>
    `M${String(joint)} ${String(MIDDLE)}C${String(joint + 34)} ${String(MIDDLE)} ${String(joint + 16)} ${String(y)} ${String(split)} ${String(y)}H${String(end)}`;
  const label = `Fork: ${agree === 0 ? 'both begin with the genesis link of the session' : `the claims agree up to ${String(agree)} entries`}; after ${String(count)} entries history A has the hash ${shortHash(at(a, count))}, history B ${shortHash(at(b, count))}.`;
  return (
    <div
      className={cx('scrolls', css.drawing)}
      tabIndex={0}
      role="group"
      aria-label="Where the two histories part, drawn"
    >
      <svg
        width={WIDTH}
        height={HEIGHT}
        viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`}
        role="img"
        aria-label={label}
      >
        {agree > 0 && <path className={css.rail} d={`M24 ${String(MIDDLE)}H${String(joint)}`} />}
        <path className={css.rail} d={curve(A)} />
        <path className={cx(css.rail, css.badRail)} d={curve(B)} />
        {agree > 1 && <circle className={css.node} cx={24} cy={MIDDLE} r={7} />}
        {agree > 1 && (
          <text className={css.note} x={24} y={MIDDLE + 24} textAnchor="middle">
            0
          </text>
        )}
        <circle className={cx(css.node, css.full)} cx={joint} cy={MIDDLE} r={7} />
        {agree > 0 && (
          <text className={css.note} x={joint} y={MIDDLE + 24} textAnchor="middle">
            {(agree - 1).toLocaleString('en')}
          </text>
        )}
        <text
          className={css.note}
          x={agree > 0 ? 24 : joint - 14}
          y={agree > 0 ? MIDDLE - 20 : MIDDLE + 4}
          textAnchor={agree > 0 ? 'start' : 'end'}
        >
          {agree === 0
            ? 'both begin at the genesis link'
            : `same head after ${agree.toLocaleString('en')} ${agree === 1 ? 'entry' : 'entries'}`}
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

/** The entries that are drawn of a branch; undefined stands for those left out. */
function drawn(claim: ForkClaim): (number | undefined)[] {
  const total = claim.to - claim.from;
  if (total <= MOST) return Array.from({ length: total }, (_, i) => claim.from + i);
  const [first, last] = ENDS;
  return [
    ...Array.from({ length: first }, (_, i) => claim.from + i),
    undefined,
    ...Array.from({ length: last }, (_, i) => claim.to - last + i),
  ];
}

function Branch(props: { claim: ForkClaim; y: number; from: number; to: number; count: number; bad?: boolean }) {
  const { claim, y, bad } = props;
  const entries = drawn(claim);
  const place = (i: number) =>
    entries.length === 1 ? props.to : props.from + ((props.to - props.from) * i) / (entries.length - 1);
  return (
    <>
      {entries.map((entry, i) => {
        const x = place(i);
        if (entry === undefined) {
          return (
            <g key="left out">
              <rect className={css.hole} x={x - 14} y={y - 8} width={28} height={16} />
              <text className={css.note} x={x} y={y + 4} textAnchor="middle">
                …
              </text>
            </g>
          );
        }
        const isCount = entry + 1 === props.count;
        return (
          <g key={entry}>
            {bad ? (
              <rect
                className={cx(css.node, css.bad, isCount && css.hit)}
                x={x - 6.5}
                y={y - 6.5}
                width={13}
                height={13}
                rx={2}
              />
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
