import type { Command } from 'commander';
import type { Io } from '../cli/io.js';

interface SessionRow {
  session: string;
  agent: string | null;
  /** Entry 0's time. */
  started: string | null;
  /** When the log was last written. */
  written: string;
  entries: number | null;
  bytes: number;
  /** Entries under a kept receipt; not verified here. */
  receipted: number;
  continues: string | null;
}

/** `nd7 sessions`: what is recorded on this machine, the last written first. Nothing of it is verified. */
export function register(program: Command, io: Io): void {
  program
    .command('sessions')
    .description('list the recorded sessions, the last written first')
    .option('-n, --limit <n>', 'at most so many')
    .action((options: { limit?: string }) => sessions(io, options));
}

export async function sessions(io: Io, options: { limit?: string }): Promise<void> {
  const { CliError } = await import('../cli/io.js');
  const { Home, listSessions, readFirst, receiptCounts, startOf } = await import('@nd7/journal');
  const { safeLine } = await import('../show/safe.js');
  if (options.limit !== undefined && !/^[1-9][0-9]{0,8}$/.test(options.limit))
    throw new CliError(2, '--limit must be a number above 0');
  const home = new Home(io.home);
  const all = listSessions(home);
  const rows = all
    .slice(0, options.limit === undefined ? undefined : Number(options.limit))
    .map(({ session, bytes, modified, head }): SessionRow => {
      const first = readFirst(home, session);
      return {
        session,
        agent: agentOf(first?.data),
        started: first?.time ?? null,
        written: new Date(modified).toISOString(),
        entries: head?.entries ?? null,
        bytes,
        receipted: receiptCounts(home, session).at(-1) ?? 0,
        continues: startOf(first).continues?.session ?? null,
      };
    });
  if (io.isJson) {
    io.json({ sessions: rows, total: all.length });
    return;
  }
  if (rows.length === 0) {
    io.out(`nothing is recorded in ${io.home} yet: \`nd7 init\` attaches an agent`);
    return;
  }
  const { formatBytes } = await import('../cli/io.js');
  io.out(
    io.paint(
      'bold',
      `${'session'.padEnd(38)} ${'agent'.padEnd(12)} ${'last written (UTC)'.padEnd(19)} ${'entries'.padStart(7)} ${'size'.padStart(8)}  under a receipt`,
    ),
  );
  for (const row of rows) {
    const under = row.receipted === 0 ? 'none' : row.receipted === row.entries ? 'all' : `to ${String(row.receipted)}`;
    const name = `${row.session.padEnd(38)} ${safeLine(row.agent ?? '?')
      .slice(0, 12)
      .padEnd(12)}`;
    io.out(
      `${name} ${row.written.slice(0, 19).replace('T', ' ')} ${(row.entries === null ? '?' : String(row.entries)).padStart(7)} ${formatBytes(row.bytes).padStart(8)}  ${under}`,
    );
  }
  if (rows.length < all.length) io.out(io.paint('dim', `and ${String(all.length - rows.length)} more`));
  io.out(io.paint('dim', 'counts are the head files’ own; `nd7 verify --all` checks every byte'));
}

/** The agent that entry 0 names. */
function agentOf(data: string | undefined): string | null {
  if (data === undefined) return null;
  const { agent } = JSON.parse(data) as { agent?: unknown };
  return typeof agent === 'string' ? agent : null;
}
