// The command line of `nd7-vault`. Exit codes: 0 done, 1 it could not be done, 2 usage or configuration.
import { Command, CommanderError } from 'commander';
import { AdminIo, failure } from './io.js';
import { registerPeople } from './people.js';
import { registerTeam } from './team.js';
import { registerPolicy } from '../policy/command.js';
import { checkLogs } from '../sequence/check.command.js';
import { registerSignerCommands } from '../signer/commands.js';
import { checkGuards } from '../db/boot-check.js';
import { migrate } from '../db/migrate.js';
import { VERSION } from '../version.js';

export interface Streams {
  out(text: string): void;
  err(text: string): void;
}

const PROCESS: Streams = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
};

const SETTINGS = `
Settings, by environment (docs/operate.md says more):
  ND7_VAULT_NAME            first half of every origin; must be set, never changed
  ND7_DATABASE_URL          where the service logs in; must be set
  ND7_DATABASE_OWNER_URL    where migrate logs in (default: ND7_DATABASE_URL)
  ND7_DATABASE_POOL         connections (10)
  ND7_VAULT_KEYS            folder of keys; must be set
  ND7_VAULT_SIGNER_STATE    folder of the signer (<keys>/signer)
  ND7_VAULT_SIGNER_SOCKET   socket of a shared signer (none: embedded)
  ND7_VAULT_HOST, _PORT     where it listens (127.0.0.1, 4170)
  ND7_VAULT_PUBLIC_URL      URL that readers use
  ND7_DASHBOARD_DIR         the dashboard's files
  ND7_VAULT_MAX_INGESTS     segments in work at once (32)
  ND7_VAULT_THREADS         threads that check segments (one less than processors, at most 4)
  ND7_VAULT_METRICS_TOKEN   bearer token for /metrics (none: open)
  ND7_VAULT_WATCH_EVERY     seconds between two looks for silence (30)
  ND7_VAULT_QUIET_AFTER     missed intervals that make a machine quiet (3)
  ND7_VAULT_SESSION_LAG     seconds that named entries may take to come (300)
  ND7_VAULT_SESSION_GRACE   seconds without a sign until an open session is lost (3600)
  ND7_VAULT_AWAY_LIMIT      seconds that an announced sleep may last (604800)
  ND7_VAULT_CLOCK_TOLERANCE seconds a machine's clock may be off (120)
  ND7_LOG_LEVEL             debug, info, warn, error, silent (info)
`;

/** Runs one command line and resolves with its exit code. */
export async function runCli(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  streams: Streams = PROCESS,
): Promise<number> {
  const io = new AdminIo(env, args.includes('--json'), (text) => streams.out(text));
  let exit = 0;
  const run = async (work: (io: AdminIo) => Promise<void>): Promise<void> => work(io);
  const program = new Command('nd7-vault')
    .description(
      'The nd7 vault: takes segments, signs a log per team, gives receipts. Configured by environment (docs/operate.md).',
    )
    .version(VERSION)
    .option('--json', 'one JSON object on stdout, for programs')
    .configureOutput({ writeOut: (text) => streams.out(text), writeErr: (text) => streams.err(text) })
    .exitOverride()
    .showHelpAfterError();
  program
    .command('serve')
    .description('run the service until SIGTERM')
    .addHelpText('after', SETTINGS)
    .action(async () => {
      const { serve } = await import('../main.js');
      exit = await serve(env);
    });
  program
    .command('migrate')
    .description('bring the database’s tables, roles and guards up to date')
    .action(() =>
      run(async () => {
        const applied = await migrate(io.config().ownerUrl);
        io.out(
          applied.length === 0
            ? 'nothing to do: the database is up to date'
            : applied.map((name) => `applied ${name}`).join('\n'),
        );
        io.json({ applied });
      }),
    );
  program
    .command('check')
    .description(
      'look whether every guard of the database is there, and make every log again from its leaves and compare',
    )
    .option('--team <name>', 'only this team’s log')
    .option('--receipts <n>', 'how many receipts of each log to make again', Number, 64)
    .action((options: { team?: string; receipts: number }) =>
      run(async () => {
        const warnings = await checkGuards(io.config());
        for (const warning of warnings) io.out(`note: ${warning}`);
        io.out('every guard is there');
        const logs = await checkLogs(io, options);
        const ok = logs.every(({ fault }) => fault === undefined);
        io.json({ ok, warnings, logs });
        if (!ok) exit = 1;
      }),
    );
  registerTeam(program, run);
  registerPolicy(program, run);
  registerPeople(program, run);
  registerSignerCommands(program, run);
  // --json may stand behind the command's own words, where people write it.
  for (const command of allCommands(program))
    command.option('--json', 'one JSON object on stdout, for programs').exitOverride();
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) exit = error.exitCode === 0 ? 0 : 2;
    else {
      const failed = failure(error);
      for (const line of failed.lines) streams.err(`nd7-vault: ${line}\n`);
      exit = failed.exit;
    }
  } finally {
    await io.close();
  }
  return exit;
}

function allCommands(of: Command): Command[] {
  return of.commands.flatMap((command) => [command as Command, ...allCommands(command as Command)]);
}
