import type { Me } from '@nd7/vault-api';
import { useEffect, useId, useRef, useState } from 'react';
import { vault } from '../../api/client.js';
import { answers } from '../../api/queries.js';
import { vkeyInWorker } from '../../check/worker-client.js';
import { PinForm } from '../../trust/PinDialog.js';
import { readPins, setPin } from '../../trust/pins.js';
import { keyName } from '../../trust/words.js';
import { Button, controls } from '../../ui/controls.js';
import { Call, Verdict } from '../../ui/Evidence.js';
import { Facts, PageHead, Panel } from '../../ui/Panel.js';
import { useNavigate } from '../../ui/router.js';
import { Time } from '../../ui/Time.js';
import { forgetLink, type SignInLink, takeLink } from './fragment.js';
import css from './sign-in.module.css';

type Step =
  | { at: 'token'; trouble?: string }
  | { at: 'asking' }
  /** Signed in, and the link brings another key than the one that is pinned: a person decides. */
  | { at: 'conflict'; me: Me; pin: string }
  /** Signed in, and no key is pinned. */
  | { at: 'unpinned'; me: Me; trouble?: string };

/** Signs a reader in: by a link that carries the token and the vault's key behind its `#`, or by hand. */
export function SignInPage() {
  const [link, setLink] = useState(takeLink);
  const [step, setStep] = useState<Step>(link.token === undefined ? { at: 'token' } : { at: 'asking' });
  const begun = useRef<SignInLink>(undefined);
  const navigate = useNavigate();
  const done = () => {
    void navigate({ href: link.to ?? '/sessions', replace: true });
  };

  const signIn = async (token: string) => {
    setStep({ at: 'asking' });
    try {
      const me = await vault.signIn(token);
      forgetOthers();
      answers.setQueryData(['me'], me);
      const next = await pinFrom(link.pin, me);
      if (next === undefined) done();
      else setStep(next);
    } catch (error) {
      setStep({ at: 'token', trouble: error instanceof Error ? error.message : String(error) });
    }
  };

  useEffect(() => {
    forgetLink();
    // A development build mounts twice; a link's token is shown to the vault once.
    if (link.token === undefined || begun.current === link) return;
    begun.current = link;
    void signIn(link.token);
  }, [link]);

  useEffect(() => {
    // A link that is opened while this page stands here changes nothing but what is behind the #.
    const opened = () => {
      if (window.location.hash !== '') setLink(takeLink());
    };
    window.addEventListener('hashchange', opened);
    return () => {
      window.removeEventListener('hashchange', opened);
    };
  }, []);

  return (
    <div className={css.narrow}>
      {step.at === 'token' && <TokenForm to={link.to} trouble={step.trouble} onToken={(token) => void signIn(token)} />}
      {step.at === 'asking' && (
        <>
          <PageHead title="Signing in" />
          <Verdict shape="run">asking the vault</Verdict>
        </>
      )}
      {step.at === 'conflict' && <Conflict me={step.me} pin={step.pin} onDone={done} />}
      {step.at === 'unpinned' && (
        <>
          <PageHead
            title="Signed in; no key pinned: nothing is verified"
            lede={<p>Without the vault’s key this page can show what the vault says, and check nothing of it.</p>}
          />
          {step.trouble !== undefined && (
            <Call kind="warn">
              <span>{step.trouble}</span>
            </Call>
          )}
          <Panel title="Pin the vault’s key">
            <div className="pad">
              <PinForm me={step.me} onDone={done} />
            </div>
          </Panel>
          <div className="row">
            <Button onClick={done}>Go on without</Button>
          </div>
        </>
      )}
    </div>
  );
}

/** Forgets what another reader was told. Who is signed in stays to be told anew: the frame of the page looks at it. */
function forgetOthers(): void {
  answers.removeQueries({ predicate: (query) => query.queryKey[0] !== 'me' });
}

/** What follows from the key in the link; undefined where nothing is left to ask. */
async function pinFrom(pin: string | undefined, me: Me): Promise<Step | undefined> {
  const pinned = readPins()[me.origin];
  if (pin === undefined) return pinned === undefined ? { at: 'unpinned', me } : undefined;
  if (pinned?.vkey === pin) return undefined;
  const key = await vkeyInWorker(pin);
  if (!key.ok || key.name !== me.origin) {
    const trouble = key.ok
      ? `The key in the link is for the log ${String(key.name)}; this vault’s log is ${me.origin}.`
      : 'The key in the link is no verifier key. The link may be cut.';
    return pinned === undefined ? { at: 'unpinned', me, trouble } : undefined;
  }
  if (pinned !== undefined) return { at: 'conflict', me, pin };
  setPin(pin, 'link', Date.now());
  return undefined;
}

function TokenForm(props: { to: string | undefined; trouble: string | undefined; onToken: (token: string) => void }) {
  const [token, setToken] = useState('');
  const id = useId();
  return (
    <>
      <PageHead
        title={props.to === undefined ? 'Sign in' : 'Sign in to go on'}
        lede={
          <p>
            Open the link that whoever runs the vault gave you: it carries your token, and the vault’s key for this
            browser to pin. Or type the token here.
          </p>
        }
      />
      <Panel label="Sign in">
        <form
          className="pad stack stack-4"
          onSubmit={(event) => {
            event.preventDefault();
            props.onToken(token.trim());
          }}
        >
          <label className={controls.field} htmlFor={id}>
            <span>Reader token</span>
            <input
              id={id}
              className={controls.input}
              type="password"
              autoComplete="off"
              placeholder="nd7r1_…"
              value={token}
              onChange={(event) => {
                setToken(event.currentTarget.value);
              }}
            />
          </label>
          {props.trouble !== undefined && (
            <Call kind="bad">
              <b>Not signed in</b>
              <span className="small">{props.trouble}</span>
            </Call>
          )}
          <div className="row wrap">
            <Button look="primary" type="submit" disabled={token.trim() === ''}>
              Sign in
            </Button>
            <span className="tiny mute">The token becomes a cookie that no script can read.</span>
          </div>
        </form>
      </Panel>
    </>
  );
}

function Conflict(props: { me: Me; pin: string; onDone: () => void }) {
  const pinned = readPins()[props.me.origin];
  return (
    <>
      <PageHead
        title="The link brings another key than the one you pinned"
        lede={
          <p>
            A vault changes its key seldom, and says so in its log. If nobody you trust told you of a change, keep the
            pinned one: with it, what another key signed will not verify.
          </p>
        }
      />
      <Panel label="Two keys">
        <div className="pad stack stack-4">
          <Facts
            rows={[
              ['Pinned', <code key="p">{keyName(pinned?.vkey ?? '')}</code>],
              ['Since', <Time key="t" at={pinned?.at ?? 0} as="list" />],
              ['In the link', <code key="l">{keyName(props.pin)}</code>],
            ]}
          />
          <div className="row wrap">
            <Button look="primary" onClick={props.onDone}>
              Keep the pinned key
            </Button>
            <Button
              onClick={() => {
                setPin(props.pin, 'link', Date.now());
                props.onDone();
              }}
            >
              Pin the key of the link instead
            </Button>
          </div>
        </div>
      </Panel>
    </>
  );
}
