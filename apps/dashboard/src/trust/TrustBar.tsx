import type { Me } from '@nd7/vault-api';
import { useEffect, useState } from 'react';
import { Proven } from '../ui/Proof.js';
import { Verdict } from '../ui/Evidence.js';
import { useAnnouncement } from '../ui/announce.js';
import { cx } from '../ui/cx.js';
import { Link } from '../ui/router.js';
import { Time } from '../ui/Time.js';
import { duration } from '../ui/time-words.js';
import { type Judged, OLD, useCheckpoint } from './checkpoint.js';
import { PinDialog } from './PinDialog.js';
import { usePin } from './pins.js';
import css from './trust.module.css';
import { useVerifierHash } from './verifier.js';
import { checkpointWords, keyName } from './words.js';

/**
 * Always there: what this browser verified of the log, on which key it rests, and with which verifier. `stands`: how far asking the vault is, where
 * it is not known who is signed in.
 */
export function TrustBar({ me, stands }: { me: Me | undefined; stands: 'asking' | 'no answer' | undefined }) {
  const pin = usePin(me?.origin);
  const checkpoint = useCheckpoint(me?.team, me?.origin, pin?.vkey);
  const [asking, setAsking] = useState(false);
  const notice = useAnnouncement();
  const verifier = useVerifierHash(me !== undefined);
  const failed = checkpoint.data?.result.ok === false;
  const other = me !== undefined && pin !== undefined && pin.vkey !== me.vkey;
  return (
    <footer className={cx(css.bar, (failed || other) && css.failed)} aria-label="What this browser verified">
      {me === undefined && <Nobody stands={stands} />}
      {me !== undefined && pin === undefined && (
        <span>
          <Verdict shape="none">No key pinned: nothing is verified</Verdict>
          <button
            type="button"
            className={css.pin}
            onClick={() => {
              setAsking(true);
            }}
          >
            Pin a key
          </button>
        </span>
      )}
      {other && (
        <Link to="/verify">
          <Verdict shape="bad">The vault shows another key than the one you pinned</Verdict>
        </Link>
      )}
      {pin !== undefined && (
        <CheckpointWord judged={checkpoint.data} error={checkpoint.error} since={checkpoint.dataUpdatedAt} />
      )}
      {pin !== undefined && !failed && !other && (
        <span className={css.opt}>
          Rests on <b>your pinned key</b> <code>{keyName(pin.vkey)}</code>
        </span>
      )}
      {pin !== undefined && !failed && !other && (
        <span
          className={cx(css.opt, 'mute')}
          title="Your policy asks for no witness: that the vault shows everybody the same log is its own word."
        >
          no witness asked
        </span>
      )}
      <span className="sr" role="status">
        {notice}
      </span>
      {notice !== '' && <span aria-hidden="true">{notice}</span>}
      {verifier !== undefined && (
        <span className={cx(css.opt, 'end')}>
          Verifier <code>b3 {verifier.slice(0, 8)}…</code>
        </span>
      )}
      {me !== undefined && (
        <PinDialog
          me={me}
          open={asking}
          onClose={() => {
            setAsking(false);
          }}
        />
      )}
    </footer>
  );
}

function Nobody({ stands }: { stands: 'asking' | 'no answer' | undefined }) {
  if (stands === 'asking') return <Verdict shape="run">Asking the vault</Verdict>;
  return (
    <Verdict shape="none">
      {stands === 'no answer' ? 'The vault does not answer' : 'Not signed in'}: nothing is verified
    </Verdict>
  );
}

function CheckpointWord(props: { judged: Judged | undefined; error: Error | null; since: number }) {
  const now = useNow(10_000);
  const { judged, error } = props;
  if (judged === undefined) {
    if (error !== null) return <Verdict shape="warn">No checkpoint: {error.message}</Verdict>;
    return <Verdict shape="run">Checking the checkpoint</Verdict>;
  }
  const { result, at } = judged;
  if (!result.ok) {
    const words = checkpointWords(result);
    return (
      <Link to="/incidents" title={words.means}>
        <Verdict shape="bad">{words.short}</Verdict>
        <span className="hide-m dim">{words.means}</span>
      </Link>
    );
  }
  const size = (result.size ?? 0).toLocaleString('en');
  const age = now - at;
  const when = (
    <span className="hide-m">
      <Time at={at} />
    </span>
  );
  if (age > OLD)
    return (
      <>
        <Verdict shape="warn">
          Checkpoint {size}: last checked {duration(age)} ago
        </Verdict>
        {when}
      </>
    );
  return (
    <>
      <Proven
        by={result}
        claim="checkpoint"
        title={against(result)}
        otherwise={
          <Verdict shape="warn" title={against(result)}>
            Checkpoint {size} signed, not shown to extend {result.before?.size ?? 0}
          </Verdict>
        }
      >
        Checkpoint {size} verified here
      </Proven>
      {when}
    </>
  );
}

function against(result: Judged['result']): string {
  const before = (result.before?.size ?? 0).toLocaleString('en');
  switch (result.against) {
    case 'first':
      return 'Signed by the key you pinned. It is the first this browser saw of the log: from now on it must be extended.';
    case 'same':
      return 'Signed by the key you pinned; the same tree that this browser saw before.';
    case 'extends':
      return `Signed by the key you pinned; a proof checked here shows that it extends the tree of ${before} leaves seen before.`;
    case 'unproved':
      return `Signed by the key you pinned; the tiles that would show that it extends the tree of ${before} leaves could not be had.`;
  }
}

/** The time, redrawn every so often. */
function useNow(every: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(Date.now());
    }, every);
    return () => {
      clearInterval(timer);
    };
  }, [every]);
  return now;
}
