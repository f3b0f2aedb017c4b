import { chmodSync, copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findNative, type NativeProgram } from '@nd7/kernel';

/**
 * Copies a built native program to `path` (builds it first where it is not), replacing an older one by rename so that a running one is not disturbed.
 * `mode` is that of a folder which has to be made for it. Answers with the reason where there is none.
 */
export async function installNative(
  program: NativeProgram,
  path: string,
  mode: number,
): Promise<{ path: string } | { problem: string }> {
  const built = await findNative(program);
  if ('problem' in built) return built;
  if (isSame(path, built.path)) return { path };
  mkdirSync(dirname(path), { recursive: true, mode });
  const temporary = `${path}.${process.pid}`;
  try {
    copyFileSync(built.path, temporary);
    chmodSync(temporary, 0o755);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  return { path };
}

/** Pairs of files that were compared and held the same, by what changes with either. */
const same = new Map<string, string>();

function isSame(path: string, built: string): boolean {
  const [one, other] = [path, built].map((file) => statSync(file, { bigint: true, throwIfNoEntry: false }));
  if (one === undefined || other === undefined) return false;
  // Not ctime: each session links to the installed one.
  const facts = [one, other].flatMap(({ dev, ino, size, mtimeNs }) => [dev, ino, size, mtimeNs]).join();
  if (same.get(path) === facts) return true;
  const holds = readFileSync(path).equals(readFileSync(built));
  if (holds) same.set(path, facts);
  return holds;
}
