import type { SessionReport } from '@nd7/verify';
import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import type { Target, TargetOptions } from '../verify/targets.js';

export interface VerifyOptions extends TargetOptions {
  vaultKey: string[];
  policy?: string;
  threads?: number;
}

/** What `--json` prints of one log: the verdict in front, the whole report behind. */
export interface Verified {
  session: string;
  path: string;
  verdict: SessionReport['verdict'];
  entries: number;
  head: string;
  bad_entry?: number;
  reason?: string;
  /** With receipts: `holds`, or the reason of the first that does not. */
  receipt?: string;
  report: SessionReport;
}

const more = (value: string, all: string[]) => [...all, value];

/** `nd7 verify`: bytes, head, receipts and pinned keys → a verdict, what it rests on, and what was not checked. */
export function register(program: Command, io: Io): void {
  program
    .command('verify')
    .description('check a session byte by byte, and say what the result rests on')
    .argument(
      '[session|path]',
      'a session id or its beginning, a log file, or a folder with one (default: the session written last)',
    )
    .option('--receipts', 'hold it against the receipts kept beside it, under the vault key pinned at enrolment')
    .option('--all', 'every session of the home')
    .option('--session <id>', 'the session that a log file is of')
    .option('--head <file>', 'the head file (default: head.json beside a file called log.jsonl)')
    .option('--receipt <file>', 'a receipt to hold it against (may be repeated)', more, [])
    .option('--vault-key <vkey>', 'a vault key to believe instead of the pinned one (may be repeated)', more, [])
    .option('--policy <file>', 'a witness policy whose quorum receipts must have (C2SP tlog-policy)')
    .option('--threads <n>', 'how many threads read a large log', count)
    .action((named: string | undefined, options: VerifyOptions) => verify(io, named, options));
}

function count(text: string): number {
  if (!/^[1-9][0-9]?$/.test(text))
    throw new CliError(2, `--threads must be a number from 1 to 99, not ${JSON.stringify(text.slice(0, 40))}`);
  return Number(text);
}

/** The command's work; tests call it many times in one process. */
export async function verify(io: Io, named: string | undefined, options: VerifyOptions): Promise<void> {
  const { findTargets } = await import('../verify/targets.js');
  const targets = findTargets(io, named, options);
  const trust = await trustOf(io, options, targets);
  const results: Verified[] = [];
  const unread: { session: string; message: string }[] = [];
  for (const target of targets) {
    try {
      const result = await one(io, target, trust, options);
      results.push(result);
      if (!isGood(result)) io.setExit(1);
      if (!io.isJson && options.all === true) line(io, result);
    } catch (error) {
      if (options.all !== true || !(error instanceof CliError)) throw error;
      unread.push({ session: target.session, message: error.message });
      io.setExit(1);
      if (!io.isJson) io.out(`${io.paint(['red', 'bold'], 'unread')}  ${target.session}  ${error.message}`);
    }
  }
  if (options.all === true) {
    const bad = results.filter((result) => !isGood(result)).length + unread.length;
    if (io.isJson)
      io.json({ verdict: bad === 0 ? 'intact' : 'broken', sessions: results, ...(unread.length > 0 && { unread }) });
    else if (results.length > 0) summary(io, results, bad);
    return;
  }
  const [result] = results;
  if (result === undefined) return;
  if (io.isJson) io.json(result);
  else await explain(io, result, options);
}

/** Everything checked out: the chain, and each receipt that was held against it. */
function isGood(result: Verified): boolean {
  return result.verdict === 'intact' && (result.receipt === undefined || result.receipt === 'holds');
}

type Trust = import('@nd7/receipt').Trust;

async function one(io: Io, target: Target, trust: Trust | undefined, options: VerifyOptions): Promise<Verified> {
  const { verifyFile } = await import('../verify/pool.js');
  const progress = io.progress(`verifying ${target.session}`, 'bytes');
  let report: SessionReport;
  try {
    report = await verifyFile(target.log, {
      session: target.session,
      isLive: target.isLive,
      receipts: target.receipts,
      now: Date.now(),
      onProgress: (done, total) => progress.update(done, total),
      ...(target.head && { head: target.head }),
      ...(trust && { trust }),
      ...(options.threads !== undefined && { threads: options.threads }),
    });
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: string };
    if (typeof code === 'string' && /^E[A-Z]+$/.test(code))
      throw new CliError(1, `${target.log} cannot be read: ${String(message)}`, undefined, code);
    throw error;
  } finally {
    progress.end();
  }
  const { session, verdict, entries, head, bad_entry, reason } = report;
  const failed = report.receipts.find(({ result }) => result !== 'holds');
  return {
    session,
    path: target.log,
    verdict,
    entries,
    head,
    ...(bad_entry !== undefined && { bad_entry }),
    ...(reason && { reason }),
    ...(report.receipts.length > 0 && { receipt: failed?.result ?? 'holds' }),
    report,
  };
}

/** Whom to believe: the keys named, else the one pinned at enrolment. Receipts without any key are a mistake worth stopping for. */
async function trustOf(io: Io, options: VerifyOptions, targets: readonly Target[]): Promise<Trust | undefined> {
  const { keysOf, policyOf } = await import('../verify/trust.js');
  const { read } = await import('../verify/targets.js');
  const policy =
    options.policy === undefined
      ? undefined
      : policyOf(Buffer.from(read(io, options.policy)).toString('utf8'), options.policy);
  if (options.vaultKey.length > 0) return { keys: keysOf(options.vaultKey), ...(policy && { policy }) };
  if (!targets.some(({ receipts }) => receipts.length > 0)) return undefined;
  const { readVaultFile, trustOf: pinned } = await import('@nd7/ship');
  const vault = readVaultFile(io.home);
  if (vault === undefined) {
    throw new CliError(
      2,
      'no vault key is pinned, so no receipt can be checked',
      'name the key with --vault-key VKEY, or enrol this machine with `nd7 enrol URL TOKEN`',
    );
  }
  return { ...pinned(vault), ...(policy && { policy }) };
}

function line(io: Io, result: Verified): void {
  const { entries, session, bad_entry, reason, receipt } = result;
  const word = isGood(result)
    ? io.paint(result.report.integrity.state === 'good' ? 'green' : 'bold', 'intact')
    : io.paint(['red', 'bold'], 'broken');
  const what =
    result.verdict === 'broken'
      ? `at entry ${String(bad_entry)}: ${String(reason)}`
      : `${String(entries).padStart(7)} entries`;
  const under =
    receipt === undefined
      ? ''
      : receipt === 'holds'
        ? `  ${String(result.report.receipts.length)} receipts hold`
        : `  receipt: ${receipt}`;
  io.out(`${word}  ${session}  ${what}${under}`);
}

function summary(io: Io, results: readonly Verified[], bad: number): void {
  const covered = results.filter(({ receipt }) => receipt === 'holds').length;
  io.out(
    `${String(results.length)} ${results.length === 1 ? 'session' : 'sessions'}, ${bad === 0 ? 'all check out' : io.paint(['red', 'bold'], `${String(bad)} do not check out`)}`,
  );
  const bare = results.filter((result) => isGood(result) && result.receipt === undefined);
  const why = covered === 0 ? 'no receipt was looked at: --receipts' : 'no receipt is kept';
  const onNothing = bare.filter(({ report }) => report.completeness.state === 'unchecked').length;
  const onHead = bare.length - onNothing;
  if (onHead > 0) io.out(`rests on the local head only: ${String(onHead)} of them (${why})`);
  if (onNothing > 0) io.out(`the length rests on nothing: ${String(onNothing)} of them have no head yet (${why})`);
}

const STATES = { good: 'green', part: 'yellow', bad: 'red', unchecked: 'dim' } as const;
const SHAPES = { good: '●', part: '▲', bad: '✖', unchecked: '◌' } as const;

async function explain(io: Io, result: Verified, options: VerifyOptions): Promise<void> {
  const { explainReport } = await import('@nd7/verify');
  const { report } = result;
  const [headline = '', ...rest] = explainReport(report);
  const isWhole = isGood(result);
  io.out(`session ${report.session}`);
  io.out(io.paint(report.verdict === 'broken' ? ['red', 'bold'] : 'bold', headline));
  for (const name of ['integrity', 'completeness', 'authenticity', 'freshness'] as const) {
    const { state, verdict, text } = report[name];
    io.out(`${io.paint(STATES[state], `${SHAPES[state]} ${name.padEnd(13)} ${verdict}`)}  ${text}`);
  }
  // The four verdicts stand above; what follows them in the report's own words is the same as in the browser.
  for (const sentence of rest.slice(4)) {
    const isCaveat = /^(rests on the local head only|the length rests on nothing|rests on nothing)/.test(sentence);
    io.out(isCaveat ? io.paint('yellow', `  ${sentence}`) : `  ${sentence}`);
  }
  if (isWhole && options.receipts === true && result.receipt === undefined) {
    io.out(
      io.paint(
        'yellow',
        '  no receipt is kept for this session: nothing of it has been shipped, or its receipts were removed',
      ),
    );
  }
}
