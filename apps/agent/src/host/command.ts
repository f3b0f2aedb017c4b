import { Command, CommanderError } from 'commander';
import type { ExitCode, Io } from '../cli/io.js';
import { report } from '../cli/program.js';
import { register } from '../commands/run.js';
import type { Seat } from './seat.js';

/** Options of `nd7 run` that mean the same here; whatever else it learns is left to the CLI until it was looked at. */
const KNOWN = new Set(['profile', 'agent', 'allow', 'without', 'broker', 'tier', 'verbose', 'json']);

class Refused extends Error {}

/** The words by which `nd7 run` is started, `run` first. Refuses what the CLI had better do itself: help, mistakes, options that are not known here. */
export async function runCommand(seat: Seat, argv: readonly string[]): Promise<ExitCode> {
  const stop = argv.indexOf('--');
  const io = seat.io(argv.slice(1, stop < 0 ? undefined : stop).includes('--json'));
  try {
    await programFor(io).parseAsync([...argv], { from: 'user' });
    return io.exitCode();
  } catch (error) {
    if (error instanceof CommanderError || error instanceof Refused) {
      seat.refuse(error.message);
      return 0;
    }
    return report(error, io);
  }
}

function programFor(io: Io): Command {
  const program = new Command('nd7').configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
  program.exitOverride();
  register(program, io);
  for (const command of program.commands) command.option('--json').exitOverride().copyInheritedSettings(program);
  program.hook('preAction', (_, command) => {
    const isGiven = (name: string): boolean => command.getOptionValueSource(name) !== 'default';
    const unknown = Object.keys(command.opts()).find((name) => isGiven(name) && !KNOWN.has(name));
    if (unknown !== undefined) throw new Refused(`--${unknown} is the CLI’s`);
  });
  return program;
}
