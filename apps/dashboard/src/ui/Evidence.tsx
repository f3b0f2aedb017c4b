import type { EvidenceClass } from '@nd7/entry';
import type { ReactNode } from 'react';
import { cx } from './cx.js';
import css from './evidence.module.css';
import { Icon, type IconName } from './Icon.js';

export type AnyClass = EvidenceClass | 'unclassified';

/** In the order in which a reader meets them: said, decided, happened, and the recorder about itself. */
export const CLASSES: readonly AnyClass[] = ['intent', 'decision', 'effect', 'recorder', 'unclassified'];

const classes: Record<AnyClass, { icon: IconName; means: string }> = {
  intent: { icon: 'quote', means: 'What the agent said. Never proof of what ran.' },
  decision: { icon: 'diamond', means: 'What a rule or a person decided.' },
  effect: { icon: 'square', means: 'What a layer outside the agent observed.' },
  recorder: { icon: 'ring', means: 'The recorder about itself.' },
  unclassified: {
    icon: 'v-none',
    means: 'A line that lacks its time, source, kind or data: shown, and counted as none of the classes.',
  },
};

/** The evidence class of an entry, by ink weight. */
export function ClassChip(props: { of: AnyClass; children?: ReactNode }) {
  const { icon, means } = classes[props.of];
  return (
    <span className={cx(css.chip, css[props.of])} title={means}>
      <Icon name={icon} />
      {props.children ?? props.of}
    </span>
  );
}

/** A class chip that filters: struck through while its entries are hidden. */
export function ClassToggle(props: { of: AnyClass; count: number; on: boolean; onChange: (on: boolean) => void }) {
  return (
    <button
      type="button"
      className={css.toggle}
      aria-pressed={props.on}
      onClick={() => {
        props.onChange(!props.on);
      }}
    >
      <ClassChip of={props.of}>
        {props.of} {props.count.toLocaleString('en')}
      </ClassChip>
    </button>
  );
}

/** The verdict shapes that need no proof: an alarm may be anybody's word, and what is not checked says so. */
export type Shape = 'warn' | 'bad' | 'says' | 'none' | 'run';

/** Shape, word and colour. The words are those of the dashboard's word list; green is drawn by `Proven` alone. */
export function Verdict(props: { shape: Shape; badge?: boolean; title?: string; children: ReactNode }) {
  return (
    <span className={cx(css.v, css[props.shape], props.badge && css.badge)} title={props.title}>
      <Icon name={`v-${props.shape}`} size="small" />
      {props.children}
    </span>
  );
}

/** Whether anything outside the agent saw a call. Nothing here reconciles what was said with what was seen: there are effects beside it, or none. */
export function SeenMark(props: { effects: number }) {
  if (props.effects > 0) return <Verdict shape="says">{props.effects} seen</Verdict>;
  return (
    <span className={cx(css.mark, css.nothing)}>
      <i>∅</i>nothing seen
    </span>
  );
}

/** A boxed message: what happened, where, and what can be done. */
export function Call(props: { kind: 'bad' | 'warn' | 'info'; children: ReactNode }) {
  return (
    <div className={cx(css.call, css[props.kind])} role={props.kind === 'bad' ? 'alert' : undefined}>
      {props.kind !== 'info' && <Icon name={`v-${props.kind}`} />}
      <div className="stack">{props.children}</div>
    </div>
  );
}
