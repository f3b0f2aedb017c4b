// What a command costs that the broker runs: `bash -c true` inside, by the agent itself and by the stub, in turns in one session.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCompiler } from '../../../native/compile.mjs';
import { verdict } from '../judge/verdict.mjs';
import { find, median, nd7 } from './place.mjs';

/** What a command may take longer, at the median. */
const MOST_MS = 4;

export async function measureCommands(place, rounds) {
  const [cc, shell] = [findCompiler(), find('bash')];
  if (cc === undefined || shell === undefined) {
    console.log(`skipped: no ${cc === undefined ? 'C compiler' : 'bash'}`);
    return;
  }
  const starter = join(place.project, 'spawn');
  await place.run(cc, ['-O2', '-Wall', '-Wextra', '-o', starter, join(import.meta.dirname, '..', 'spawn.c')]);
  // Inside the temporary folder is another one.
  const files = ['stdin.0', 'agent'].map((name) => join(place.project, name));
  writeFileSync(files[0], '');
  const measured = `${starter} $1 ${join(place.project, 'stdin')} 1 -- ${shell} -c true -- "$CLAUDE_CODE_SHELL" -c true`;
  // Claude Code is given options of nd7's before its own.
  writeFileSync(files[1], `#!/bin/sh\nfor last; do :; done\nset -- "$last"\n${measured}\n`, { mode: 0o755 });
  const environment = { ...place.environment, SHELL: shell };
  try {
    const inside = (times) =>
      place.run(nd7, ['run', '--agent', 'claude-code', '--', files[1], String(times)], { env: environment });
    await inside(5); // warm
    const [direct, brokered] = (await inside(rounds * 10))
      .trim()
      .split('\n')
      .map((row) => row.split(' ').map((ns) => Number(ns) / 1e6));
    console.log('| bash -c true inside | p50 ms | p95 ms | min ms |\n|---|---:|---:|---:|');
    for (const [name, took] of Object.entries({ 'by the agent': direct, 'by the broker': brokered })) {
      const sorted = took.toSorted((a, b) => a - b);
      const p95 = sorted[Math.floor(sorted.length * 0.95)];
      console.log(`| ${name} | ${median(took).toFixed(2)} | ${p95.toFixed(2)} | ${sorted[0].toFixed(2)} |`);
    }
    const added = median(brokered) - median(direct);
    console.log(`broker: + ${added.toFixed(2)} ms at p50 (at most + ${MOST_MS}: ${verdict(added <= MOST_MS)})\n`);
  } finally {
    for (const file of [starter, ...files]) rmSync(file, { force: true });
  }
}
