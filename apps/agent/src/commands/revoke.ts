import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import { printChanged, type Changed } from './allow.js';

/** `nd7 revoke …`: ends grants, and lifts denials. */
export function register(program: Command, io: Io): void {
  program
    .command('revoke')
    .description('end grants of a living session, or lift its denials')
    .argument('[ids...]', 'as nd7 grants has them: g1, d2')
    .option('--all', 'all of them')
    .option('--session <id>', 'which session, where the folder you are in does not say')
    .addHelpText(
      'after',
      '\nConnections to a host that is closed again are ended. A file or socket that a program inside has opened stays open to it. docs/grants.md',
    )
    .action((ids: string[], options: { all?: boolean; session?: string }) => revoke(ids, options, io));
}

async function revoke(ids: string[], { all, session }: { all?: boolean; session?: string }, io: Io): Promise<void> {
  if ((ids.length === 0) === (all !== true))
    throw new CliError(2, 'it does not say which', 'Name grants by their ids (nd7 grants), or say --all.');
  const { sessionFor, askSession } = await import('../grants/find.js');
  const found = await sessionFor(io, session);
  await printChanged(await askSession<Changed>(found, 'revoke', all === true ? { all } : { ids }), found, io);
}
