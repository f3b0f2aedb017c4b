import type { Socket } from 'node:net';
import { errnoName, KernelError } from './failure.js';
import { cLibrary } from './library.js';

/** Who is at the other end of a Unix socket, as the kernel noted it when the peer connected. `pid` is as this process sees it (0: not visible here). */
export interface Peer {
  pid: number;
  uid: number;
  gid: number;
}

const LINUX = { SOL_SOCKET: 1, SO_PEERCRED: 17, SO_PEERNAME: 28 };
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
  const fd = descriptorOf(socket);
  if (fd === undefined) throw new KernelError('no-peer', 'this socket has no descriptor: it is closed');
  return peerOf(fd);
}

/** What the supervisor of a confined session binds a socket to before it connects it to nd7's own: `INTRODUCTION` of `native/observe/src/observe.h`. */
const INTRODUCTION = /^nd7-caller-(\d{10})-[0-9a-f]{16}$/;
const INTRODUCTION_BYTES = 2 + 1 + 38;

/**
 * The process for which a supervisor has connected this socket, by the name of its other end; undefined where it has no such name. Anybody can give a
 * socket a name: it is worth something where `peerOfSocket` names a supervisor that is known. Linux only.
 */
export function introducedTo(socket: Socket): number | undefined {
  const fd = descriptorOf(socket);
  if (process.platform !== 'linux' || fd === undefined) return undefined;
  try {
    const name = option(fd, LINUX.SOL_SOCKET, LINUX.SO_PEERNAME, INTRODUCTION_BYTES); // sa_family_t, NUL, the name
    const said = INTRODUCTION.exec(Buffer.from(name.buffer, 3).toString('latin1'));
    return name.getUint8(2) === 0 && said !== null ? Number(said[1]) : undefined;
  } catch {
    return undefined; // It has no name, or a shorter one.
  }
}

function descriptorOf(socket: Socket): number | undefined {
  const fd = (socket as unknown as { _handle?: { fd?: number } | null })._handle?.fd;
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
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
