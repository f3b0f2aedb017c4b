import { constants } from 'node:os';
import { errnoName, KernelError } from './failure.js';
import { cLibrary } from './library.js';

const LOCK_EX = 2;
const LOCK_NB = 4;
const LOCK_UN = 8;

/**
 * Takes an exclusive `flock(2)` on an open file, without waiting. True: this open file description holds it, until `unlock` or until
 * the last descriptor of it is closed (the kernel does that for a killed process too). False: somebody else holds it, which may be
 * another open of the same file in this very process. Throws KernelError where the file system has no locks.
 */
export function tryLock(fd: number): boolean {
  const c = cLibrary();
  for (;;) {
    if (c.flock(fd, LOCK_EX | LOCK_NB) === 0) return true;
    const errno = c.errno();
    if (errno === constants.errno.EWOULDBLOCK || errno === constants.errno.EAGAIN) return false;
    if (errno === constants.errno.EINTR) continue;
    throw new KernelError(
      'lock-failed',
      `flock failed with ${errnoName(errno)}: keep this folder on a local file system with locks`,
      errnoName(errno),
    );
  }
}

/** Gives the lock back. Closing the file does the same. */
export function unlock(fd: number): void {
  const c = cLibrary();
  if (c.flock(fd, LOCK_UN) !== 0) {
    const name = errnoName(c.errno());
    throw new KernelError('lock-failed', `flock could not unlock: ${name}`, name);
  }
}
