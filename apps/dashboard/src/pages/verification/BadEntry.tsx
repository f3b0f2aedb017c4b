import { readEntry } from '@nd7/entry';
import type { SessionReport } from '@nd7/verify';
import { useMemo } from 'react';
import { Call } from '../../ui/Evidence.js';
import { Hash } from '../../ui/Hash.js';
import { Facts } from '../../ui/Panel.js';
import type { Row } from '../../worker/row.js';
import { SessionBytes } from '../session/bytes.js';

const n = (count: number) => count.toLocaleString('en');

/** The first entry that does not check out: its number, the reason, and, of a broken link, what was expected and what stands there. */
export function BadEntry({
  report,
  row,
  parts,
}: {
  report: SessionReport;
  row: Row | undefined;
  parts: readonly Uint8Array[];
}) {
  const bad = report.bad_entry ?? 0;
  const isLink = report.reason === 'wrong-prev' || report.reason === 'wrong-genesis';
  const found = useMemo(
    () => (row === undefined || !isLink ? undefined : readEntry(new SessionBytes(parts).line(row)).prev),
    [row, parts, isLink],
  );
  const verdict = report.reason === 'truncated' ? report.completeness : report.integrity;
  const after = report.lines - bad - 1;
  return (
    <Call kind="bad">
      <div className="row wrap">
        <b>
          Entry {n(bad)}: {report.reason}
        </b>
        <span className="small mute">
          {n(bad)} {bad === 1 ? 'entry' : 'entries'} before it {bad === 1 ? 'is' : 'are'} good
          {after > 0 ? `, ${n(after)} after it ${after === 1 ? 'was' : 'were'} not read` : ''}
        </span>
      </div>
      {isLink && found !== undefined ? (
        <Facts
          rows={[
            [
              'Expected',
              <span key="e">
                <Hash hex={report.head} name="expected link" />{' '}
                <span className="mute">
                  {bad === 0 ? 'the genesis link of this session' : `hash of entry ${n(bad - 1)}`}
                </span>
              </span>,
            ],
            [
              'Found',
              <span key="f">
                <Hash hex={found} name="found link" /> <span className="mute">in the line of entry {n(bad)}</span>
              </span>,
            ],
          ]}
        />
      ) : (
        <span className="small">{verdict.text}</span>
      )}
    </Call>
  );
}
