import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { makeFolders } from '@nd7/kernel';
import { HooksError } from './errors.js';

/** A settings file as it is on disk; `bytes` undefined when there is none. `real` is where symbolic links lead. */
export interface SettingsFile {
  real: string;
  bytes: Buffer | undefined;
}

/** Reads a settings file through symbolic links. A missing file is no error. */
export function readSettings(path: string): SettingsFile {
  try {
    const real = realpathSync(path);
    return { real, bytes: readFileSync(real) };
  } catch (cause) {
    if (code(cause) === 'ENOENT') return { real: linkTarget(path), bytes: undefined };
    throw new HooksError(
      'settings-unreadable',
      `cannot read ${path} (${code(cause)}); check its permissions and those of the folders above it`,
      { cause },
    );
  }
}

/** Where a link leads whose target is not there yet: the file belongs there, and the link stays. */
function linkTarget(path: string): string {
  try {
    return resolve(dirname(path), readlinkSync(path));
  } catch {
    return path; // no link
  }
}

/**
 * Replaces the file's bytes, or removes it when `bytes` is undefined: a new file beside it, synced, then renamed over it, so that
 * a crash leaves the old or the new one. Mode and owner of the old file stay; symbolic links keep pointing where they did.
 */
export function writeSettings(file: SettingsFile, bytes: Uint8Array | undefined): void {
  const folder = dirname(file.real);
  const temporary = join(folder, `.${basename(file.real)}.nd7-${process.pid}`);
  try {
    if (bytes === undefined) {
      rmSync(file.real, { force: true });
      return;
    }
    makeFolders(folder, 0o755);
    const old = file.bytes === undefined ? undefined : statSync(file.real);
    rmSync(temporary, { force: true });
    const fd = openSync(temporary, 'wx', old === undefined ? 0o644 : old.mode & 0o777);
    try {
      let written = 0;
      while (written < bytes.length) written += writeSync(fd, bytes, written);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    if (old !== undefined) {
      chmodSync(temporary, old.mode & 0o7777);
      if (process.getuid?.() === 0) chownSync(temporary, old.uid, old.gid);
    }
    renameSync(temporary, file.real);
  } catch (cause) {
    removeQuietly(temporary);
    throw new HooksError(
      'settings-unwritable',
      `cannot write ${file.real} (${code(cause)}); nothing was changed. Check the permissions of ${folder}, or whether the disk is full or read-only`,
      { cause },
    );
  }
}

/** What could not be finished goes; where not even that can be, the failure before is the one to tell. */
function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // told by the caller
  }
}

/** Text of settings bytes; refuses what is not UTF-8, since rewriting it would change bytes that are not ours. */
export function settingsText(bytes: Buffer | undefined, where: string): string {
  if (bytes === undefined) return '';
  const text = bytes.toString('utf8');
  if (!Buffer.from(text, 'utf8').equals(bytes))
    throw new HooksError('settings-broken', `${where} is not UTF-8; save it as UTF-8 first, nd7 changed nothing`);
  return text;
}

function code(cause: unknown): string {
  return (cause as NodeJS.ErrnoException | undefined)?.code ?? String(cause);
}
