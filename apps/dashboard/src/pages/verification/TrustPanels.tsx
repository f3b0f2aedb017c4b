import type { Me } from '@nd7/vault-api';
import { useState } from 'react';
import { PinDialog } from '../../trust/PinDialog.js';
import { usePin } from '../../trust/pins.js';
import { useVerifierHash } from '../../trust/verifier.js';
import { keyName } from '../../trust/words.js';
import { Button } from '../../ui/controls.js';
import { Call, Verdict } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { Icon } from '../../ui/Icon.js';
import { Facts, Panel } from '../../ui/Panel.js';
import { Time } from '../../ui/Time.js';
import css from './verification.module.css';

/** The keys that everything green rests on. */
export function PinnedPanel({ me }: { me: Me }) {
  const pin = usePin(me.origin);
  const [open, setOpen] = useState(false);
  return (
    <Panel
      title="Pinned by you"
      end={
        <Button
          look="ghost"
          onClick={() => {
            setOpen(true);
          }}
        >
          {pin === undefined ? 'Pin a key' : 'Change'}
        </Button>
      }
    >
      <div className="pad stack stack-4">
        <div className={css.key}>
          <h3 className="row">
            <Icon name="key" size="small" />
            Vault key
          </h3>
          {pin === undefined ? (
            <Verdict shape="none">no key pinned: nothing is verified</Verdict>
          ) : (
            <>
              <code className="small" title={pin.vkey}>
                {keyName(pin.vkey)}
              </code>
              <p className="tiny mute">
                Ed25519, pinned <Time at={pin.at} as="list" /> {pin.how === 'link' ? 'from a sign-in link' : 'by hand'}
              </p>
            </>
          )}
        </div>
        <div className={css.key}>
          <h3 className="row">
            <Icon name="user" size="small" />
            Witness policy
          </h3>
          <code className="small">quorum none</code>
          <p className="tiny mute">
            No witness is asked: that the vault shows everybody the same log is its own word, until this browser sees it
            contradict itself.
          </p>
        </div>
        {pin !== undefined && pin.vkey !== me.vkey && (
          <Call kind="bad">
            <b>The vault shows another key</b>
            <span className="small">
              <code>{keyName(me.vkey)}</code>. The pinned one counts.
            </span>
          </Call>
        )}
        {pin !== undefined && pin.vkey === me.vkey && (
          <p className="small dim">The vault shows the same key. Had it shown another, the pinned one would count.</p>
        )}
      </div>
      <PinDialog
        me={me}
        open={open}
        onClose={() => {
          setOpen(false);
        }}
      />
    </Panel>
  );
}

/** What code gave the verdict; and why that is not the last word. */
export function VerifierPanel() {
  const hash = useVerifierHash(true);
  return (
    <Panel title="The verifier itself">
      <div className="pad stack">
        <Facts
          rows={[
            [
              'Running',
              hash === undefined ? (
                <span key="w" className="mute">
                  …
                </span>
              ) : (
                <Hash key="h" hex={hash} name="verifier hash" />
              ),
            ],
          ]}
        />
        <p className="small dim">
          A page cannot prove its own code. The same checks run where you trust the machine: <code>nd7 verify</code>, or{' '}
          <code>b3sum</code> and the reference in Python by hand.
        </p>
      </div>
    </Panel>
  );
}
