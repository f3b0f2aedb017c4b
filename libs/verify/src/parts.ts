import { genesis, headMarks, PartWalk, stitchParts, type Head, type PartResult, type PartStart } from '@nd7/chain';
import type { LineKernel } from '@nd7/blake3';
import type { Trust } from '@nd7/receipt';
import type { SignatureVerifier } from '@nd7/tlog';
import { assemble } from './assemble.js';
import { addCounts, noEntries, Tally, type ClassCounts } from './classes.js';
import { holdAgainst, readReceipts, receiptMarks } from './receipts.js';
import type { SessionReport } from './report.js';

/** What a part of a log is walked for. Plain data: it goes to a worker as it is. */
export interface PartJob {
  session: string;
  start: PartStart | 'unknown';
  marks: number[];
}

/** What a part says. Plain data: it comes back from a worker as it is. */
export interface PartReport {
  walk: PartResult;
  /** Classes of the good entries before the part's first seal of unknown key, and from it on. */
  classes: [ClassCounts, ClassCounts];
  ended?: boolean;
}

/** What a part is walked with, where it is walked. */
export interface PartTools {
  kernel: LineKernel;
  verify: SignatureVerifier;
  /** After each chunk: bytes and entries so far, of this part. */
  onProgress?: (bytes: number, entries: number) => void;
  onEntry?: (seq: number, line: Uint8Array) => void;
}

/** Walks one part of a log. A part begins at the start of a line and ends with a newline or with the log. */
export async function runPart(
  job: PartJob,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  tools: PartTools,
): Promise<PartReport> {
  const { onEntry } = tools;
  const tallies = [new Tally(), new Tally()] as const;
  const walk: PartWalk = new PartWalk({
    session: job.session,
    start: job.start,
    marks: job.marks,
    kernel: tools.kernel,
    verify: tools.verify,
    onLabel: (label, count) => {
      tallies[walk.deferredAt === undefined ? 0 : 1].add(label, count);
    },
    ...(onEntry && { onEntry: (seq, { bytes, start, end }) => onEntry(seq, bytes.subarray(start, end)) }),
  });
  let done = 0;
  const take = async (chunk: Uint8Array) => {
    await walk.push(chunk);
    done += chunk.length;
    tools.onProgress?.(done, walk.good);
  };
  if (bytes instanceof Uint8Array) await take(bytes);
  else for await (const chunk of bytes) await take(chunk);
  const ended = tallies[1].ended ?? tallies[0].ended;
  return {
    walk: walk.finish(),
    classes: [tallies[0].counts, tallies[1].counts],
    ...(ended !== undefined && { ended }),
  };
}

/** What a session is verified against. */
export interface Against {
  session: string;
  /** What `head.json` says; absent: the length rests on receipts, or on nothing. */
  head?: Head;
  receipts?: readonly (Uint8Array | string)[];
  /** The pinned vault keys and the witness policy; without keys no receipt is checked, and the report says so. */
  trust?: Trust;
  verify: SignatureVerifier;
  /** Milliseconds since the epoch; without it freshness is not judged. */
  now?: number;
}

/**
 * Verifies a log that was cut into parts, each walked wherever its runner likes (a worker for each), to the report that a single
 * walk gives. The parts are contiguous, in order, and cut at line starts; the first begins at entry 0.
 */
export async function verifyParts(
  parts: readonly ((job: PartJob) => Promise<PartReport>)[],
  against: Against,
): Promise<SessionReport> {
  const { session, head, trust, verify } = against;
  const start = { entries: 0, head: genesis(session), key: null };
  const receipts = await readReceipts(against.receipts ?? [], trust, verify);
  const marks = [...headMarks(head), ...receiptMarks(receipts)];
  const reports = await Promise.all(parts.map((run, i) => run({ session, start: i === 0 ? start : 'unknown', marks })));
  const walk = await stitchParts(
    reports.map((report) => report.walk),
    { session, verify, ...(head && { head }) },
  );
  return assemble({
    session,
    walk,
    receipts: holdAgainst(receipts, session, walk),
    ...tally(reports, walk.intactTo),
    head,
    trust,
    now: against.now,
  });
}

/** The counts of the entries that the stitched chain reaches, and whether the session had ended there. */
function tally(reports: readonly PartReport[], reached: number): { classes: ClassCounts; ended: boolean } {
  const classes = noEntries();
  let ended = false;
  let left = reached;
  for (const report of reports) {
    if (left <= 0) break;
    const [before, after] = report.classes;
    addCounts(classes, before);
    if (left >= report.walk.good) {
      addCounts(classes, after);
      ended = report.ended ?? ended;
    }
    left -= report.walk.good;
  }
  return { classes, ended };
}
