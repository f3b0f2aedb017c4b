// Runs what it is told, a line of JSON each: { cwd, before, command }. Answers how long the command took; what is to be done before is not counted.
// One stands inside a session and one outside, so that the start of the session is not measured.
import { spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';

function run(words, cwd) {
  const { status, signal, error, stderr } = spawnSync(words[0], words.slice(1), {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  return status === 0 ? undefined : `${words.join(' ')} ended with ${status ?? signal ?? error?.message}: ${stderr}`;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { cwd, before, command } = JSON.parse(line);
  const prepared = before === undefined ? undefined : run(before, cwd);
  const start = process.hrtime.bigint();
  const failed = prepared ?? run(command, cwd);
  const ms = Number(process.hrtime.bigint() - start) / 1e6;
  process.stdout.write(`${JSON.stringify({ ms, failed })}\n`);
}
