import { constants } from 'node:os';
import { errnoName, KernelError } from './failure.js';
import { cLibrary } from './library.js';

/** <linux/fcntl.h> */
const F_DUPFD_CLOEXEC = 1030;
/** No standard stream. */
const FIRST = 3;

/** Another descriptor of the same open file, which no program has that is started. Throws KernelError; also elsewhere than on Linux. */
export function duplicate(fd: number): number {
  if (process.platform !== 'linux')
    throw new KernelError('unsupported', `descriptors are not duplicated on ${process.platform}`);
  const c = cLibrary();
  for (;;) {
    const copy = c.fcntl(fd, F_DUPFD_CLOEXEC, FIRST);
    if (copy >= 0) return copy;
    const errno = c.errno();
    if (errno === constants.errno.EINTR) continue;
    const name = errnoName(errno);
    throw new KernelError('not-duplicated', `fcntl could not duplicate a descriptor: ${name}`, name);
  }
}
