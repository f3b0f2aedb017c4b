import { useSyncExternalStore } from 'react';
import { CopyButton } from './controls.js';
import { cx } from './cx.js';
import css from './hash.module.css';
import { shortHash } from './short-hash.js';

let lit: string | undefined;
const listeners = new Set<() => void>();
function light(hash: string | undefined): void {
  lit = hash;
  for (const listener of listeners) listener();
}
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** A hash or key in hex. Equal ones on one page light up together. */
export function Hash(props: { hex: string; name: string; copy?: boolean }) {
  const isLit = useSyncExternalStore(subscribe, () => lit === props.hex);
  return (
    <span
      className={cx(css.hash, isLit && css.lit)}
      onPointerEnter={() => {
        light(props.hex);
      }}
      onPointerLeave={() => {
        light(undefined);
      }}
    >
      <span title={props.hex}>{shortHash(props.hex)}</span>
      {props.copy !== false && <CopyButton text={props.hex} label={`Copy ${props.name} ${props.hex.slice(0, 8)}`} />}
    </span>
  );
}
