import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Scope } from './settings-paths.js';

/** Where the checkout builds the shim, and what builds it. */
const NATIVE = fileURLToPath(new URL('../../../../native/shim/', import.meta.url));
const BUILT = join(NATIVE, 'build', 'nd7-shim');
const MANAGED = '/usr/local/lib/nd7';

/** Where the shim of a scope lies: under the user's home, or where every user can run it. */
export function shimPath(home: string, scope: Scope): string {
  return scope === 'managed' ? join(MANAGED, 'nd7-shim') : join(home, 'bin', 'nd7-shim');
}

/** Whether a shim can be had here, without building it. */
export function shimPossible(): boolean {
  return existsSync(BUILT) || (process.platform === 'linux' && existsSync(join(NATIVE, 'build.mjs')) && hasCompiler());
}

/**
 * Copies the built shim to its place (builds it first where it is not), replacing an older one by rename so that a running one is not disturbed.
 * Answers with the reason where there is none: hooks then run as Node processes.
 */
export async function installShim(home: string, scope: Scope): Promise<{ path: string } | { problem: string }> {
  const problem = await build();
  if (problem !== undefined) return { problem };
  const path = shimPath(home, scope);
  if (existsSync(path) && readFileSync(path).equals(readFileSync(BUILT))) return { path };
  mkdirSync(dirname(path), { recursive: true, mode: scope === 'managed' ? 0o755 : 0o700 });
  const temporary = `${path}.${process.pid}`;
  try {
    copyFileSync(BUILT, temporary);
    chmodSync(temporary, 0o755);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  return { path };
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
  if (existsSync(BUILT) && !readFileSync(path).equals(readFileSync(BUILT)))
    return { kind: 'broken', problem: `${path} is not the shim of this nd7`, next: 'run `nd7 init` again' };
  return { kind: 'fine', path };
}

async function build(): Promise<string | undefined> {
  if (existsSync(BUILT)) return undefined;
  if (!existsSync(join(NATIVE, 'build.mjs'))) return 'the shim\u2019s sources are not part of this installation';
  const { buildShim } = (await import(join(NATIVE, 'build.mjs'))) as {
    buildShim(): { shim?: string; skipped?: string };
  };
  try {
    const { shim, skipped } = buildShim();
    return shim === undefined ? (skipped ?? 'the shim could not be built') : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function hasCompiler(): boolean {
  const folders = (process.env['PATH'] ?? '').split(':');
  return ['cc', 'gcc', 'clang'].some((name) => folders.some((folder) => existsSync(join(folder, name))));
}
