import { cx } from './cx.js';
import css from './icon.module.css';
import { drawings, type IconName } from './drawings.js';

export type { IconName };

/** A drawing of 16 × 16 units; decoration only: the word always stands beside it. */
export function Icon(props: { name: IconName; size?: 'small' | 'large'; flip?: boolean; turn?: boolean }) {
  const { name, size, flip, turn } = props;
  return (
    <svg
      className={cx(
        css.icon,
        size === 'small' && css.small,
        size === 'large' && css.large,
        flip && css.flip,
        turn && css.turn,
      )}
      viewBox="0 0 16 16"
      aria-hidden="true"
    >
      {drawings[name]}
    </svg>
  );
}
