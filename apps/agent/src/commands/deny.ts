import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import type { RequestRow } from '../grants/entry.js';
import { printChanged, type Changed } from './allow.js';

/** `nd7 deny …`: refuses a request, or a thing for as long as a session lives. */
export function register(program: Command, io: Io): void {
  program
    .command('deny')
    .description('refuse what a living session asks for, or a path, host or socket for as long as it lives')
    .argument('<right>', 'the id of a request (r3); or read, write, net, socket')
    .argument('[what]', 'a path with all in it; a host (all its ports, unless one is named); a socket')
    .option('--session <id>', 'which session, where the folder you are in does not say')
    .addHelpText(
      'after',
      `
A request is answered, and the same asked again is refused without you. A host is closed from now on, whoever allows it, and connections to it
end. Of a path or socket no grant is given any more and those that live end; what the session's policy itself allows of files stays
allowed until it ends. nd7 revoke lifts a denial. docs/grants.md`,
    )
    .action((right: string, what: string | undefined, options: { session?: string }) => deny(right, what, options, io));
}

async function deny(right: string, what: string | undefined, options: { session?: string }, io: Io): Promise<void> {
  const [{ sessionFor, askSession }, { typedWanted }] = await Promise.all([
    import('../grants/find.js'),
    import('../grants/typed.js'),
  ]);
  const isRequest = /^r[1-9]\d*$/.test(right) && what === undefined;
  if (!isRequest && what === undefined) throw new CliError(2, 'it does not say what', `nd7 deny ${right} WHAT`);
  const wanted = what === undefined ? undefined : typedWanted(io, right, what, {}, '*');
  const found = await sessionFor(io, options.session);
  const changed = await askSession<Changed & { requests?: RequestRow[] }>(
    found,
    'deny',
    isRequest ? { request: right } : { wanted },
  );
  if (!io.isJson && changed.requests !== undefined) {
    const { requestLines } = await import('../grants/print.js');
    for (const line of changed.requests.flatMap((row) => requestLines(io, row))) io.out(line);
  }
  await printChanged(changed, found, io);
}
