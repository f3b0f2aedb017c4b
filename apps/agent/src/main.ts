// The nd7 command. `nd7 hook` runs inside an agent's tool call, so it loads nothing but its own file.
import { constants } from 'node:os';

// A reader that went away (`nd7 log … | head`) is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(128 + constants.signals.SIGPIPE);
  throw error;
});

if (process.argv[2] === 'hook') {
  const { main } = await import('./commands/hook.js');
  process.exitCode = await main(process.argv);
} else if (process.argv[2] === 'recorder' && process.argv.length === 3) {
  // Resident for days: it does without the CLI's modules.
  const [{ main }, { nd7Home }] = await Promise.all([import('./recorder/main.js'), import('./recorder/home-path.js')]);
  process.exitCode = await main(nd7Home());
} else if (process.argv[2] === 'host' && process.argv.length === 3) {
  const [{ runHost }, { nd7Home }] = await Promise.all([import('./host/host.js'), import('./recorder/home-path.js')]);
  process.exitCode = await runHost(nd7Home());
} else {
  const { run } = await import('./cli/program.js');
  process.exitCode = await run(process.argv);
}
