// One form for all sources, so that a change shows what changed.
import { execFile } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

it('every source has the form that prettier gives it', async () => {
  const bin = join(root, 'node_modules/prettier/bin/prettier.cjs');
  const unformed = await new Promise<string>((done) => {
    execFile(process.execPath, [bin, '--list-different', '.'], { cwd: root }, (_error, stdout, stderr) =>
      done(stdout + stderr),
    );
  });
  expect(unformed).toBe('');
}, 600_000);
