import { isSessionId } from '@nd7/entry';
import { useId, useRef, useState } from 'react';
import { useMe } from '../../api/queries.js';
import { headline } from '../../check/headline.js';
import type { Proof } from '../../check/proofs.js';
import { vkeyInWorker } from '../../check/worker-client.js';
import { usePin } from '../../trust/pins.js';
import { Button, controls } from '../../ui/controls.js';
import { Call } from '../../ui/Evidence.js';
import { Facts, layout, PageHead, Panel } from '../../ui/Panel.js';
import { Said } from '../../ui/Said.js';
import { Time } from '../../ui/Time.js';
import type { SessionResult } from '../../worker/protocol.js';
import { bytesWords } from '../session/SessionHead.js';
import { ReportView } from '../verification/ReportView.js';
import { PinnedPanel, VerifierPanel } from '../verification/TrustPanels.js';
import { Verdicts } from '../verification/Verdicts.js';
import { DropZone } from './DropZone.js';
import { type Dropped, type Evidence, sortFiles } from './files.js';
import { verifyFiles } from './local-run.js';
import css from './verify.module.css';

type State =
  | { at: 'idle' }
  | { at: 'checking'; bytes: number; total: number }
  | { at: 'done'; result: Proof<SessionResult>; receipts: Uint8Array[]; name: string }
  | { at: 'failed'; trouble: string };

/** Verifies files of the reader's own: a log, its head, its receipts, by a pasted key. Nothing is uploaded. */
export function VerifyPage() {
  const me = useMe();
  const pin = usePin(me.data?.origin);
  const [evidence, setEvidence] = useState<Evidence>({ receipts: [], refused: [] });
  const [session, setSession] = useState('');
  const [keys, setKeys] = useState<string>();
  const [state, setState] = useState<State>({ at: 'idle' });
  const stop = useRef<AbortController>(undefined);
  const keyText = keys ?? pin?.vkey ?? '';

  const take = async (dropped: Dropped[]) => {
    const sorted = await sortFiles(dropped);
    setEvidence((before) => {
      const log = sorted.log ?? before.log;
      const head = sorted.head ?? (sorted.log === undefined ? before.head : undefined);
      const old = sorted.log === undefined ? before.receipts : [];
      return {
        ...(log && { log }),
        ...(head && { head }),
        receipts: [...old, ...sorted.receipts],
        refused: sorted.refused,
      };
    });
    if (sorted.session !== undefined) setSession(sorted.session);
    setState({ at: 'idle' });
  };

  const verify = async () => {
    const { log, head, receipts } = evidence;
    if (log === undefined) return;
    const vkeys = keyText
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    for (const vkey of vkeys) {
      if ((await vkeyInWorker(vkey)).ok) continue;
      setState({
        at: 'failed',
        trouble: `“${vkey.slice(0, 40)}…” is no verifier key of a vault. One a line, like vault.example/acme+3f9a61c2+AQ…`,
      });
      return;
    }
    stop.current?.abort();
    const signal = (stop.current = new AbortController()).signal;
    setState({ at: 'checking', bytes: 0, total: log.size });
    try {
      const done = await verifyFiles(
        { log, head, receipts, session: session.trim(), vkeys },
        (bytes) => {
          setState((before) => (before.at === 'checking' ? { ...before, bytes } : before));
        },
        signal,
      );
      setState({ at: 'done', ...done, name: log.name });
    } catch (error) {
      if (!signal.aborted) setState({ at: 'failed', trouble: error instanceof Error ? error.message : String(error) });
    }
  };

  const percent =
    state.at === 'checking' ? Math.min(99, Math.floor((100 * state.bytes) / Math.max(1, state.total))) : 0;
  return (
    <>
      <PageHead
        title={
          state.at === 'done'
            ? headline(state.result.report, false)
            : state.at === 'checking'
              ? `Checking, ${String(percent)} %`
              : 'Verify files of your own'
        }
        lede={
          state.at === 'done' ? (
            <p>
              <code>
                <Said text={state.name} />
              </code>
              , recomputed in this browser at <Time at={state.result.at} />. It was sent nowhere.
            </p>
          ) : (
            <p>
              A session’s log, with its head and its receipts if you have them. They are read in this browser and sent
              nowhere.
            </p>
          )
        }
      />
      {state.at === 'checking' && (
        <progress max={Math.max(1, state.total)} value={state.bytes} aria-label="Bytes checked" />
      )}
      {state.at === 'done' && <Verdicts result={state.result} />}
      <div className={layout.aside}>
        <div className="stack stack-4">
          {state.at === 'done' && <ReportView result={state.result} receipts={state.receipts} />}
          {state.at === 'failed' && (
            <Call kind="bad">
              <b>Not checked</b>
              <span className="small">
                <Said text={state.trouble} />
              </span>
            </Call>
          )}
          <DropZone
            onFiles={(files) => void take(files)}
            busy={state.at === 'checking' ? `reading ${String(percent)} %` : undefined}
          />
          <Refused evidence={evidence} />
          {evidence.log !== undefined && (
            <Panel title="What will be checked">
              <form
                className="pad stack stack-4"
                onSubmit={(event) => {
                  event.preventDefault();
                  void verify();
                }}
              >
                <Facts
                  rows={[
                    ['Log', <FileName key="l" file={evidence.log} />],
                    [
                      'Head',
                      evidence.head === undefined ? (
                        <span key="n" className="mute">
                          none: then the length rests on receipts alone
                        </span>
                      ) : (
                        <FileName key="h" file={evidence.head} />
                      ),
                    ],
                    [
                      'Receipts',
                      evidence.receipts.length === 0 ? (
                        <span key="n" className="mute">
                          none: then a log rewritten as a whole looks the same
                        </span>
                      ) : (
                        evidence.receipts.length.toLocaleString('en')
                      ),
                    ],
                  ]}
                />
                <SessionField value={session} onChange={setSession} />
                <KeysField value={keyText} onChange={setKeys} />
                <div className="row wrap">
                  <Button
                    look="primary"
                    type="submit"
                    disabled={!isSessionId(session.trim()) || state.at === 'checking'}
                  >
                    Verify here
                  </Button>
                  {state.at === 'checking' && <Button onClick={() => stop.current?.abort()}>Stop</Button>}
                </div>
              </form>
            </Panel>
          )}
        </div>
        <div className="stack stack-4">
          {me.data !== undefined && <PinnedPanel me={me.data} />}
          <VerifierPanel />
          <ByHand />
        </div>
      </div>
    </>
  );
}

/** The two lines that every entry can be checked with, on any machine. */
function ByHand() {
  return (
    <Panel title="By hand, without this page">
      <div className="pad stack small dim">
        <p>The link that entry 0 must carry:</p>
        <pre className={css.command} tabIndex={0} aria-label="Command for the genesis link">
          {`printf 'nd7 session v1\\n%s\\n' "$id" | b3sum`}
        </pre>
        <p>The link that entry 1 must carry, and so on:</p>
        <pre className={css.command} tabIndex={0} aria-label="Command for the hash of an entry">
          {`sed -n 1p log.jsonl | tr -d '\\n' | b3sum`}
        </pre>
      </div>
    </Panel>
  );
}

function FileName({ file }: { file: File }) {
  return (
    <>
      <code>
        <Said text={file.name} />
      </code>{' '}
      <span className="mute">{bytesWords(file.size)}</span>
    </>
  );
}

function Refused({ evidence }: { evidence: Evidence }) {
  const { refused, log } = evidence;
  if (refused.length === 0) {
    if (log !== undefined || (evidence.head === undefined && evidence.receipts.length === 0)) return null;
    return (
      <Call kind="warn">
        <b>The log itself is missing</b>
        <span className="small">Add the session’s log.jsonl: receipts and head speak of it, they do not hold it.</span>
      </Call>
    );
  }
  return (
    <Call kind="warn">
      <b>Not an nd7 file</b>
      <ul className={css.refused}>
        {refused.slice(0, 6).map((one) => (
          <li key={one.name}>
            <code>
              <Said text={one.name} />
            </code>{' '}
            looks like <Said text={one.saw} />
          </li>
        ))}
        {refused.length > 6 && <li>and {refused.length - 6} more</li>}
      </ul>
    </Call>
  );
}

function SessionField(props: { value: string; onChange: (value: string) => void }) {
  const id = useId();
  const wrong = props.value.trim() !== '' && !isSessionId(props.value.trim());
  return (
    <label className={controls.field} htmlFor={id}>
      <span>Session id</span>
      <input
        id={id}
        className={controls.input}
        value={props.value}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={wrong}
        onChange={(event) => {
          props.onChange(event.currentTarget.value);
        }}
      />
      <span className={wrong ? 't-warn' : 'mute'}>
        {wrong
          ? 'Letters, digits, dot, underscore and hyphen, at most 128, beginning with a letter or digit.'
          : 'The name of the folder the log lay in. The first link binds the log to it: with another id the log does not check out.'}
      </span>
    </label>
  );
}

function KeysField(props: { value: string; onChange: (value: string) => void }) {
  const id = useId();
  return (
    <label className={controls.field} htmlFor={id}>
      <span>Verifier keys you trust, one a line</span>
      <textarea
        id={id}
        className={controls.input}
        rows={2}
        value={props.value}
        spellCheck={false}
        autoComplete="off"
        placeholder="vault.example/acme+3f9a61c2+AQ…"
        onChange={(event) => {
          props.onChange(event.currentTarget.value);
        }}
      />
      <span className="mute">The key you pinned stands here already; without one, receipts are not checked.</span>
    </label>
  );
}
