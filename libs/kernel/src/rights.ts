import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { errnoName, KernelError } from './failure.js';
import { cLibrary, type Memory } from './library.js';

/** One message of a Unix socket, and the open files that came with it: they are the caller's to close. */
export interface Received {
  bytes: Uint8Array;
  descriptors: number[];
}

// struct msghdr, struct iovec and struct cmsghdr of 64-bit Linux.
const MESSAGE = { iov: 16, iovLength: 24, control: 32, controlLength: 40, flags: 48, size: 56 } as const;
const IOVEC_SIZE = 16;
const HEADER_SIZE = 16;
const MOST_BYTES = 4096;
/** SCM_MAX_FD. */
const MOST_DESCRIPTORS = 253;
const CONTROL_SIZE = HEADER_SIZE + 4 * MOST_DESCRIPTORS + 4;
const LINUX = {
  SOL_SOCKET: 1,
  SCM_RIGHTS: 1,
  MSG_CTRUNC: 8,
  MSG_DONTWAIT: 0x40,
  MSG_CMSG_CLOEXEC: 0x4000_0000,
} as const;

let memory: Memory | undefined;

/**
 * The next message of a Unix socket that Node does not read itself, without waiting (`recvmsg(2)`, SCM_RIGHTS). Undefined where none is there
 * yet; no bytes where the other end has gone. Of a message longer than 4096 bytes the rest is the next one. Throws KernelError: `not-received`.
 */
export function receiveDescriptors(socket: number): Received | undefined {
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch))
    throw new KernelError('unsupported', `open files are not received on ${process.platform} on ${process.arch}`);
  const c = cLibrary();
  memory ??= c.memory(MESSAGE.size + IOVEC_SIZE + CONTROL_SIZE + MOST_BYTES);
  const { pointer, address, view } = memory;
  const [iov, control] = [MESSAGE.size, MESSAGE.size + IOVEC_SIZE];
  const data = control + CONTROL_SIZE;
  for (let at = 0; at < control; at += 8) view.setBigUint64(at, 0n, true);
  view.setBigUint64(MESSAGE.iov, address + BigInt(iov), true);
  view.setBigUint64(MESSAGE.iovLength, 1n, true);
  view.setBigUint64(MESSAGE.control, address + BigInt(control), true);
  view.setBigUint64(MESSAGE.controlLength, BigInt(CONTROL_SIZE), true);
  view.setBigUint64(iov, address + BigInt(data), true);
  view.setBigUint64(iov + 8, BigInt(MOST_BYTES), true);
  let length: number;
  do length = c.recvmsg(socket, pointer, LINUX.MSG_DONTWAIT | LINUX.MSG_CMSG_CLOEXEC);
  while (length < 0 && c.errno() === constants.errno.EINTR);
  if (length < 0) {
    const errno = c.errno();
    if (errno === constants.errno.EAGAIN) return undefined;
    throw new KernelError('not-received', `recvmsg failed with ${errnoName(errno)}`, errnoName(errno));
  }
  const descriptors = descriptorsIn(view, control, Number(view.getBigUint64(MESSAGE.controlLength, true)));
  if ((view.getInt32(MESSAGE.flags, true) & LINUX.MSG_CTRUNC) !== 0) {
    for (const fd of descriptors) closeSync(fd);
    throw new KernelError('not-received', 'some open files of a message could not be taken: there are too many');
  }
  return { bytes: new Uint8Array(view.buffer.slice(data, data + length)), descriptors };
}

function descriptorsIn(view: DataView, control: number, size: number): number[] {
  const found: number[] = [];
  for (let at = 0; at + HEADER_SIZE <= size;) {
    const length = Number(view.getBigUint64(control + at, true));
    if (length < HEADER_SIZE || at + length > size) break;
    const isRights =
      view.getInt32(control + at + 8, true) === LINUX.SOL_SOCKET &&
      view.getInt32(control + at + 12, true) === LINUX.SCM_RIGHTS;
    for (let fd = at + HEADER_SIZE; isRights && fd + 4 <= at + length; fd += 4)
      found.push(view.getInt32(control + fd, true));
    at += (length + 7) & ~7;
  }
  return found;
}
