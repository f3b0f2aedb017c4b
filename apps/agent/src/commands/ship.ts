import type { Command } from 'commander';
import type { Home } from '@nd7/journal';
import type { Io } from '../cli/io.js';
import type { Outcome } from '../shipping/flush.js';

interface Options {
  follow?: boolean;
}

/** `nd7 ship`: deliver what is recorded until a verified receipt is held for it. */
export function register(program: Command, io: Io): void {
  program
    .command('ship')
    .description(
      'ship recorded sessions to the vault and check its receipts (the recorder of an enrolled machine does so by itself)',
    )
    .argument('[session...]', 'session ids or their beginnings (default: all that have entries without a receipt)')
    .option('--follow', 'go on shipping and show each receipt, until Ctrl-C')
    .action((sessions: string[], options: Options) => ship(io, sessions, options));
}

async function ship(io: Io, named: string[], options: Options): Promise<void> {
  const { Home } = await import('@nd7/journal');
  const { enrolledAt, flush, unshipped } = await import('../shipping/flush.js');
  const { findSession } = await import('../show/target.js');
  const { asCliError } = await import('../shipping/errors.js');
  const home = new Home(io.home);
  const chosen = named.map((one) => findSession(home, one).session);
  try {
    const vault = enrolledAt(io.home);
    const { policy, trouble } = await pullPolicy(io);
    // Behind what is shipped: where that fails by the same fault it is said once.
    const tell = (): void => void (trouble !== undefined && io.err(trouble));
    if (options.follow === true) {
      tell();
      return await follow(io, home, chosen, vault.url);
    }
    const outcomes = await flush(io.home, chosen.length > 0 ? chosen : unshipped(home));
    if (io.isJson)
      io.json({ vault: vault.url, origin: vault.origin, team_policy: policy, sessions: outcomes.map(plain) });
    else if (outcomes.length === 0) io.out('everything recorded is under a receipt');
    else for (const outcome of outcomes) show(io, outcome);
    tell();
    if (outcomes.some((outcome) => outcome.state !== 'shipped')) io.setExit(1);
  } catch (error) {
    throw asCliError(error);
  }
}

/**
 * Fetches the team's policy with what is shipped, where the vault has a newer one; that it could not be had holds nothing up. Two policies of one version are told and make the exit 1.
 * `policy`: as `nd7 policy pull --json`, null where it was not had, and `trouble` says why.
 */
async function pullPolicy(
  io: Io,
): Promise<{ policy: { version: number | null; changed: boolean } | null; trouble?: string }> {
  const [{ isShipError, pullTeamPolicy }, { machineKey, openHome }, { systemClock, systemRandom }, { safeLine }] =
    await Promise.all([import('@nd7/ship'), import('@nd7/journal'), import('@nd7/signing'), import('../show/safe.js')]);
  try {
    const signer = machineKey(openHome(io.home));
    const parts = { home: io.home, signer, clock: systemClock, random: systemRandom };
    const { version = null, changed } = await pullTeamPolicy(parts);
    if (changed && !io.isJson) io.out(`version ${String(version)} of the team’s policy holds from the next session on`);
    return { policy: { version, changed } };
  } catch (error) {
    const why = safeLine(error instanceof Error ? error.message : String(error));
    const trouble = `nd7: the team’s policy was not fetched: ${why}`;
    if (!isShipError(error) || error.code !== 'two-policies') return { policy: null, trouble };
    io.setExit(1);
    io.err(trouble);
    return { policy: null };
  }
}

/** Shows what is shipped as it happens; Ctrl-C or SIGTERM ends it, with 1 where the last word on a session was that it cannot be shipped (now). */
async function follow(io: Io, home: Home, chosen: readonly string[], url: string): Promise<void> {
  const { follow: outcomesOf } = await import('../shipping/follow.js');
  const { unshipped } = await import('../shipping/flush.js');
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  if (!io.isJson) io.err(io.paint('dim', `shipping to ${url}; Ctrl-C ends it`));
  const states = new Map<string, Outcome['state']>();
  for await (const outcome of outcomesOf(home, chosen, stop.signal)) {
    states.set(outcome.session, outcome.state);
    if (io.isJson) io.json(plain(outcome));
    else show(io, outcome);
  }
  if ([...states.values()].some((state) => state === 'failed' || state === 'offline')) io.setExit(1);
  if (io.isJson) return;
  const waiting = unshipped(home).filter((session) => chosen.length === 0 || chosen.includes(session));
  io.err(
    waiting.length === 0
      ? 'everything recorded is under a receipt'
      : `entries of ${waiting.length === 1 ? '1 session have' : `${waiting.length} sessions have`} no receipt yet; they are kept, and the recorder or \`nd7 ship\` ships them`,
  );
}

/** snake_case for `--json`; the fields of a report are single words already, but for one. */
function plain(outcome: Outcome): Record<string, unknown> {
  if (outcome.state === 'failed') return { ...outcome };
  const { retryAfter, ...rest } = outcome;
  return { ...rest, ...(retryAfter === undefined ? {} : { retry_after_ms: retryAfter }) };
}

function show(io: Io, outcome: Outcome): void {
  const { session } = outcome;
  if (outcome.state === 'failed') {
    io.out(`${io.paint('red', '✗')} ${session}  ${io.paint('red', outcome.code)}: ${outcome.problem}`);
    io.out('  Nothing was removed: log, outbox and receipts are kept.');
    if (outcome.continued_as !== undefined) io.out(`  The recorder goes on in ${outcome.continued_as}.`);
    return;
  }
  for (const alarm of outcome.alarms) io.out(`${io.paint('yellow', '!')} ${session}  ${alarm.code}: ${alarm.text}`);
  const { entries, acknowledged, segments } = outcome;
  const count =
    segments.length === 0 ? '' : `, ${segments.length} ${segments.length === 1 ? 'segment' : 'segments'} now`;
  if (outcome.state === 'shipped') {
    io.out(
      `${io.paint('green', '✓')} ${session}  ${acknowledged} of ${entries} entries under receipts that hold${count}`,
    );
  } else {
    const why =
      outcome.state === 'pending'
        ? 'the receipt is not published yet'
        : (outcome.problem ?? 'the vault cannot be reached');
    io.out(
      `${io.paint('yellow', '…')} ${session}  ${acknowledged} of ${entries} entries under receipts; queued: ${why}`,
    );
  }
}
