// A Chromium for the browser tests: one that is installed, else the system's package manager (as root), else Playwright's own.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { say } from './steps.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function installed(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/snap/bin'];
  for (const name of NAMES)
    for (const folder of folders) if (folder !== '' && isProgram(join(folder, name))) return join(folder, name);
  const mac = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';
  return isProgram(mac) ? mac : undefined;
}

/** Path of a Chromium, undefined when none can be had. ND7_CHROMIUM names one. */
export async function findChromium(root: string): Promise<string | undefined> {
  const named = process.env['ND7_CHROMIUM'];
  if (named !== undefined && named !== '') return named;
  const found = installed();
  if (found !== undefined) return found;
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    say('Installing Chromium with apt-get …');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    spawnSync('apt-get', ['update'], { env, stdio: 'ignore' });
    spawnSync('apt-get', ['install', '-y', '--no-install-recommends', 'chromium'], { env, stdio: 'ignore' });
    const now = installed();
    if (now !== undefined) return now;
  }
  return playwrights(root);
}

async function playwrights(root: string): Promise<string | undefined> {
  const require = createRequire(join(root, 'package.json'));
  const cli = join(dirname(require.resolve('playwright-core/package.json')), 'cli.js');
  say('Trying Playwright’s own Chromium …');
  spawnSync(process.execPath, [cli, 'install', 'chromium'], { stdio: 'ignore', timeout: 180_000 });
  const { chromium } = (await import(require.resolve('playwright-core'))) as { chromium: { executablePath(): string } };
  const path = chromium.executablePath();
  return existsSync(path) ? path : undefined;
}
