import type { SessionPage } from '@nd7/vault-api';
import type { SessionAddress } from '../../api/client.js';
import { headline } from '../../check/headline.js';
import { coveredBy } from '../../check/proofs.js';
import type { Run } from '../../check/runs.js';
import { Button } from '../../ui/controls.js';
import { Verdict } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { Icon } from '../../ui/Icon.js';
import { PageHead } from '../../ui/Panel.js';
import { Proven } from '../../ui/Proof.js';
import { Link } from '../../ui/router.js';
import { Said } from '../../ui/Said.js';
import { Time } from '../../ui/Time.js';
import { duration } from '../../ui/time-words.js';
import { agentName } from '../sessions/agents.js';
import { percent } from '../sessions/checked.js';
import css from './head.module.css';

/** The heading of a session: the verdict as a sentence, or how far the check is. */
export function SessionHead(props: {
  at: SessionAddress;
  page: SessionPage;
  run: Run | undefined;
  onCheck: () => void;
}) {
  const { at, page, run } = props;
  return (
    <>
      <PageHead
        crumb={
          <>
            <Link to="/sessions">Sessions</Link> / <Hash hex={at.session} name="session id" />
          </>
        }
        title={titleOf(run, page)}
        lede={
          <p className="small mute">
            <b className="dim">
              <Said text={page.machine_name} />
            </b>{' '}
            · {agentName(page.agent)}
            {page.started !== null && (
              <>
                {' '}
                · started <Time at={page.started} as="list" />
              </>
            )}
            {page.started !== null && page.last_time !== null && (
              <> · {duration(Date.parse(page.last_time) - Date.parse(page.started))}</>
            )}{' '}
            · {stateWords(page)} · {page.entries.toLocaleString('en')} {page.entries === 1 ? 'entry' : 'entries'} in{' '}
            {page.segments.length.toLocaleString('en')} {page.segments.length === 1 ? 'segment' : 'segments'}
          </p>
        }
      >
        <Badges page={page} run={run} />
        <Link to="/machines/$machine/sessions/$session/verification" params={{ ...at }} className={css.button}>
          <Icon name="shield" size="small" />
          Verification
        </Link>
        <Button onClick={props.onCheck} disabled={run?.phase === 'fetching'}>
          Check again <kbd>V</kbd>
        </Button>
      </PageHead>
      {run?.phase === 'fetching' && <Progress run={run} />}
    </>
  );
}

function stateWords(page: SessionPage): string {
  if (page.state === 'open') return 'open';
  if (page.state === 'forked') return 'forked';
  return page.close_reason === undefined ? 'closed' : `closed, ${page.close_reason}`;
}

/** The verdict as a sentence; never one before its end. */
export function titleOf(run: Run | undefined, page: SessionPage): string {
  if (run?.result !== undefined) {
    const forked = page.state === 'forked' ? 'The machine signed a second history of this session. ' : '';
    return forked + headline(run.result.report, page.state === 'open');
  }
  if (run?.phase === 'failed') return 'Not checked: the bytes could not be had';
  if (run === undefined) return 'Not checked yet';
  return `Checking ${page.entries.toLocaleString('en')} ${page.entries === 1 ? 'entry' : 'entries'} in this browser, ${String(percent(run))} %`;
}

/** Bytes judged so far, as a bar and in words. */
export function Progress({ run }: { run: Run }) {
  return (
    <div className={css.progress}>
      <progress max={Math.max(1, run.total)} value={run.bytes} aria-label="Bytes checked" />
      <span className="small mute nowrap">
        {bytesWords(run.bytes)} of {bytesWords(run.total)} · {run.entries.toLocaleString('en')} entries
      </span>
    </div>
  );
}

/** `1.4 MB`, as 10^6. */
export function bytesWords(bytes: number): string {
  if (bytes < 1000) return `${String(bytes)} bytes`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function Badges({ page, run }: { page: SessionPage; run: Run | undefined }) {
  if (run?.phase === 'failed')
    return (
      <Verdict shape="none" badge>
        not checked
      </Verdict>
    );
  if (run?.result === undefined)
    return (
      <Verdict shape="run" badge>
        {run === undefined ? 'waiting' : `checking, ${String(percent(run))} %`}
      </Verdict>
    );
  const { result } = run;
  const { report } = result;
  const covered = coveredBy(report);
  const rest = report.entries - covered;
  const bad =
    report.verdict === 'broken'
      ? `${report.reason ?? 'broken'} at ${(report.bad_entry ?? 0).toLocaleString('en')}`
      : undefined;
  return (
    <>
      {page.state === 'forked' && (
        <Verdict shape="bad" badge>
          fork
        </Verdict>
      )}
      {bad !== undefined && (
        <Verdict shape="bad" badge>
          {bad}
        </Verdict>
      )}
      {bad === undefined && (
        <Proven
          by={result}
          claim="covered"
          badge
          otherwise={
            <Verdict shape={report.authenticity.state === 'bad' ? 'bad' : 'none'} badge>
              {report.authenticity.state === 'bad' ? 'receipts do not hold' : 'no receipt checked'}
            </Verdict>
          }
        >
          verified here{rest > 0 ? `: first ${covered.toLocaleString('en')}` : ''}
        </Proven>
      )}
      {bad === undefined && covered > 0 && rest > 0 && (
        <Verdict shape="warn" badge>
          {page.state === 'open' ? 'open: ' : ''}
          {rest.toLocaleString('en')} {rest === 1 ? 'entry' : 'entries'} not receipted
        </Verdict>
      )}
    </>
  );
}
