import { existsSync, readFileSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isNativePossible, nativePath } from '@nd7/kernel';
import { installNative } from './install-native.js';
import type { Scope } from './settings-paths.js';

const MANAGED = '/usr/local/lib/nd7';

/** Where the shim of a scope lies: under the user's home, or where every user can run it. */
export function shimPath(home: string, scope: Scope): string {
  return scope === 'managed' ? join(MANAGED, 'nd7-shim') : join(home, 'bin', 'nd7-shim');
}

/** Whether a shim can be had here, without building it. */
export function shimPossible(): boolean {
  return existsSync(nativePath('nd7-shim')) || (isNativePossible('nd7-shim') && hasCompiler());
}

/** Puts the shim of a scope into its place. Answers with the reason where there is none: hooks then run as Node processes. */
export function installShim(home: string, scope: Scope): ReturnType<typeof installNative> {
  return installNative('nd7-shim', shimPath(home, scope), scope === 'managed' ? 0o755 : 0o700);
}

/** Removes the shim that every user runs and the administrator's shim.conf beside it; what else lies there stays. */
export function removeManagedShim(): void {
  for (const name of ['nd7-shim', 'shim.conf']) rmSync(join(MANAGED, name), { force: true });
  removeEmptyFolder(MANAGED);
}

/** Removes a folder where nothing is in it. */
export function removeEmptyFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // somebody keeps something in it, or it is not there
  }
}

/** How the shim of a home stands. */
export type ShimState = { kind: 'fine'; path: string } | { kind: 'absent' | 'broken'; problem: string; next: string };

export function shimState(home: string): ShimState {
  const path = shimPath(home, 'user');
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) {
    const next = shimPossible()
      ? 'run `nd7 init` again: the shim can be built here'
      : 'install a C compiler and run `nd7 init` again for hooks of about a millisecond';
    return { kind: 'absent', problem: 'no shim: each hook is a Node process of 30 to 80 ms', next };
  }
  if ((stat.mode & 0o022) !== 0 || (stat.mode & 0o100) === 0)
    return {
      kind: 'broken',
      problem: `${path} has mode ${(stat.mode & 0o777).toString(8)}: it must be yours to run and nobody else's to change`,
      next: `chmod 755 ${path}`,
    };
  const built = nativePath('nd7-shim');
  if (existsSync(built) && !readFileSync(path).equals(readFileSync(built)))
    return { kind: 'broken', problem: `${path} is not the shim of this nd7`, next: 'run `nd7 init` again' };
  return { kind: 'fine', path };
}

function hasCompiler(): boolean {
  const folders = (process.env['PATH'] ?? '').split(':');
  return ['cc', 'gcc', 'clang'].some((name) => folders.some((folder) => existsSync(join(folder, name))));
}
