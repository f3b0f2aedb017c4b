import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import type { Boundary } from '../confine/run-session.js';
import { safeLine } from '../show/safe.js';

interface RunOptions {
  profile?: string;
  tier: string;
  verbose?: boolean;
}

/** `nd7 run -- CMD…`: a program inside a boundary that the kernel holds. */
export function register(program: Command, io: Io): void {
  program
    .command('run')
    .description(
      'run a program inside a boundary: it writes the project, sees no secrets and gets out to listed hosts only',
    )
    .argument('<command...>', 'the program and its arguments, after --')
    .option('--profile <name>', 'the rules: default, offline or review, in place of what your policy extends')
    .option(
      '--tier <tier>',
      'the kind of boundary; T1 (namespaces, mounts, Landlock, call filter) is what there is',
      'T1',
    )
    .option('-v, --verbose', 'print the enforcement manifest on stderr before the program starts')
    .addHelpText(
      'after',
      `
Everything that the program starts is inside too, and ends with it. Nothing is started unless the boundary held when it was attacked from
inside. The network is what the proxy lets through; each of its answers is recorded. Names that do not exist at the start are not protected
yet: docs/limits.md.
The program's exit code is nd7's; 2 and a message when this system cannot give what the rules require. --json prints the manifest as one
JSON object on stderr.`,
    )
    .action((command: string[], options: RunOptions) => run(command, options, io));
}

async function run(command: string[], options: RunOptions, io: Io): Promise<void> {
  if (options.tier !== 'T1')
    throw new CliError(2, `there is no tier ${options.tier} yet`, 'Leave --tier out, or say --tier T1.');
  const [{ runSession, endAs }, { rulesetFor }, { projectOf }] = await Promise.all([
    import('../confine/run-session.js'),
    import('../confine/ruleset.js'),
    import('../confine/project.js'),
  ]);
  const home = io.env['HOME'];
  if (home === undefined || home === '') throw new CliError(2, 'HOME is not set', 'Set it to your home folder.');
  const { ruleset, notes } = rulesetFor({
    profile: options.profile ?? null,
    program: command[0] ?? '',
    home,
    project: projectOf(io.cwd, home),
    nd7Home: io.home,
    environment: io.env,
  });
  for (const { kind, text } of notes) if (kind !== 'without-effect') io.err(`nd7: ${safeLine(text)}`);
  const ended = await runSession({
    ruleset,
    argv: command,
    nd7Home: io.home,
    environment: io.env,
    cwd: io.cwd,
    warn: (text) => io.err(`nd7: ${safeLine(text)}`),
    started: (boundary) => {
      if (options.verbose === true || io.isJson) show(boundary, io);
    },
  });
  endAs(ended);
}

/** On stderr: stdout is the program's. */
function show({ tier, landlock, rows, shortfalls, session }: Boundary, io: Io): void {
  if (io.isJson) {
    io.err(JSON.stringify({ tier, landlock, session, properties: rows, shortfalls }));
    return;
  }
  io.err(`nd7: tier ${tier}, Landlock ${landlock}${session === undefined ? '' : `, recorded as ${session}`}`);
  for (const { property, status, provider, proofs, limit } of rows) {
    const shown = proofs.filter(({ verdict }) => verdict === 'held').map(({ name }) => name);
    io.err(
      `  ${status.padEnd(7)} ${property.padEnd(19)} ${provider === '' ? '–' : provider}${shown.length > 0 ? ` (shown: ${shown.join(', ')})` : ''}`,
    );
    if (limit !== undefined) io.err(`          ${''.padEnd(19)} ${limit}`);
  }
  const absent = shortfalls.filter(({ what }) => what === 'missing').length;
  if (absent > 0) io.err(`  note    ${absent} paths of the policy are not there (--json names them)`);
  for (const { path, what } of shortfalls) if (what !== 'missing') io.err(`  note    ${safeLine(path)}: ${what}`);
}
