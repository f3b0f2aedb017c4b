/**
 * The door to the kernel: the only place that loads koffi. Locks (`flock`), who is at the other end of a Unix socket, open files that come through one, what a process
 * is and whether it still lives, socket addresses longer than the kernel takes, folders where Node would never end, and nd7's own programs that do what Node cannot.
 *
 * Promises: koffi is loaded on the first call that needs it and never for process facts; a lock is released by the kernel when its
 * process dies. Does not promise: that a pid means anything once its process has gone (compare `start` too); macOS is written from
 * its headers and has not been run.
 *
 * Called by `journal` (locks), the recorder (peers, processes, its socket), the CLI, and whoever makes a folder that a person has named.
 */
export { tryLock, unlock } from './lock.js';
export { introducedTo, peerOf, peerOfSocket, type Peer } from './peer.js';
export { tcpPeer, TcpTable, type TcpEnds } from './tcp-peer.js';
export { duplicate } from './duplicate.js';
export { receiveDescriptors, type Received } from './rights.js';
export { isAlive, parseStat, processFacts, type ProcessFacts } from './process.js';
export { socketAddress, type SocketAddress } from './address.js';
export { releaseFreedMemory } from './memory.js';
export { makeFolders } from './folders.js';
export { findNative, isNativePossible, nativePath, type NativeProgram } from './native.js';
export { applySeatbelt, becomeProgram } from './seatbelt.js';
export { KernelError } from './failure.js';
