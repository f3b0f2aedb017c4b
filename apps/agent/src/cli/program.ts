// The command tree. Each command is a file of ../commands with `register(program, io)`; what it needs it imports when
// it runs, so that `nd7 --help` stays quick.
import { Command, CommanderError, Help, type Option } from 'commander';
import { CliError, systemIo, type ExitCode, type Io } from './io.js';
import { VERSION } from './version.js';

/** Commands in the order of `nd7 --help`: the way of an entry. */
const COMMANDS: Readonly<Record<string, () => Promise<{ register(program: Command, io: Io): void }>>> = {
  init: () => import('../commands/init.js'),
  uninstall: () => import('../commands/uninstall.js'),
  status: () => import('../commands/status.js'),
  doctor: () => import('../commands/doctor.js'),
  run: () => import('../commands/run.js'),
  learn: () => import('../commands/learn.js'),
  allow: () => import('../commands/allow.js'),
  deny: () => import('../commands/deny.js'),
  revoke: () => import('../commands/revoke.js'),
  grants: () => import('../commands/grants.js'),
  ask: () => import('../commands/ask.js'),
  selftest: () => import('../commands/selftest.js'),
  why: () => import('../commands/why.js'),
  policy: () => import('../commands/policy.js'),
  sessions: () => import('../commands/sessions.js'),
  log: () => import('../commands/log.js'),
  show: () => import('../commands/show.js'),
  verify: () => import('../commands/verify.js'),
  enrol: () => import('../commands/enrol.js'),
  ship: () => import('../commands/ship.js'),
  receipt: () => import('../commands/receipt.js'),
  export: () => import('../commands/export.js'),
  recorder: () => import('../commands/recorder.js'),
};

/** Builds the tree for `io`; tests and shell completion use it too. `only`: with this command alone, where it is known which one is meant. */
export async function buildProgram(io: Io, only?: string): Promise<Command> {
  const program = new Command('nd7')
    .description('Proof of what AI coding agents did on this machine.')
    .version(VERSION, '-V, --version', 'print the version')
    .option('--json', 'print one JSON object instead of text')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .showHelpAfterError('(nd7 <command> --help shows its options)')
    .configureHelp({ optionDescription })
    .configureOutput({
      // With --json the mistake is said in the one object on stdout.
      writeErr: (text) => void (io.isJson || process.stderr.write(text)),
      outputError: (text, write) => write(text.replace(/^error: /, 'nd7: ')),
    })
    .addHelpText(
      'after',
      '\nFiles are kept in $ND7_HOME (~/.nd7). Exit codes: 0 fine, 1 the verdict is bad or the work failed, 2 usage.',
    )
    .addHelpText('after', 'Start with `nd7 init` to record your agent, then `nd7 sessions` and `nd7 verify --all`.')
    .exitOverride();
  if (only === undefined) await addAll(program, io);
  else (await COMMANDS[only]?.())?.register(program, io);
  addHelp(program);
  for (const command of program.commands) {
    if (printsJson(command)) command.option('--json', 'print one JSON object instead of text');
    if (command.name() === 'complete')
      command.description('print a completion script: source <(nd7 complete bash), also zsh, fish, powershell');
    command.exitOverride();
  }
  return program;
}

/** Commander's own answers a command that is none with the help of all, and not a word of what was wrong. */
function addHelp(program: Command): void {
  program
    .command('help')
    .argument('[command]')
    .description('show the help of a command')
    .action((name: string | undefined) => {
      const meant = name === undefined ? program : program.commands.find((command) => command.name() === name);
      if (meant === undefined)
        program.error(`error: unknown command '${String(name)}'`, { code: 'commander.unknownCommand' });
      meant.outputHelp();
    });
}

async function addAll(program: Command, io: Io): Promise<void> {
  // `nd7 hook` is dispatched before this file loads; it stands here so that help and completion know it.
  program
    .command('hook')
    .description('take one hook payload on stdin (what an agent is told to run)')
    .requiredOption('--agent <name>', 'whose payload it is, e.g. claude-code');
  for (const load of Object.values(COMMANDS)) (await load()).register(program, io);
  const { addCompletion } = await import('./completion.js');
  addCompletion(program, io);
}

/** What an agent reads from a hook, a script that a shell loads, and help have their own form. */
function printsJson(command: Command): boolean {
  return !['hook', 'complete', 'help'].includes(command.name());
}

/** Commander's, but an option that may be repeated does not name its empty list as a default. */
function optionDescription(this: Help, option: Option): string {
  return Array.isArray(option.defaultValue) ? option.description : Help.prototype.optionDescription.call(this, option);
}

/** Runs one command line; answers with the exit code and never throws for a user's mistake. */
export async function run(argv: readonly string[]): Promise<ExitCode> {
  const stop = argv.indexOf('--');
  const isJson = argv.slice(2, stop < 0 ? undefined : stop).includes('--json');
  const io = systemIo(isJson);
  try {
    // What is started most waits for no other command.
    const program = await buildProgram(io, argv[2] === 'run' ? 'run' : undefined);
    if (argv.length <= 2) {
      program.outputHelp();
      return 2;
    }
    await program.parseAsync([...argv]);
    return io.exitCode();
  } catch (error) {
    return report(error, io);
  }
}

/** Says what went wrong, once, in the form the caller asked for. */
export function report(error: unknown, io: Io): ExitCode {
  if (error instanceof CommanderError) return reportUsage(error, io);
  const exit = error instanceof CliError ? error.exitCode : 1;
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof CliError ? error.code : codeOf(error);
  const hint = error instanceof CliError ? error.hint : undefined;
  if (io.isJson) {
    io.json({ error: { code, message, ...(hint === undefined ? {} : { hint }) } });
  } else {
    io.err(`nd7: ${message}`);
    if (hint !== undefined) io.err(`     ${hint}`);
  }
  if (io.env['ND7_DEBUG'] && error instanceof Error && error.stack !== undefined) io.err(error.stack);
  return exit;
}

/** A command line that was not understood. Commander has printed its message, except where one JSON object was asked for. */
function reportUsage(error: CommanderError, io: Io): ExitCode {
  if (error.exitCode === 0) return 0; // it was help or the version that was asked for
  if (io.isJson) {
    const [first = '', ...more] = error.message.replace(/^error: /, '').split('\n');
    const message = error.code === 'commander.help' ? 'a command is missing' : first;
    io.json({
      error: {
        code: 'usage',
        message,
        hint: more.join(' ') || 'nd7 --help lists the commands, nd7 <command> --help their options',
      },
    });
  }
  return 2;
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'failed';
}
