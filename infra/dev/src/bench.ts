// `npm run bench`: the measurements of tools/bench, one after the other on a machine that should be quiet. Each prints what it
// compares side by side in one run; ratios decide, figures depend on the machine. Ends with 1 when one missed what it must reach, or could not be run.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { paint, say } from './steps.js';

export async function main(root: string, _options: unknown, names: readonly string[]): Promise<number> {
  const folder = join(root, 'tools/bench');
  const known = readdirSync(folder)
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => name.slice(0, -4))
    .sort();
  const wanted = names.length === 0 ? known : names;
  const [cpu] = cpus();
  const load = loadavg()[0] ?? 0;
  say(
    `${cpus().length} × ${cpu?.model ?? 'unknown'} · ${Math.round(totalmem() / 1e9)} GB · Node ${process.version} · load ${load.toFixed(2)}`,
  );
  if (load > 0.7) say(paint('yellow', 'The machine is not quiet: trust the ratios, not the figures.'));
  let worst = 0;
  for (const name of wanted) {
    say(`\n${paint('bold', name)}`);
    const run = spawnSync(process.execPath, [join(folder, `${name}.mjs`)], { cwd: root, stdio: 'inherit' });
    worst = Math.max(worst, run.status ?? 1);
  }
  return worst;
}
