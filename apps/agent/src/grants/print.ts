// Grants, denials and requests on a terminal.
import type { Io } from '../cli/io.js';
import { safeLine } from '../show/safe.js';
import type { DenialRow, Grant, GrantRow, RequestRow } from './entry.js';
import { documentFor, wantedText } from './wanted.js';

/** `g1  write --below /srv/x  by ada (pts/3), for 10m, until 12:03:04`. */
export function grantLine(io: Io, row: GrantRow | DenialRow): string {
  const { id, right, what, below, by, state, reason, ended } = row;
  const raw = 'raw' in row && row.raw;
  const said = safeLine(wantedText({ right: right as 'read', what, below, raw }));
  const who = `by ${safeLine(by.user)} (${by.tty ?? `${safeLine(by.program)} ${by.pid}`})`;
  const more =
    'for' in row
      ? [
          row.expires === null
            ? `for ${row.for === 'call' ? 'one call' : 'the session'}`
            : `until ${clock(row.expires)}`,
          ...(row.uses === null ? [] : [`used ${row.uses} time${row.uses === 1 ? '' : 's'}`]),
          ...(row.reaches === null ? [] : [`reaches ${row.reaches}`]),
          ...(row.request === null ? [] : [`for ${row.request}`]),
        ]
      : ['for the session'];
  const end = state === 'ended' ? [`${reason ?? 'ended'} ${clock(ended ?? '')}`] : more;
  const text = `${id.padEnd(4)} ${said}  ${who}, ${end.join(', ')}`;
  return state === 'ended' ? io.paint('dim', text) : text;
}

export function requestLines(
  io: Io,
  { id, right, what, below, raw, says, by, state, type, made }: RequestRow,
): string[] {
  const said = safeLine(wantedText({ right: right as 'read', what, below, raw }));
  const words = says === '' ? '' : `: “${safeLine(says)}”`;
  return [
    `${io.paint('yellow', id.padEnd(4))} ${said}  asked by ${safeLine(by.program)} at ${clock(made)}, ${state}${words}`,
    ...(state === 'pending' ? [`     ${io.paint('bold', safeLine(type))}   or nd7 deny ${id}`] : []),
  ];
}

function clock(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? '' : date.toTimeString().slice(0, 8);
}

/** For the end of a session: what was granted, and the text by which it would hold for every session. */
export function grantedSummary(made: readonly Grant[], policyFile: string): string[] {
  const wanted = made.filter(({ ended }) => ended?.reason !== 'failed').map((grant) => grant.wanted);
  if (wanted.length === 0) return [];
  const unique = wanted.filter((one, i) => wanted.findIndex((other) => wantedText(other) === wantedText(one)) === i);
  const text = Object.fromEntries(Object.entries(documentFor(unique)).filter(([name]) => name !== 'nd7'));
  return [
    `granted in this session: ${unique.map(wantedText).join('; ')}`,
    `to keep that, put this into ${policyFile}: ${JSON.stringify(text).slice(1, -1)}`,
  ].map((line) => safeLine(line));
}
