import type { Command } from 'commander';
import type { Io } from '../cli/io.js';
import type { DenialRow, GrantRow, RequestRow } from '../grants/entry.js';

interface Listed {
  session: string;
  project: string;
  grants: GrantRow[];
  denials: DenialRow[];
  requests: RequestRow[];
}

/** `nd7 grants`: what living sessions were granted, denied and are asking for. */
export function register(program: Command, io: Io): void {
  program
    .command('grants')
    .description('list what living sessions were granted and denied, and what they ask for')
    .option('--all', 'also what has ended and what was answered')
    .option('--session <id>', 'one session')
    .addHelpText(
      'after',
      '\nThe words after ‘asked by’ are those of a program inside; nobody vouches for them. docs/grants.md',
    )
    .action((options: { all?: boolean; session?: string }) => list(options, io));
}

async function list({ all, session }: { all?: boolean; session?: string }, io: Io): Promise<void> {
  const { livingSessions, sessionFor, askSession } = await import('../grants/find.js');
  const found = session === undefined ? await livingSessions(io.home) : [await sessionFor(io, session)];
  const lists = await Promise.all(found.map((one) => askSession<Listed>(one, 'grants', {})));
  const shown = lists.map((one): Listed => {
    const isShown = ({ state }: { state: string }): boolean =>
      all === true || state === 'living' || state === 'pending';
    const { grants, denials, requests } = one;
    return {
      ...one,
      grants: grants.filter(isShown),
      denials: denials.filter(isShown),
      requests: requests.filter(isShown),
    };
  });
  if (io.isJson) {
    io.json({ sessions: shown });
    return;
  }
  if (shown.length === 0) io.out('no session runs that nd7 run has started');
  const [{ grantLine, requestLines }, { safeLine }] = await Promise.all([
    import('../grants/print.js'),
    import('../show/safe.js'),
  ]);
  for (const { session: id, project, grants, denials, requests } of shown) {
    io.out(`${io.paint('bold', id)}  ${safeLine(project)}`);
    for (const row of grants) io.out(`  ${grantLine(io, row)}`);
    for (const row of denials) io.out(`  ${io.paint('red', 'denied')} ${grantLine(io, row)}`);
    for (const line of requests.flatMap((row) => requestLines(io, row))) io.out(`  ${line}`);
    if (grants.length + denials.length + requests.length === 0) io.out('  nothing was granted, denied or asked for');
  }
}
