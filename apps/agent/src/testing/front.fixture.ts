// nd7 as it is typed: by Node, or by the native front that `nd7 init` puts on PATH.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BIN, REPOSITORY } from './recorder.fixture.js';

/** Puts a front into a folder, as `nd7 init` does into the home; what it stands for is `main`. Answers with its path. */
export function frontIn(folder: string, main = BIN, name = 'nd7'): string {
  execFileSync(process.execPath, [
    join(REPOSITORY, 'native/front/build.mjs'),
    ...(name === 'nd7' ? [] : ['--sanitize']),
  ]);
  for (const one of ['bin', 'run']) mkdirSync(join(folder, one), { recursive: true, mode: 0o700 });
  copyFileSync(join(REPOSITORY, 'native/front/build', name), join(folder, 'bin/nd7'));
  writeFileSync(join(folder, 'run/shim.conf'), `node=${process.execPath}\nmain=${main}\nstart-ms=60000\n`, {
    mode: 0o600,
  });
  return join(folder, 'bin/nd7');
}

/** Whether this run of the tests is to type the front. */
export const BY_FRONT = process.env['ND7_TEST_FRONT'] !== undefined;

/** The two words by which nd7 is started. */
export function typed(): readonly [string, string] {
  if (!BY_FRONT) return [process.execPath, BIN];
  const folder = mkdtempSync(join(tmpdir(), 'nd7-front-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return ['/usr/bin/env', frontIn(folder)];
}
