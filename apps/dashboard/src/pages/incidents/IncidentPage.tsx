import type { Incident, Me } from '@nd7/vault-api';
import { askAgain, useIncident, useMachines, useMe } from '../../api/queries.js';
import type { Claim, Proof } from '../../check/proofs.js';
import { forkInWorker } from '../../check/worker-client.js';
import { useKeys } from '../../shell/keys.js';
import { Button, copyText } from '../../ui/controls.js';
import { Call, Verdict } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { shortHash } from '../../ui/short-hash.js';
import { Icon } from '../../ui/Icon.js';
import { Facts, layout, PageHead, Panel } from '../../ui/Panel.js';
import { Proven } from '../../ui/Proof.js';
import { useQuery } from '../../ui/query.js';
import { Link, useParams } from '../../ui/router.js';
import { Said } from '../../ui/Said.js';
import { Loading, Trouble } from '../../ui/states.js';
import { Time } from '../../ui/Time.js';
import { Words } from '../../ui/Words.js';
import type { ForkClaim, ForkResult } from '../../worker/protocol.js';
import { machineName } from '../machines/name.js';
import { ForkDrawing } from './ForkDrawing.js';
import css from './incident.module.css';
import { incidentSentence, isCritical, overSentence, seenRows } from './words.js';

/** One incident. Of a fork both heads stand side by side, and the two signatures that convict the machine are checked here. */
export function IncidentPage() {
  const { id } = useParams({ from: '/incidents/$id' });
  const incident = useIncident(id);
  const machines = useMachines();
  const me = useMe();
  if (incident.data === undefined || me.data === undefined) {
    if (incident.error === null) return <Loading what="the incident" rows={6} />;
    return (
      <>
        <PageHead title="This incident cannot be shown" crumb={<Link to="/incidents">Incidents</Link>} />
        <Trouble error={incident.error} onRetry={askAgain} />
      </>
    );
  }
  const name = machineName(incident.data.machine, machines.data?.machines ?? []);
  return <Shown incident={incident.data} machine={name} me={me.data} />;
}

function Shown({ incident, machine, me }: { incident: Incident; machine: string; me: Me }) {
  const claims = claimsOf(incident, me);
  const { data: proof } = useQuery({
    queryKey: ['fork', incident.id],
    queryFn: () => (claims === undefined ? null : forkInWorker(claims)),
    enabled: claims !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const copy = () => void copyText(JSON.stringify({ ...incident, origin: me.origin }, null, 2));
  useKeys({ c: copy });
  const count = incident.count;
  return (
    <>
      <PageHead
        crumb={
          <>
            <Link to="/incidents">Incidents</Link> / <span>{incident.id}</span>
          </>
        }
        title={<Said text={incidentSentence(incident, machine)} />}
        lede={
          <p>
            <Time at={incident.at} as="millis" /> by the vault’s clock
            {incident.session !== undefined && (
              <>
                , session{' '}
                <Link
                  to="/machines/$machine/sessions/$session"
                  params={{ machine: incident.machine, session: incident.session }}
                >
                  <code>{shortHash(incident.session)}</code>
                </Link>
              </>
            )}
            {claims !== undefined && count !== undefined && (
              <>
                : two hashes for the same <b>count of {count.toLocaleString('en')} entries</b>, both under the machine’s
                key.
              </>
            )}
          </p>
        }
      >
        <Verdict shape={isCritical(incident) ? 'bad' : 'warn'} badge>
          {isCritical(incident) ? `Critical: ${incident.kind}` : incident.kind}
        </Verdict>
        <Verdict shape="says" badge>
          {incident.state}
        </Verdict>
        <Button onClick={copy}>
          <Icon name="copy" size="small" />
          Copy as evidence <kbd>C</kbd>
        </Button>
      </PageHead>
      {claims === undefined ? (
        <Bare incident={incident} />
      ) : (
        <Fork incident={incident} claims={claims} proof={proof ?? undefined} />
      )}
    </>
  );
}

function claimsOf(incident: Incident, me: Me): readonly [ForkClaim, ForkClaim] | undefined {
  const [a, b] = incident.claims ?? [];
  if (a === undefined || b === undefined || incident.session === undefined) return undefined;
  const of = { origin: me.origin, machine: incident.machine, session: incident.session };
  return [
    { ...of, ...a },
    { ...of, ...b },
  ];
}

function Bare({ incident }: { incident: Incident }) {
  return (
    <>
      {incident.kind === 'fork' && (
        <Call kind="warn">
          <span>The vault sent no two claims with this incident, so nothing can be checked here.</span>
        </Call>
      )}
      <Panel title="What is known">
        <div className="pad">
          <Facts
            rows={[
              ['Kind', <code key="k">{incident.kind}</code>],
              ['Machine', <Hash key="m" hex={incident.machine} name="machine key" />],
              incident.session !== undefined && ['Session', <Hash key="s" hex={incident.session} name="session id" />],
              incident.count !== undefined && ['Count', incident.count.toLocaleString('en')],
              ...seenRows(incident).map(([what, value]) => [what, <Words key={what} text={value} />] as const),
              incident.over !== undefined && ['Over', <Time key="o" at={incident.over.at} as="millis" />],
              incident.over !== undefined && ['Because', <Said key="b" text={overSentence(incident.over)} />],
              incident.leaf_index !== undefined && ['In the log', `leaf ${incident.leaf_index.toLocaleString('en')}`],
            ]}
          />
        </div>
      </Panel>
    </>
  );
}

function Fork(props: {
  incident: Incident;
  claims: readonly [ForkClaim, ForkClaim];
  proof: Proof<ForkResult> | undefined;
}) {
  const { incident, claims, proof } = props;
  const [a, b] = claims;
  const count = proof?.count ?? incident.count ?? a.to;
  return (
    <div className={layout.aside}>
      <div className="stack stack-4">
        <Panel
          title="Where the two histories part"
          end={
            <Proven by={proof} claim="fork" otherwise={<Word proof={proof} />}>
              both signatures checked here
            </Proven>
          }
        >
          <ForkDrawing a={a} b={b} count={count} />
        </Panel>
        <Panel
          title="The two heads"
          note={`both speak of ${count.toLocaleString('en')} entries`}
          footer="A claim signs two counts: the head before it and the head after it. Where two claims name one count with two hashes, one of the histories was rewritten. Every entry after the change has another hash, because each carries the link to the one before."
        >
          <div className={css.heads}>
            <HeadOf letter="A" title="Signed first, in the log" claim={a} count={count} proof={proof} which="claim-a" />
            <HeadOf letter="B" title="Sent later, refused" claim={b} count={count} proof={proof} which="claim-b" />
          </div>
        </Panel>
      </div>
      <div className="stack stack-4">
        <Panel title="What this proves">
          <div className="pad stack small dim">
            <p>
              <span className="strong">It proves</span> that the holder of this machine’s key signed two different
              histories of one session. The two claims convict by themselves; nobody’s word is needed.
            </p>
            <p>
              <span className="strong">It does not prove</span> who did it, nor which of the two tells what happened.
              Restored backups and copied home folders fork too.
            </p>
          </div>
        </Panel>
        <Panel title="What is known">
          <div className="pad">
            <Facts
              rows={[
                ['Machine', <Hash key="m" hex={incident.machine} name="machine key" />],
                ['Session', <Hash key="s" hex={a.session} name="session id" />],
                ['Log', <code key="o">{a.origin}</code>],
                incident.leaf_index !== undefined && ['Fork leaf', incident.leaf_index.toLocaleString('en')],
              ]}
            />
          </div>
        </Panel>
        <Panel title="What to do">
          <ol className={css.todo}>
            <li>
              <span>1</span>
              <p>
                <b>Both histories are kept</b>A stands; B is kept as evidence
                {incident.leaf_index === undefined
                  ? ''
                  : ` and named in leaf ${incident.leaf_index.toLocaleString('en')}`}
                .
              </p>
            </li>
            <li>
              <span>2</span>
              <p>
                <b>Look at the machine’s other sessions</b>
                <Link to="/sessions" search={{ machine: incident.machine }}>
                  Show them
                </Link>
              </p>
            </li>
            <li>
              <span>3</span>
              <p>
                <b>Ask, then image the disk</b>
                <code>log.jsonl</code> and <code>head.json</code> of the session tell which history the machine holds.
              </p>
            </li>
          </ol>
        </Panel>
      </div>
    </div>
  );
}

function Word({ proof }: { proof: Proof<ForkResult> | undefined }) {
  if (proof === undefined) return <Verdict shape="run">checking both signatures</Verdict>;
  return (
    <Verdict shape="bad">
      {proof.count === undefined
        ? 'these claims name no count in common: no fork by them'
        : 'a signature is not the machine’s'}
    </Verdict>
  );
}

function HeadOf(props: {
  letter: 'A' | 'B';
  title: string;
  claim: ForkClaim;
  count: number;
  proof: Proof<ForkResult> | undefined;
  which: Claim & ('claim-a' | 'claim-b');
}) {
  const { claim, count } = props;
  const isHead = claim.to === count;
  return (
    <div className={css.head}>
      <header>
        <span className={props.letter === 'A' ? css.letter : `${css.letter ?? ''} ${css.second ?? ''}`}>
          {props.letter}
        </span>
        <b>{props.title}</b>
        <span className="end">
          <Proven
            by={props.proof}
            claim={props.which}
            otherwise={
              props.proof === undefined ? (
                <Verdict shape="run">checking</Verdict>
              ) : (
                <Verdict shape="bad">bad-machine-signature</Verdict>
              )
            }
          >
            signature checked here
          </Proven>
        </span>
      </header>
      <div className={css.hash}>
        <span className="small mute">Hash after {count.toLocaleString('en')} entries</span>
        <code>{isHead ? claim.head : claim.prev}</code>
      </div>
      <Facts
        rows={[
          ['Entries', `${claim.from.toLocaleString('en')} to ${(claim.to - 1).toLocaleString('en')}`],
          [
            `Head, ${claim.from.toLocaleString('en')}`,
            <Hash key="p" hex={claim.prev} name={`head ${props.letter} before`} />,
          ],
          [`Head, ${claim.to.toLocaleString('en')}`, <Hash key="h" hex={claim.head} name={`head ${props.letter}`} />],
          [
            'Signed by',
            <>
              {props.letter === 'B' && 'the same '}machine key{' '}
              <Hash hex={claim.machine} name="machine key" copy={false} />
            </>,
          ],
          ['Signature', <Hash key="s" hex={claim.signature} name={`signature ${props.letter}`} />],
        ]}
      />
    </div>
  );
}
