// A Chromium for the browser tests: one that is here, else one from the system's package manager (as root), else Playwright's own.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { say } from './steps.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const MAC = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';

/** What ND7_CHROMIUM holds to have none: tests that need one are then skipped by name. */
export const NONE = 'none';

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Path of a Chromium that is on this machine: the one ND7_CHROMIUM names, one by a usual name, the one that Playwright keeps. Undefined where there
 * is none, or ND7_CHROMIUM is `none`. Throws when what it names is no program.
 *
 * @param root the checkout
 */
export function installedChromium(root: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = env['ND7_CHROMIUM'] ?? '';
  if (named === NONE) return undefined;
  if (named !== '') {
    if (isProgram(named)) return named;
    throw new Error(`ND7_CHROMIUM is ${named}, and no program is there: name one, or "${NONE}" to go without`);
  }
  for (const folder of [...(env['PATH'] ?? '').split(delimiter), '/usr/bin', '/snap/bin'])
    for (const name of NAMES) if (folder !== '' && isProgram(join(folder, name))) return join(folder, name);
  if (isProgram(MAC)) return MAC;
  const { path } = playwright(root);
  return isProgram(path) ? path : undefined;
}

/** The same, but installs one where there is none and it may. */
export function findChromium(root: string): string | undefined {
  const found = installedChromium(root);
  if (found !== undefined || process.env['ND7_CHROMIUM'] === NONE) return found;
  if (process.getuid?.() === 0 && isProgram('/usr/bin/apt-get')) {
    say('Installing Chromium with apt-get …');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    spawnSync('apt-get', ['update'], { env, stdio: 'ignore' });
    spawnSync('apt-get', ['install', '-y', '--no-install-recommends', 'chromium'], { env, stdio: 'ignore' });
    const now = installedChromium(root);
    if (now !== undefined) return now;
  }
  say('Trying Playwright’s own Chromium …');
  spawnSync(process.execPath, [playwright(root).cli, 'install', 'chromium'], { stdio: 'ignore', timeout: 180_000 });
  return installedChromium(root);
}

/** Where Playwright keeps its Chromium, or would, and the program that fetches it. */
export function playwright(root: string): { path: string; cli: string } {
  // Its CommonJS face: an import of that file by its path knows no names.
  const require = createRequire(join(root, 'package.json'));
  const { chromium } = require('playwright-core') as { chromium: { executablePath(): string } };
  return {
    path: chromium.executablePath(),
    cli: join(dirname(require.resolve('playwright-core/package.json')), 'cli.js'),
  };
}
