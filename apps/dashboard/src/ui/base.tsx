// The one door to Base UI, so that another library can take its place.
import { CSPProvider } from '@base-ui/react/csp-provider';
import { Dialog } from '@base-ui/react/dialog';
import { Tooltip } from '@base-ui/react/tooltip';
import type { ReactNode } from 'react';
import { Button } from './controls.js';
import { cx } from './cx.js';
import css from './dialog.module.css';
import { Icon } from './Icon.js';

/** What the components need around them: no style elements (the page's policy refuses them), one tooltip delay. */
export function BaseProvider(props: { children: ReactNode }) {
  return (
    <CSPProvider disableStyleElements>
      <Tooltip.Provider delay={350}>{props.children}</Tooltip.Provider>
    </CSPProvider>
  );
}

/** A dialog in the middle of the page: Esc and Close always work, and the focus returns to where it was. */
export function Modal(props: {
  open: boolean;
  onClose: () => void;
  title: string;
  wide?: boolean;
  children: ReactNode;
}) {
  return (
    <Dialog.Root
      open={props.open}
      onOpenChange={(open) => {
        if (!open) props.onClose();
      }}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className={css.backdrop} />
        <Dialog.Popup className={cx(css.popup, props.wide && css.wide)}>
          <header>
            <Dialog.Title>{props.title}</Dialog.Title>
            <span className="end row">
              <kbd className="hide-m">Esc</kbd>
              <Dialog.Close render={<Button look="ghost" square aria-label="Close" />}>
                <Icon name="x" />
              </Dialog.Close>
            </span>
          </header>
          <div className={css.body}>{props.children}</div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** A word that explains itself in one sentence on hover and on focus. */
export function Term(props: { says: ReactNode; children: ReactNode; className?: string | undefined }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger className={cx(css.term, props.className)}>{props.children}</Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6}>
          <Tooltip.Popup className={css.tip}>{props.says}</Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}
