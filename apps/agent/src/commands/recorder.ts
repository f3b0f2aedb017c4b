import type { Command } from 'commander';
import type { Io } from '../cli/io.js';

/** `nd7 recorder`: the resident process; agents' hooks start it by themselves. */
export function register(program: Command, io: Io): void {
  program
    .command('recorder')
    .description('run the resident recorder of this home (hooks start it on demand)')
    .option('--stop', 'stop the one that runs')
    .option('--sleep', 'tell the vault that this machine goes to sleep (for what your system runs before it suspends)')
    .action(async (options: { stop?: boolean; sleep?: boolean }) => {
      if (options.stop === true) return stop(io);
      if (options.sleep === true) return sleep(io);
      const { runRecorder } = await import('../recorder/run.js');
      const served = await runRecorder(io.home);
      if (io.isJson) io.json({ served });
    });
}

async function sleep(io: Io): Promise<void> {
  const { askJson } = await import('../recorder/client.js');
  const answer = await askJson(io.home, 'sleep');
  const announced = answer?.['announced'] === true;
  if (io.isJson) io.json({ announced, running: answer !== undefined });
  else if (announced) io.out('The vault knows that this machine goes to sleep.');
  else
    io.out(answer === undefined ? 'No recorder runs: nothing is expected of this machine.' : 'The vault was not told.');
  if (answer !== undefined && !announced) io.setExit(1);
}

async function stop(io: Io): Promise<void> {
  const { askJson } = await import('../recorder/client.js');
  const answer = await askJson(io.home, 'stop');
  if (answer === undefined) {
    if (io.isJson) io.json({ stopped: false, running: false });
    else io.out('No recorder runs.');
    return;
  }
  // It answers first, then seals and closes what is open: it has stopped when its process is gone.
  const pid = Number(answer['pid']);
  const { isAlive } = await import('@nd7/kernel');
  for (let waited = 0; waited < 30_000 && isAlive(pid); waited += 20)
    await new Promise((resolve) => setTimeout(resolve, 20));
  if (io.isJson) io.json({ stopped: true, pid: answer['pid'] });
  else io.out(`Stopped the recorder (process ${String(answer['pid'])}).`);
}
