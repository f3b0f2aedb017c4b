import { closeSync, constants, fsyncSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolders } from '@nd7/kernel';
import { ShipError } from './error.js';

/** Makes a folder of this user alone, and those above it. */
export function makeFolder(path: string): void {
  try {
    makeFolders(path, 0o700);
  } catch (cause) {
    throw io(path, cause);
  }
}

/** Puts a whole file (0600) in place of whatever stood there: written beside it, synced, renamed, the folder synced. A crash leaves the old or the new. */
export function replaceFile(path: string, content: string): void {
  const beside = `${path}.new`;
  try {
    const fd = openSync(
      beside,
      constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
      0o600,
    );
    try {
      const bytes = Buffer.from(content);
      for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(beside, path);
    syncFolder(dirname(path));
  } catch (cause) {
    throw io(path, cause);
  }
}

/** A file's text, undefined where there is none. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    if (isMissing(cause)) return undefined;
    throw io(path, cause);
  }
}

/** Removes a file; one that is gone already is no error. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (cause) {
    if (!isMissing(cause)) throw io(path, cause);
  }
}

/** By its code: an error of the file system is no `Error` of the realm that a test runs in. */
export function isMissing(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'ENOENT';
}

function syncFolder(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function io(path: string, cause: unknown): ShipError {
  return new ShipError('io', `${path} cannot be used: ${messageOf(cause)}`, {}, { cause });
}

/** What an error says, whatever was thrown. */
export function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' && message !== '' ? message : String(error);
}
