import { closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';

/** sun_path of Linux is 108 bytes with its NUL, of macOS 104. Node cuts a longer path silently and would bind somewhere else. */
const LONGEST = process.platform === 'darwin' ? 103 : 107;

/** A path that `net.listen` and `net.connect` take whole, and what must be closed when it is no longer needed. */
export interface SocketAddress {
  path: string;
  close(): void;
}

/**
 * The address of a Unix socket `name` in `folder`. Where the plain path is too long, it leads through a descriptor of the folder
 * (`/proc/self/fd/N/name`), which stays open until `close`. Throws with a plain message where neither fits (long path outside Linux).
 */
export function socketAddress(folder: string, name: string): SocketAddress {
  const plain = join(folder, name);
  if (Buffer.byteLength(plain) <= LONGEST) return { path: plain, close: () => undefined };
  if (process.platform !== 'linux')
    throw new Error(`the socket path ${plain} is longer than ${LONGEST} bytes: set ND7_HOME to a shorter folder`);
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  let open = true;
  return {
    path: `/proc/self/fd/${fd}/${name}`,
    close: () => {
      if (open) closeSync(fd);
      open = false;
    },
  };
}
