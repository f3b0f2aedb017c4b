import type { ReactNode } from 'react';
import { type AnyProof, type Claim, proves } from '../check/proofs.js';
import { cx } from './cx.js';
import { Icon } from './Icon.js';
import css from './proof.module.css';

/**
 * The filled green circle and its word. It is drawn only for something the checking worker made in this visit, and only when that carries
 * the claim; else what `otherwise` says is drawn. Nothing else on the page is green.
 */
export function Proven(props: {
  by: AnyProof | undefined;
  claim: Claim;
  badge?: boolean;
  title?: string;
  children: ReactNode;
  otherwise?: ReactNode;
}) {
  if (!proves(props.by, props.claim)) return <>{props.otherwise}</>;
  return (
    <span className={cx(css.v, props.badge && css.badge)} title={props.title}>
      <Icon name="v-ok" size="small" />
      {props.children}
    </span>
  );
}

/** The green circle alone, for a step whose word stands beside it. */
export function ProvenIcon(props: { by: AnyProof | undefined; claim: Claim; otherwise: ReactNode }) {
  if (!proves(props.by, props.claim)) return <>{props.otherwise}</>;
  return (
    <span className={css.icon}>
      <Icon name="v-ok" />
    </span>
  );
}

/** The class that makes a tile, a tree node or a rail green; undefined where the proof does not carry the claim. */
export function provenClass(
  by: AnyProof | undefined,
  claim: Claim,
  part: 'tile' | 'node' | 'rail',
): string | undefined {
  return proves(by, claim) ? css[part] : undefined;
}
