import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { useState } from 'react';
import { announce } from './announce.js';
import css from './controls.module.css';
import { cx } from './cx.js';
import { Icon } from './Icon.js';

export { css as controls };

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: 'primary' | 'ghost' | undefined;
  square?: boolean;
}

/** A button; `square` ones hold one icon and need an `aria-label`. */
export function Button({ look, square, className, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={cx(
        css.btn,
        look === 'primary' && css.primary,
        look === 'ghost' && css.ghost,
        square && css.square,
        className,
      )}
      {...rest}
    />
  );
}

/** Copies `text` and says how much: "Copied 64 characters". */
export function CopyButton(props: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await copyText(props.text);
    setDone(true);
    setTimeout(() => {
      setDone(false);
    }, 1500);
  };
  const said = `Copied ${String(props.text.length)} characters`;
  return (
    <button
      type="button"
      className={css.copy}
      aria-label={done ? said : props.label}
      title={done ? said : props.label}
      onClick={() => void copy()}
    >
      <Icon name={done ? 'note' : 'copy'} />
    </button>
  );
}

/** Puts text on the clipboard and announces it; where the browser refuses (no secure context) it says so. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(`Copied ${String(text.length)} characters`);
  } catch {
    announce('This browser lets the page copy over https or on localhost only');
  }
}

/** A few alternatives of which one is on. */
export function Segmented<T extends string>(props: {
  label: string;
  value: T;
  options: readonly { value: T; text: ReactNode }[];
  onChange: (value: T) => void;
}) {
  return (
    <div className={css.seg} role="group" aria-label={props.label}>
      {props.options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === props.value}
          onClick={() => {
            props.onChange(option.value);
          }}
        >
          {option.text}
        </button>
      ))}
    </div>
  );
}

/** One active filter, with the way to take it off. */
export function FilterToken(props: { name: string; children: ReactNode; onRemove: () => void }) {
  return (
    <span className={css.token}>
      <b>{props.name}</b>
      <span>{props.children}</span>
      <button type="button" aria-label={`Remove filter ${props.name}`} onClick={props.onRemove}>
        <Icon name="x" size="small" />
      </button>
    </span>
  );
}

/** One value of a facet. */
export function Facet(props: {
  checked: boolean;
  onChange: (on: boolean) => void;
  children: ReactNode;
  count?: number | undefined;
}) {
  return (
    <label className={css.check}>
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => {
          props.onChange(event.currentTarget.checked);
        }}
      />
      <span className="cut">{props.children}</span>
      <span className="num mute">{props.count === undefined ? '' : props.count.toLocaleString('en')}</span>
    </label>
  );
}
