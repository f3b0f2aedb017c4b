import type { SessionAddress } from '../../api/client.js';
import { askAgain, useSession } from '../../api/queries.js';
import { Button } from '../../ui/controls.js';
import { Call } from '../../ui/Evidence.js';
import { PageHead } from '../../ui/Panel.js';
import { Link, useNavigate, useParams, useSearch } from '../../ui/router.js';
import { Loading, Trouble } from '../../ui/states.js';
import { Receipts, Segments } from './Evidence.js';
import { Reader } from './Reader.js';
import type { SessionSearch } from './search.js';
import { SessionHead } from './SessionHead.js';
import { useSessionCheck } from './use-session-check.js';

const ROUTE = '/machines/$machine/sessions/$session';

/** A session: the verdict as its heading, then what was said, decided and seen. Opening it fetches its bytes and checks them here. */
export function SessionPage() {
  const at: SessionAddress = useParams({ from: ROUTE });
  const search: SessionSearch = useSearch({ from: ROUTE });
  const navigate = useNavigate();
  const set = (change: SessionSearch) =>
    void navigate({
      to: ROUTE,
      params: { ...at },
      search: (before) => ({ ...before, ...change }),
      replace: true,
      resetScroll: false,
    });
  const session = useSession(at);
  const { run, check } = useSessionCheck(at);

  if (session.data === undefined) {
    if (session.error === null) return <Loading what="the session" rows={6} />;
    return (
      <>
        <PageHead title="This session cannot be shown" crumb={<Link to="/sessions">Sessions</Link>} />
        <Trouble error={session.error} onRetry={askAgain} />
      </>
    );
  }
  const view = search.view ?? 'story';
  const grown =
    run?.phase === 'done' && run.page !== undefined && session.data.entries > run.page.entries
      ? session.data.entries - run.page.entries
      : 0;
  return (
    <>
      <SessionHead at={at} page={session.data} run={run} onCheck={check} />
      {run?.phase === 'failed' && (
        <Call kind="bad">
          <b>{run.error}</b>
          <div className="row">
            <Button onClick={check}>Try again</Button>
          </div>
        </Call>
      )}
      {grown > 0 && (
        <div className="row" role="status">
          <Button onClick={check}>
            {grown.toLocaleString('en')} more {grown === 1 ? 'entry has' : 'entries have'} come: check and show
          </Button>
        </div>
      )}
      {run !== undefined && (
        <Reader at={at} page={session.data} run={run} search={search} set={set} onCheck={check}>
          {view === 'receipts' && <Receipts run={run} />}
          {view === 'segments' && <Segments page={session.data} />}
        </Reader>
      )}
    </>
  );
}
