import type { SessionAddress } from '../../api/client.js';
import { askAgain, useMe, useSession } from '../../api/queries.js';
import { coveredBy } from '../../check/proofs.js';
import { useKeys } from '../../shell/keys.js';
import { useCheckpoint } from '../../trust/checkpoint.js';
import { usePin } from '../../trust/pins.js';
import { Button } from '../../ui/controls.js';
import { Call } from '../../ui/Evidence.js';
import { shortHash } from '../../ui/short-hash.js';
import { Icon } from '../../ui/Icon.js';
import { layout, PageHead } from '../../ui/Panel.js';
import { Link, useParams } from '../../ui/router.js';
import { Loading, Trouble } from '../../ui/states.js';
import { Time } from '../../ui/Time.js';
import { Progress, titleOf } from '../session/SessionHead.js';
import { useSessionCheck } from '../session/use-session-check.js';
import type { SessionResult } from '../../worker/protocol.js';
import { ReportView } from './ReportView.js';
import { saveReport } from './save.js';
import { PinnedPanel, VerifierPanel } from './TrustPanels.js';
import { Verdicts } from './Verdicts.js';

/** On whose word, in one sentence. */
function RestsOn({ result }: { result: SessionResult }) {
  if (result.vkeys.length === 0) return 'No key is pinned: no signature was checked.';
  if (coveredBy(result.report) === 0) return 'Nothing that your pinned key signed stands behind it.';
  return (
    <>
      It rests on <b>your pinned key</b>, not on the dashboard’s word.
    </>
  );
}

/** All that this browser found out about one session: the four verdicts, what they rest on, what was not checked, and the proofs. */
export function VerificationPage() {
  const at: SessionAddress = useParams({ from: '/machines/$machine/sessions/$session/verification' });
  const session = useSession(at);
  const me = useMe();
  const pin = usePin(me.data?.origin);
  const checkpoint = useCheckpoint(me.data?.team, me.data?.origin, pin?.vkey);
  const { run, check } = useSessionCheck(at);
  useKeys({ v: check });
  if (session.data === undefined || me.data === undefined) {
    if (session.error === null) return <Loading what="the session" rows={6} />;
    return (
      <>
        <PageHead title="This session cannot be shown" crumb={<Link to="/sessions">Sessions</Link>} />
        <Trouble error={session.error} onRetry={askAgain} />
      </>
    );
  }
  const result = run?.result;
  return (
    <>
      <PageHead
        crumb={
          <>
            <Link to="/sessions">Sessions</Link> /{' '}
            <Link to="/machines/$machine/sessions/$session" params={{ ...at }}>
              <code>{shortHash(at.session)}</code>
            </Link>{' '}
            / Verification
          </>
        }
        title={titleOf(run, session.data)}
        lede={
          result !== undefined && (
            <p>
              Recomputed in this browser from the bytes, at <Time at={result.at} />. <RestsOn result={result} />
            </p>
          )
        }
      >
        {result !== undefined && (
          <Button
            onClick={() => {
              saveReport(result.report);
            }}
          >
            <Icon name="doc" size="small" />
            Save report
          </Button>
        )}
        <Button look="primary" disabled={run?.phase === 'fetching'} onClick={check}>
          Check again <kbd>V</kbd>
        </Button>
      </PageHead>
      {run?.phase === 'fetching' && <Progress run={run} />}
      {run?.phase === 'failed' && (
        <Call kind="bad">
          <b>{run.error}</b>
        </Call>
      )}
      {result !== undefined && (
        <Verdicts result={result} machine={{ key: at.machine, name: session.data.machine_name }} />
      )}
      <div className={layout.aside}>
        <div>
          {result !== undefined && run !== undefined && (
            <ReportView
              result={result}
              receipts={[...run.receipts.values()]}
              checkpoint={checkpoint.data?.result}
              rows={run.rows}
              parts={run.parts}
            />
          )}
        </div>
        <div className="stack stack-4">
          <PinnedPanel me={me.data} />
          <VerifierPanel />
        </div>
      </div>
    </>
  );
}
