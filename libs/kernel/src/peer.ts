import type { Socket } from 'node:net';
import { errnoName, KernelError } from './failure.js';
import { cLibrary } from './library.js';

/** Who is at the other end of a Unix socket, as the kernel noted it when the peer connected. `pid` is as this process sees it (0: not visible here). */
export interface Peer {
  pid: number;
  uid: number;
  gid: number;
}

const LINUX = { SOL_SOCKET: 1, SO_PEERCRED: 17 };
// <sys/un.h> and <sys/ucred.h> of macOS. Written from the headers; nobody has run it there yet.
const DARWIN = { SOL_LOCAL: 0, LOCAL_PEERCRED: 1, LOCAL_PEERPID: 2 };

/** Credentials of the peer of a connected Unix socket. Throws KernelError `no-peer` for any other descriptor. */
export function peerOf(fd: number): Peer {
  if (process.platform === 'linux') {
    const words = option(fd, LINUX.SOL_SOCKET, LINUX.SO_PEERCRED, 12); // struct ucred { pid_t; uid_t; gid_t }
    const [pid, uid, gid] = [words.getInt32(0, true), words.getUint32(4, true), words.getUint32(8, true)];
    // A TCP socket answers with nobody instead of failing.
    if (uid === 0xffff_ffff)
      throw new KernelError('no-peer', 'this socket has no peer credentials: it is not a Unix socket');
    return { pid, uid, gid };
  }
  if (process.platform === 'darwin') {
    const xucred = option(fd, DARWIN.SOL_LOCAL, DARWIN.LOCAL_PEERCRED, 76); // u32 version, uid, i16 ngroups, pad, 16 gids
    const pid = option(fd, DARWIN.SOL_LOCAL, DARWIN.LOCAL_PEERPID, 4);
    return { pid: pid.getInt32(0, true), uid: xucred.getUint32(4, true), gid: xucred.getUint32(12, true) };
  }
  throw new KernelError('unsupported', `peer credentials are not known on ${process.platform}`);
}

/**
 * The same for a socket that `net` accepted. Node keeps the descriptor in a private field and has no public way to it; a Node that
 * moves it makes this throw `no-peer`, and a caller that must know its peer then refuses.
 */
export function peerOfSocket(socket: Socket): Peer {
  const fd = (socket as unknown as { _handle?: { fd?: number } | null })._handle?.fd;
  if (typeof fd !== 'number' || fd < 0) throw new KernelError('no-peer', 'this socket has no descriptor: it is closed');
  return peerOf(fd);
}

function option(fd: number, level: number, name: number, size: number): DataView {
  const value = new Uint8Array(size);
  const length = new Uint32Array([size]);
  const c = cLibrary();
  if (c.getsockopt(fd, level, name, value, length) !== 0) {
    const errno = errnoName(c.errno());
    throw new KernelError('no-peer', `the peer of descriptor ${fd} is not known: ${errno}`, errno);
  }
  return new DataView(value.buffer);
}
