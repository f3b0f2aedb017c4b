import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { SigningError } from './error.js';
import type { KeyPair } from './key-pair.js';
import { generateKeyPair, parsePem } from './key-pair.js';
import { systemRandom } from './system.js';

/** A key file is 119 bytes long; whatever is longer than this is none. */
const MAX_BYTES = 4096;

/**
 * Makes a key and its file: PKCS#8 PEM, mode 0600, never over an existing file, on the disk (file and folder) before it returns, but where `sync` is false:
 * whoever says so syncs both. The folder must be there. Throws a SigningError: `exists`, `io`.
 */
export function createKeyFile(path: string, { sync = true }: { sync?: boolean } = {}): KeyPair {
  const pair = generateKeyPair();
  let fd: number;
  try {
    fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  } catch (cause) {
    if (isCode(cause, 'EEXIST')) throw new SigningError('exists', `there is a key file already: ${path}`, { cause });
    throw new SigningError('io', `cannot make the key file ${path}: ${reason(cause)}`, { cause });
  }
  try {
    writeAll(fd, Buffer.from(pair.pem()));
    if (sync) fsyncSync(fd);
  } catch (cause) {
    // Half a key is worth nothing and would stand in the way of the next try.
    closeSync(fd);
    remove(path);
    throw new SigningError('io', `cannot write the key file ${path}: ${reason(cause)}`, { cause });
  }
  closeSync(fd);
  if (sync) syncFolder(dirname(path));
  return { publicKey: pair.publicKey, sign: pair.sign };
}

/**
 * Reads a key file. Throws a SigningError whose message says how to mend it: `missing`, `unreadable`, `permissions` (not this user's, or others
 * have rights to it), `format` (half-written, or not an Ed25519 key).
 */
export function loadKeyFile(path: string): KeyPair {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    if (isCode(cause, 'ENOENT')) throw new SigningError('missing', `there is no key file ${path}`, { cause });
    throw new SigningError('unreadable', `cannot read the key file ${path}: ${reason(cause)}`, { cause });
  }
  try {
    // Looked at through the descriptor: what is checked is what is read.
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new SigningError('unreadable', `${path} is not a file`);
    const self = process.geteuid?.();
    if (self !== undefined && stat.uid !== self) {
      throw new SigningError(
        'permissions',
        `the key file ${path} belongs to user ${String(stat.uid)}, not to this one (${String(self)}): chown ${String(self)} ${path}`,
      );
    }
    if ((stat.mode & 0o077) !== 0) {
      const mode = (stat.mode & 0o777).toString(8).padStart(4, '0');
      throw new SigningError(
        'permissions',
        `others have rights to the key file ${path} (mode ${mode}): chmod 600 ${path}`,
      );
    }
    const pair = stat.size > MAX_BYTES ? undefined : parsePem(readAll(fd, stat.size));
    if (pair === undefined) {
      throw new SigningError(
        'format',
        `${path} holds no whole Ed25519 private key (PKCS#8 PEM): put the file back from where it came, or remove it and make a new key`,
      );
    }
    return pair;
  } catch (cause) {
    if (cause instanceof SigningError) throw cause;
    throw new SigningError('unreadable', `cannot read the key file ${path}: ${reason(cause)}`, { cause });
  } finally {
    closeSync(fd);
  }
}

/**
 * Overwrites, syncs and unlinks a key file and syncs its folder. A file that is gone already is no error. Copies in backups, snapshots and
 * flash cells are outside what this can promise (docs/format.md, "Order on disk"). Throws a SigningError: `io`.
 */
export function destroyKeyFile(path: string): void {
  try {
    const fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
    try {
      const { size } = fstatSync(fd);
      writeAll(fd, systemRandom(Math.min(size, MAX_BYTES)));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    unlinkSync(path);
  } catch (cause) {
    if (isCode(cause, 'ENOENT')) return;
    throw new SigningError('io', `cannot destroy the key file ${path}: ${reason(cause)}`, { cause });
  }
  syncFolder(dirname(path));
}

function syncFolder(folder: string): void {
  try {
    const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw new SigningError('io', `cannot sync the folder ${folder}: ${reason(cause)}`, { cause });
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
}

function readAll(fd: number, size: number): string {
  const bytes = Buffer.alloc(size);
  let at = 0;
  for (let n = -1; n !== 0 && at < size; at += n) n = readSync(fd, bytes, at, size - at, at);
  return bytes.toString('latin1', 0, at);
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The error that led here is the one to tell.
  }
}

/** By its code: an error of the file system is no `Error` of the realm that a test runs in. */
function isCode(error: unknown, code: string): boolean {
  return (error as { code?: unknown } | undefined)?.code === code;
}

function reason(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' ? message : String(error);
}
