import {
  closeSync,
  constants,
  ftruncateSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { KernelError, tryLock } from '@nd7/kernel';
import { SignerError } from './signer.js';

/**
 * The exclusive lock on a signer's folder: one signer per key, whatever is started twice. It is the kernel's (`flock`), so it goes with
 * the process that holds it, and it does not reach over network file systems: keep the folder on a local disk.
 */
export class FolderLock {
  private constructor(private fd: number | undefined) {}

  /** Makes the folder (0700) where there is none. Throws SignerError `locked` or `folder`. */
  static take(folder: string): FolderLock {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new SignerError('folder', `cannot make the signer's folder ${folder}: ${(error as Error).message}`, {
        cause: error,
      });
    }
    refuseOthers(folder);
    const path = join(folder, 'lock');
    let fd: number;
    try {
      fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    } catch (error) {
      throw new SignerError('folder', `cannot open ${path}: ${(error as Error).message}`, { cause: error });
    }
    try {
      if (!tryLock(fd)) {
        const holder = readFileSync(path, 'utf8').trim();
        throw new SignerError(
          'locked',
          `another signer (process ${holder || 'unknown'}) holds ${folder}: stop it first, or reach it over its socket`,
        );
      }
      ftruncateSync(fd, 0);
      writeSync(fd, `${String(process.pid)}\n`, 0);
    } catch (error) {
      closeSync(fd);
      if (error instanceof KernelError)
        throw new SignerError('folder', `${folder}: ${error.message}`, { cause: error });
      throw error;
    }
    return new FolderLock(fd);
  }

  /** The file is still the one that was locked: nobody has put another folder in its place. */
  holds(folder: string): boolean {
    if (this.fd === undefined) return false;
    try {
      const [mine, there] = [fstatSync(this.fd), statSync(join(folder, 'lock'))];
      return mine.ino === there.ino && mine.dev === there.dev;
    } catch {
      return false;
    }
  }

  release(): void {
    if (this.fd !== undefined) closeSync(this.fd);
    this.fd = undefined;
  }
}

function refuseOthers(folder: string): void {
  const { mode, uid } = statSync(folder);
  const self = process.geteuid?.();
  if ((mode & 0o077) !== 0)
    throw new SignerError('folder', `others have rights to the signer's folder ${folder}: chmod 700 ${folder}`);
  if (self !== undefined && uid !== self)
    throw new SignerError(
      'folder',
      `the signer's folder ${folder} belongs to user ${String(uid)}, not to this one (${String(self)})`,
    );
}
