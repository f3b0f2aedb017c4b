// `npm test`: everything that must hold, in one run: lint with the module boundaries, types, unit, property, vector,
// integration, end-to-end and browser tests. Ends with `N passed, N failed, N skipped`.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { findChromium, NONE } from './chromium.js';
import { collectResults, resultFiles, unexpectedSkips, type Results } from './results.js';
import { duration, paint, say } from './steps.js';

/** What `npm test` was told; infra/dev/options.mjs has read it. */
interface TestOptions {
  'skip-lint'?: boolean;
  'no-cache'?: boolean;
}

export async function main(root: string, values: TestOptions, projects: readonly string[]): Promise<number> {
  const start = performance.now();
  for (const file of resultFiles(root)) rmSync(file);
  let chromium;
  try {
    chromium = findChromium(root);
  } catch (error) {
    process.stderr.write(`nd7: ${(error as Error).message}\n`);
    return 2;
  }
  say(
    chromium === undefined
      ? paint('yellow', 'No Chromium: the tests that need one are skipped, and counted.')
      : `Chromium: ${chromium}`,
  );

  // Part of what a cached result rests on: one without a browser is not one with it.
  const env = { ...process.env, NX_DAEMON: 'false', ND7_CHROMIUM: chromium ?? NONE };
  const only = projects.length === 0 ? [] : ['-p', projects.join(',')];
  const cache = values['no-cache'] === true ? ['--skip-nx-cache'] : [];
  const targets = values['skip-lint'] === true ? ['test'] : ['lint', 'typecheck', 'test'];
  const checks = await nx(
    root,
    ['run-many', '-t', ...targets, ...only, ...cache, '--nxBail=false', '--outputStyle=static'],
    env,
  );

  const results = collectResults(root);
  // A lint or type error has no test of its own, and a suite that could not start has no results: neither may pass unseen.
  const hidden = checks !== 0 && results.failed === 0 ? 1 : 0;
  summary(results, hidden, performance.now() - start);
  const unexpected = process.env['ND7_EXPECT_NO_SKIPS'] === '1' ? unexpectedSkips(root, results) : [];
  for (const name of unexpected) say(paint('red', `skipped, and nothing in .ci/expected-skips expects it: ${name}`));
  say(`${results.passed} passed, ${results.failed + hidden} failed, ${results.skipped.length} skipped`);
  return checks !== 0 || results.failed > 0 || unexpected.length > 0 ? 1 : 0;
}

function nx(root: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((done) => {
    const child = spawn(process.execPath, ['node_modules/nx/dist/bin/nx.js', ...args], {
      cwd: root,
      env,
      stdio: 'inherit',
    });
    const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
    process.on('SIGINT', forward).on('SIGTERM', forward);
    child.once('error', () => done(1));
    child.once('close', (code) => {
      process.removeListener('SIGINT', forward).removeListener('SIGTERM', forward);
      done(code ?? 1);
    });
  });
}

function summary(results: Results, hidden: number, ms: number): void {
  say();
  for (const failure of results.failures) say(paint('red', `failed: ${failure}`));
  if (hidden > 0) say(paint('red', 'failed: a check above (lint, types, or a suite that did not start)'));
  for (const name of results.skipped) say(paint('yellow', `skipped: ${name}`));
  say(`${results.suites} suites in ${duration(ms)}`);
}
