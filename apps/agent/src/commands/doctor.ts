import type { Command } from 'commander';
import type { Io } from '../cli/io.js';

/** `nd7 doctor`: each thing recording rests on, with what to do where it is not well. */
export function register(program: Command, io: Io): void {
  program
    .command('doctor')
    .description('check everything recording rests on, and prove that hooks fire')
    .action(() => doctor(io));
}

async function doctor(io: Io): Promise<void> {
  const { allChecks } = await import('../recorder/checks.js');
  const checks = await allChecks({ home: io.home, env: io.env, cwd: io.cwd });
  const bad = checks.filter((check) => check.state === 'bad').length;
  if (bad > 0) io.setExit(1);
  if (io.isJson) {
    io.json({ healthy: bad === 0, checks });
    return;
  }
  for (const { name, state, text, next } of checks) {
    const word =
      state === 'ok'
        ? io.paint('green', 'ok  ')
        : state === 'note'
          ? io.paint('yellow', 'note')
          : io.paint('red', 'BAD ');
    io.out(`${word}  ${name.padEnd(21)} ${text}`);
    if (next !== undefined) io.out(`      ${''.padEnd(21)} → ${next}`);
  }
  io.out(
    bad === 0
      ? 'Everything recording needs is in order.'
      : `${bad} ${bad === 1 ? 'thing needs' : 'things need'} mending.`,
  );
}
