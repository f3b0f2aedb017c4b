import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';

/** `nd7 ask …`: a program inside a session asks the person for more. */
export function register(program: Command, io: Io): void {
  program
    .command('ask')
    .description('inside a session: ask the person at this machine for a path, host or socket')
    .argument('<right>', 'read, write, net or socket')
    .argument('<what>', 'a path, a host (example.com:8443), the name or path of a socket')
    .option('--reason <text>', 'what it is for')
    .option('--below', 'of a folder: with all that is in it')
    .option('--raw', 'of a host: any protocol')
    .option('--wait', 'until it is decided: exits 0 when granted, 1 when denied or not decided in time')
    .option('--timeout <time>', 'how long --wait waits, 15 minutes at most', '10m')
    .addHelpText('after', '\nIt widens nothing: the person answers outside, by nd7 allow or nd7 deny. docs/grants.md')
    .action((right: string, what: string, options: AskOptions) => ask(right, what, options, io));
}

interface AskOptions {
  reason?: string;
  below?: boolean;
  raw?: boolean;
  wait?: boolean;
  timeout: string;
}

async function ask(right: string, what: string, options: AskOptions, io: Io): Promise<void> {
  const [{ askAt }, { basename, dirname }] = await Promise.all([import('../recorder/client.js'), import('node:path')]);
  const door = io.env['ND7_SOCKET'] ?? '/run/nd7/hook';
  const words = [
    'ask',
    ...(options.below === true ? ['--below'] : []),
    ...(options.raw === true ? ['--raw'] : []),
    ...(options.wait === true ? ['--wait'] : []),
    ...(io.isJson ? ['--json'] : []),
    '--timeout',
    options.timeout,
    '--reason',
    options.reason ?? '',
    '--',
    right,
    what,
  ];
  const answer = await askAt({ folder: dirname(door), name: basename(door) }, 'ask', {
    meta: { cwd: io.cwd },
    payload: Buffer.from(words.map((word) => `${word.replaceAll('\0', '')}\0`).join('')),
    timeoutMs: Infinity,
  });
  if (answer === undefined)
    throw new CliError(
      2,
      'this is not inside a session that nd7 run has started',
      'Outside, a person says nd7 allow.',
      'not-inside',
    );
  if (answer.stdout !== '') io.out(answer.stdout.trimEnd());
  if (answer.stderr !== '') io.err(answer.stderr.trimEnd());
  io.setExit(answer.exit === 0 ? 0 : answer.exit === 2 ? 2 : 1);
}
