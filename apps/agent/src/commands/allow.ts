import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import type { DenialRow, GrantRow, RequestRow } from '../grants/entry.js';
import type { Found } from '../grants/find.js';
import type { Wanted } from '../grants/wanted.js';

interface AllowOptions {
  session?: string;
  for: string;
  below?: boolean;
  raw?: boolean;
  yes?: boolean;
}

/** What a session answers to a change of what it may. */
export interface Changed {
  session: string;
  grants: GrantRow[];
  denials: DenialRow[];
  /** Connections that were ended by it. */
  closed: number;
  risks: string[];
}

/** `nd7 allow …`: widens a living session from another terminal. */
export function register(program: Command, io: Io): void {
  program
    .command('allow')
    .description('let a living session do more: read or write a path, reach a host, connect to a socket')
    .argument('<right>', 'read, write, net or socket; or the id of a request: r3')
    .argument('[what...]', 'paths; hosts (example.com, example.com:8443); ssh-agent, docker or the path of a socket')
    .option('--session <id>', 'which session, where the folder you are in does not say')
    .option(
      '--for <time>',
      'how long: call (to the end of the agent’s next tool call), 90s, 10m, 2h, session',
      'session',
    )
    .option('--below', 'of a folder: with all that is in it')
    .option('--raw', 'of a host: any protocol, not TLS for that name alone')
    .option('--yes', 'without being asked about what is risky')
    .addHelpText(
      'after',
      `
It holds from the moment it is printed, for the whole session, and is an entry of the session's record before it does. nd7 grants lists what
holds, nd7 revoke ends it. What nd7 itself and a team's policy hold is not granted. docs/grants.md`,
    )
    .action((right: string, what: string[], options: AllowOptions) => allow(right, what, options, io));
}

async function allow(right: string, what: string[], options: AllowOptions, io: Io): Promise<void> {
  const [{ sessionFor, askSession }, { parseScope }] = await Promise.all([
    import('../grants/find.js'),
    import('../grants/scope.js'),
  ]);
  if (parseScope(options.for) === undefined)
    throw new CliError(
      2,
      `"${options.for}" is no time`,
      'Say --for call, 90s, 10m, 2h, 1d (30 days at most) or session.',
    );
  const isRequest = /^r[1-9]\d*$/.test(right) && what.length === 0;
  if (!isRequest && what.length === 0) throw new CliError(2, 'it does not say what', `nd7 allow ${right} WHAT`);
  const named = isRequest ? [] : await wantedOf(io, right, what, options);
  const found = await sessionFor(io, options.session);
  const wanted = isRequest ? [await requested(found, right)] : named;
  const question = { wanted, for: options.for, request: isRequest ? right : null };
  const ask = (yes: boolean): Promise<Partial<Changed>> => askSession(found, 'allow', { ...question, yes });
  const astray = await linksIn(io, right, what, named);
  if (astray.length > 0 && options.yes !== true) await confirmed(astray, io);
  let done = await ask(options.yes === true);
  if (done.grants === undefined) {
    await confirmed(done.risks ?? [], io);
    done = await ask(true);
  }
  await printChanged(done as Changed, found, io);
}

async function wantedOf(io: Io, right: string, what: string[], options: AllowOptions): Promise<Wanted[]> {
  const { typedWanted } = await import('../grants/typed.js');
  return what.map((one) => typedWanted(io, right, one, options));
}

/** Links that may be the session’s own work. */
async function linksIn(io: Io, right: string, what: string[], wanted: readonly Wanted[]): Promise<string[]> {
  const { ledAstray } = await import('../grants/typed.js');
  return wanted.flatMap(({ what: real }, i) => {
    const said = ledAstray(io, right, what[i] as string);
    return said === undefined ? [] : [`${said} leads by a link to ${real}: who made the link chose that`];
  });
}

/** What a request asks for: the smallest that would do. */
async function requested(found: Found, id: string): Promise<Wanted> {
  const { askSession } = await import('../grants/find.js');
  const { requests } = await askSession<{ requests: RequestRow[] }>(found, 'grants', {});
  const request = requests.find((one) => one.id === id);
  if (request === undefined)
    throw new CliError(1, `no request is called ${id}`, '`nd7 grants` lists them.', 'no-request');
  return { right: request.right as Wanted['right'], what: request.what, below: request.below, raw: request.raw };
}

async function confirmed(risks: readonly string[], io: Io): Promise<void> {
  const { safeLine } = await import('../show/safe.js');
  if (io.isJson || !io.isTerminal || !process.stdin.isTTY)
    throw new CliError(
      2,
      `nothing was granted: ${risks.map((risk) => safeLine(risk)).join('; ')}`,
      'Add --yes if that is meant.',
      'risky',
    );
  for (const risk of risks) io.out(`${io.paint(['yellow', 'bold'], 'careful')}  ${safeLine(risk)}`);
  const { confirm } = await import('@inquirer/prompts');
  if (!(await confirm({ message: 'Grant it all the same?', default: false })))
    throw new CliError(1, 'nothing was granted', undefined, 'not-confirmed');
}

/** Says what was changed, and what that does not reach. */
export async function printChanged(changed: Changed, found: Found, io: Io): Promise<void> {
  if (io.isJson) {
    io.json(changed);
    return;
  }
  const [{ grantLine }, { safeLine }] = await Promise.all([import('../grants/print.js'), import('../show/safe.js')]);
  const { grants, denials, closed, risks } = changed;
  for (const row of [...grants, ...denials]) io.out(grantLine(io, row));
  for (const risk of risks) io.out(`${io.paint('yellow', 'note')}  ${safeLine(risk)}`);
  if (closed > 0) io.out(`${closed} open connection${closed === 1 ? ' was' : 's were'} ended`);
  const files = grants.filter(({ right, state }) => state === 'ended' && right !== 'net');
  if (files.length > 0)
    io.out('files and sockets that programs inside have opened by then stay open until they close them');
  io.out(io.paint('dim', `session ${found.session} in ${safeLine(found.project)}`));
}
