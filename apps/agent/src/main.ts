// The nd7 command. `nd7 hook` runs inside an agent's tool call, so it loads nothing but its own file.
import { constants } from 'node:os';

// A reader that went away (`nd7 log … | head`) is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(128 + constants.signals.SIGPIPE);
  throw error;
});

async function main(argv: readonly string[]): Promise<number> {
  const [, , command, ...others] = argv;
  if (command === 'hook') return (await import('./commands/hook.js')).main(argv);
  if (command === 'recorder' && others.length === 0) {
    // Resident for days: it does without the CLI's modules.
    const [recorder, { nd7Home }] = await Promise.all([
      import('./recorder/main.js'),
      import('./recorder/home-path.js'),
    ]);
    return recorder.main(nd7Home());
  }
  if (command === 'host' && others.length === 0) {
    const [{ runHost }, { nd7Home }] = await Promise.all([import('./host/host.js'), import('./recorder/home-path.js')]);
    return runHost(nd7Home());
  }
  return (await import('./cli/program.js')).run(argv);
}

// As Node says it of a module whose wait does not end. One form of the bundle is a script, in which nothing is awaited at the top.
process.on('exit', () => (process.exitCode ??= 13));
void main(process.argv).then((code) => (process.exitCode = code));
