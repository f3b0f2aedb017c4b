// Runs the built file as a program: what happens to a closed pipe is the process's own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const STEPS = pathToFileURL(join(import.meta.dirname, '../dist/steps.js')).href;

test('a reader that stops reading ends nothing: what was begun is put away', async () => {
  const program = `
    const { say } = await import(${JSON.stringify(STEPS)});
    try {
      for (let i = 0; i < 20; i++) {
        say('x'.repeat(100_000));
        await new Promise((next) => setTimeout(next, 10));
      }
    } finally {
      process.stderr.write('put away');
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  child.stdout.once('data', () => child.stdout.destroy());
  const [code] = (await once(child, 'close')) as [number];
  expect([code, said]).toEqual([0, 'put away']);
}, 30_000);
