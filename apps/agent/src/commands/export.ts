import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import type { Sink } from '../show/sink.js';

interface ExportOptions {
  out?: string;
  tar?: string;
  detached?: boolean;
}

/** `nd7 export`: a session with everything that is needed to check it elsewhere, by hand too. */
export function register(program: Command, io: Io): void {
  program
    .command('export')
    .description('copy a session with its receipts, and a page that says how to check it without nd7')
    .argument('<session>', 'a session id or its beginning')
    .option('-o, --out <folder>', 'the folder to make (default: one named by the session id, here)')
    .option('--tar <file>', 'a tar archive instead; - is standard output')
    .option(
      '--detached',
      'also large values that stand outside the log (never secrets, never what a policy holds back)',
    )
    .action((named: string, options: ExportOptions) => exportSession(io, named, options));
}

export async function exportSession(io: Io, named: string, options: ExportOptions): Promise<void> {
  if (options.out !== undefined && options.tar !== undefined)
    throw new CliError(2, '--out and --tar exclude each other');
  if (options.tar === '-' && (io.isJson || io.isTerminal))
    throw new CliError(2, 'an archive on standard output goes into a file or a pipe, without --json');
  const { Home, readReceipts } = await import('@nd7/journal');
  const { findSession } = await import('../show/target.js');
  const { folderSink, tarSink } = await import('../show/sink.js');
  const { exportReadme } = await import('../show/export-readme.js');
  const { openLog, readRange, settledSize } = await import('../verify/read.js');
  const { readVaultFile } = await import('@nd7/ship');
  const { parseHeadFile } = await import('@nd7/chain');
  const home = new Home(io.home);
  const { session } = findSession(home, named);
  const vault = readVaultFile(io.home);
  // The head first, then the log: a log may be longer than its head, never shorter.
  const head = optional(home.headFile(session));
  const receipts = readReceipts(home, session);
  const now = Date.now();
  const to =
    options.tar === '-' ? process.stdout : options.tar === undefined ? undefined : resolve(io.cwd, options.tar);
  const folder = resolve(io.cwd, options.out ?? session);
  const sink = to === undefined ? folderSink(folder) : tarSink(to, session, Math.floor(now / 1000));
  const progress = io.progress(`exporting ${session}`, 'bytes');
  let log: import('node:fs/promises').FileHandle | undefined;
  try {
    log = await openLog(home.logFile(session));
    const size = await settledSize(log, true);
    const add = (name: string, bytes: Uint8Array | string) => addWhole(sink, name, bytes);
    const blobs = options.detached === true ? await detachedValues(log, size, home.blobs) : [];
    const reference = optional(new URL('../../../../tests/reference/nd7ref.py', import.meta.url));
    await add(
      'README.txt',
      exportReadme({
        session,
        entries: head && parseHeadFile(head)?.entries,
        receipts: receipts.map(({ entries }) => entries),
        vkey: vault?.vkey,
        reference: reference !== undefined,
        blobs: blobs.length,
        exported: new Date(now).toISOString(),
      }),
    );
    await sink.add(
      'log.jsonl',
      size,
      counted(readRange(log, 0, size), (done) => progress.update(done, size)),
    );
    if (head !== undefined) await add('head.json', head);
    for (const { entries, text } of receipts) await add(`receipts/${String(entries)}.tlog-proof`, text);
    if (vault !== undefined) {
      await add('vault.vkey', `${vault.vkey}\n`);
      await add('witness.policy', vault.policy);
    }
    if (reference !== undefined) await add('nd7ref.py', reference);
    for (const { hash, bytes } of blobs) await add(`blobs/${hash}`, bytes);
    await sink.end();
    progress.end();
    const where = options.tar ?? folder;
    if (io.isJson)
      io.json({
        session,
        path: to === undefined ? folder : to,
        bytes: size,
        receipts: receipts.length,
        blobs: blobs.length,
      });
    else if (options.tar !== '-')
      io.out(`${where}: ${String(receipts.length)} receipts, README.txt says how to check it`);
  } catch (error) {
    progress.end();
    sink.abandon();
    throw error;
  } finally {
    await log?.close();
  }
}

async function addWhole(sink: Sink, name: string, content: Uint8Array | string): Promise<void> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  await sink.add(name, bytes.length, [bytes]);
}

async function* counted(chunks: AsyncIterable<Uint8Array>, tell: (done: number) => void): AsyncGenerator<Uint8Array> {
  let done = 0;
  for await (const chunk of chunks) {
    yield chunk;
    tell((done += chunk.length));
  }
}

function optional(path: string | URL): Uint8Array | undefined {
  return existsSync(path) ? readFileSync(path) : undefined;
}

/** The blobs of values detached for their size or depth. The log says why each was detached; what it calls secret is not looked for. */
async function detachedValues(
  log: import('node:fs/promises').FileHandle,
  size: number,
  folder: string,
): Promise<{ hash: string; bytes: Uint8Array }[]> {
  const { readEntry } = await import('@nd7/entry');
  const { LineCutter } = await import('../show/lines.js');
  const { readRange } = await import('../verify/read.js');
  const { join } = await import('node:path');
  const found = new Map<string, Uint8Array>();
  const cutter = new LineCutter();
  for await (const chunk of readRange(log, 0, size)) {
    for (const { bytes } of cutter.push(chunk)) {
      if (!Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes('"detached"')) continue;
      for (const { blake3, why } of readEntry(bytes).detached ?? []) {
        const blob = why === 'size' || why === 'depth' ? optional(join(folder, blake3)) : undefined;
        if (blob !== undefined) found.set(blake3, blob);
      }
    }
  }
  return [...found].map(([hash, bytes]) => ({ hash, bytes }));
}
