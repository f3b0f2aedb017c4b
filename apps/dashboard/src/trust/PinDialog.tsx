import type { Me } from '@nd7/vault-api';
import { useId, useState } from 'react';
import { vkeyInWorker } from '../check/worker-client.js';
import { announce } from '../ui/announce.js';
import { Modal } from '../ui/base.js';
import { Button, controls } from '../ui/controls.js';
import { Call } from '../ui/Evidence.js';
import { setPin, usePin } from './pins.js';
import { keyName } from './words.js';

/** Pins a vault's verifier key by hand. */
export function PinDialog(props: { me: Me; open: boolean; onClose: () => void }) {
  return (
    <Modal open={props.open} onClose={props.onClose} title="Pin the vault’s key">
      <PinForm me={props.me} onDone={props.onClose} />
    </Modal>
  );
}

/** How to pin by hand, and the field for it. What is typed is checked in the worker; nothing is taken from the vault. */
export function PinForm(props: { me: Me; onDone: () => void }) {
  const { me } = props;
  const pinned = usePin(me.origin);
  const [text, setText] = useState('');
  const [trouble, setTrouble] = useState<string>();
  const id = useId();
  const pin = async () => {
    const vkey = text.trim();
    const key = await vkeyInWorker(vkey);
    if (!key.ok)
      setTrouble('This is no verifier key of a vault. It looks like vault.example/acme+3f9a61c2+AQ…, in one line.');
    else if (key.name !== me.origin)
      setTrouble(`This key is for the log ${String(key.name)}; this vault’s log is ${me.origin}.`);
    else {
      setPin(vkey, 'by hand', Date.now());
      announce('Key pinned');
      props.onDone();
    }
  };
  return (
    <form
      className="stack stack-4"
      onSubmit={(event) => {
        event.preventDefault();
        void pin();
      }}
    >
      <p className="dim">
        Everything this page calls verified rests on this key. So take it from somebody you trust, not from this page:
        whoever runs the vault has it on paper or on another channel, and a machine that is enrolled keeps it as{' '}
        <code>vkey</code> in its file <code>vault.json</code>.
      </p>
      <label className={controls.field} htmlFor={id}>
        <span>Verifier key of {me.origin}</span>
        <textarea
          id={id}
          className={controls.input}
          rows={3}
          value={text}
          spellCheck={false}
          autoComplete="off"
          placeholder={`${me.origin}+…`}
          aria-invalid={trouble !== undefined}
          onChange={(event) => {
            setText(event.currentTarget.value);
            setTrouble(undefined);
          }}
        />
      </label>
      {trouble !== undefined && (
        <Call kind="bad">
          <span>{trouble}</span>
        </Call>
      )}
      {pinned !== undefined && text.trim() !== '' && text.trim() !== pinned.vkey && (
        <Call kind="warn">
          <b>Another key is pinned for this log</b>
          <span className="small">
            <code>{keyName(pinned.vkey)}</code>. A vault changes its key seldom, and says so in its log. If nobody told
            you of a change, do not pin this one.
          </span>
        </Call>
      )}
      <div className="row wrap">
        <Button look="primary" type="submit" disabled={text.trim() === ''}>
          {pinned === undefined ? 'Pin this key' : 'Pin this one instead'}
        </Button>
        <span className="tiny mute">It is kept in this browser and sent nowhere.</span>
      </div>
    </form>
  );
}
