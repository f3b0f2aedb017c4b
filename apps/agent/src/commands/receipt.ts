import type { Command } from 'commander';
import type { Io } from '../cli/io.js';

interface Options {
  entries?: string;
  raw?: boolean;
}

/** `nd7 receipt`: what the vault signed for a session, checked under the pinned key. */
export function register(program: Command, io: Io): void {
  program
    .command('receipt')
    .description(
      'show the receipts of a session: what the vault signed, where it stands in its log, and whether it holds',
    )
    .argument('<session>', 'a session id or its beginning')
    .option('--entries <n>', 'the receipt for the first n entries (default: the last)')
    .option('--raw', 'print its text as kept (c2sp.org/tlog-proof@v1) and nothing else')
    .action((session: string, options: Options) => receipt(io, session, options));
}

async function receipt(io: Io, named: string, options: Options): Promise<void> {
  const { CliError } = await import('../cli/io.js');
  const { Home, readReceipts } = await import('@nd7/journal');
  const { findSession } = await import('../show/target.js');
  const home = new Home(io.home);
  const { session } = findSession(home, named);
  const all = readReceipts(home, session);
  if (all.length === 0)
    throw new CliError(
      1,
      `no receipt is held for session ${session}`,
      '`nd7 ship` gets one from the vault',
      'no-receipt',
    );
  const wanted = options.entries === undefined ? all : all.filter(({ entries }) => String(entries) === options.entries);
  if (wanted.length === 0) {
    throw new CliError(
      2,
      `no receipt for ${options.entries ?? ''} entries is held`,
      `there are receipts for ${all.map(({ entries }) => entries).join(', ')}`,
    );
  }
  const last = wanted.at(-1);
  if (options.raw === true && last !== undefined) {
    const { safeText } = await import('../show/safe.js');
    process.stdout.write(io.isTerminal ? safeText(Buffer.from(last.text).toString('utf8')) : last.text);
    return;
  }
  const checked = await Promise.all(wanted.map(({ entries, text }) => check(io, session, entries, text)));
  if (checked.some(({ result }) => result !== 'holds')) io.setExit(1);
  if (io.isJson) {
    io.json({ session, receipts: checked });
    return;
  }
  io.out(`Session ${session}: ${checked.length} ${checked.length === 1 ? 'receipt' : 'receipts'}`);
  for (const row of checked) {
    const mark = row.result === 'holds' ? io.paint('green', '✓ holds') : io.paint('red', `✗ ${row.result}`);
    if (row.to === 0) io.out(`  ${mark}  kept as the receipt for ${row.entries} entries, and none that can be read`);
    else
      io.out(
        `  ${mark}  entries ${row.from}–${row.to - 1}  leaf ${row.index} of ${row.size} in ${row.origin}  received ${row.received}`,
      );
  }
  io.out(
    io.paint(
      'dim',
      `Checked by themselves under the pinned key; \`nd7 verify ${session} --receipts\` holds them against the log.`,
    ),
  );
}

interface Row {
  entries: number;
  result: string;
  from: number;
  to: number;
  head: string;
  origin: string;
  index: number;
  size: number;
  received: string;
}

async function check(io: Io, session: string, entries: number, text: Uint8Array): Promise<Row> {
  const { checkReceiptItself, parseReceipt } = await import('@nd7/receipt');
  const { verifySignatures } = await import('@nd7/signing');
  const { trustOf } = await import('@nd7/ship');
  const { enrolledAt } = await import('../shipping/flush.js');
  const { asCliError } = await import('../shipping/errors.js');
  let verdict: Awaited<ReturnType<typeof checkReceiptItself>>;
  try {
    verdict = await checkReceiptItself(text, trustOf(enrolledAt(io.home)), verifySignatures);
  } catch (error) {
    throw asCliError(error);
  }
  const parsed = verdict.ok ? verdict.receipt : parseReceipt(text);
  const statement = parsed?.statement.type === 'head' ? parsed.statement : undefined;
  const isOurs = statement?.session === session;
  return {
    entries,
    result: !verdict.ok ? verdict.reason : isOurs ? 'holds' : 'receipt-mismatch',
    from: statement?.from ?? 0,
    to: statement?.to ?? 0,
    head: statement?.head ?? '',
    origin: statement?.origin ?? '',
    index: parsed?.index ?? 0,
    size: parsed?.checkpoint.size ?? 0,
    received: statement?.received ?? '',
  };
}
