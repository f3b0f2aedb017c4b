import type { SessionRow } from '@nd7/vault-api';
import { coveredBy, proves } from '../../check/proofs.js';
import type { Run } from '../../check/runs.js';
import { Verdict } from '../../ui/Evidence.js';
import { Proven } from '../../ui/Proof.js';

export type Checked = 'verified' | 'failed' | 'unchecked';

/** What the badge of a session says, as the filter names it: what this browser found in this visit. A fork is bad whatever else checks out. */
export function checkedOf(row: SessionRow, run: Run | undefined): Checked {
  if (row.state === 'forked') return 'failed';
  const report = run?.result?.report;
  if (report === undefined) return 'unchecked';
  if (report.verdict === 'broken' || report.authenticity.state === 'bad') return 'failed';
  return proves(run?.result, 'covered') ? 'verified' : 'unchecked';
}

/** The badge of the list: this browser's verdict if there is one, else the vault's word, which is never green. */
export function CheckedHere({ row, run }: { row: SessionRow; run: Run | undefined }) {
  if (row.state === 'forked') return <Verdict shape="bad">fork</Verdict>;
  if (run?.phase === 'fetching') return <Verdict shape="run">checking, {percent(run)} %</Verdict>;
  if (run?.phase === 'failed')
    return (
      <Verdict shape="none" title={run.error ?? ''}>
        not checked
      </Verdict>
    );
  const result = run?.result;
  if (result === undefined) {
    return row.segments > 0 ? (
      <Verdict shape="says" title="The vault says so; this browser has not looked.">
        vault: sealed
      </Verdict>
    ) : (
      <Verdict shape="none">not checked</Verdict>
    );
  }
  const { report } = result;
  if (report.verdict === 'broken') {
    const at = report.reason === 'truncated' ? '' : ` at ${(report.bad_entry ?? 0).toLocaleString('en')}`;
    return <Verdict shape="bad">{`${report.reason ?? 'broken'}${at}`}</Verdict>;
  }
  const covered = coveredBy(report);
  const whole = covered >= row.entries;
  return (
    <Proven by={result} claim="covered" otherwise={<Verdict shape="warn">in part</Verdict>}>
      {whole ? 'verified here' : `first ${covered.toLocaleString('en')}`}
    </Proven>
  );
}

/** How far a run is, of the bytes that the vault announced. Never 100 before its end. */
export function percent(run: Run): number {
  return run.total === 0 ? 0 : Math.min(99, Math.floor((100 * run.bytes) / run.total));
}
