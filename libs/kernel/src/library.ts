import { createRequire } from 'node:module';
import type koffi from 'koffi';

type Koffi = typeof koffi;

/** As koffi hands them round. */
type Pointer = ReturnType<Koffi['alloc']>;

/** A piece of memory that C functions may be given. */
export interface Memory {
  pointer: Pointer;
  address: bigint;
  view: DataView;
}

/** The C functions that Node has no door to, as koffi calls them. */
export interface CLibrary {
  flock(fd: number, operation: number): number;
  getsockopt(fd: number, level: number, name: number, value: Uint8Array, length: Uint32Array): number;
  /** Linux only. */
  fcntl(fd: number, operation: number, value: number): number;
  /** `message` is a struct msghdr. */
  recvmsg(fd: number, message: Pointer, flags: number): number;
  errno(): number;
  /** Memory that stays where it is, and is never given back. */
  memory(bytes: number): Memory;
  /** glibc only. */
  malloc_trim?: ((pad: number) => number) | undefined;
}

let loaded: CLibrary | undefined;

/**
 * Loads koffi and binds the C library on first use: the 5 MB binary costs a start-up that commands which never lock pay for nothing.
 * Throws when koffi has no binary for this platform.
 */
export function cLibrary(): CLibrary {
  if (loaded === undefined) {
    const k = createRequire(import.meta.url)('koffi') as Koffi;
    const lib = k.load(process.platform === 'darwin' ? '/usr/lib/libSystem.B.dylib' : null);
    loaded = {
      flock: lib.func('int flock(int fd, int operation)') as CLibrary['flock'],
      getsockopt: lib.func(
        'int getsockopt(int fd, int level, int name, _Out_ uint8_t *value, _Inout_ uint32_t *length)',
      ) as CLibrary['getsockopt'],
      // Linux takes variadic arguments as it takes others.
      fcntl: lib.func('int fcntl(int fd, int operation, int value)') as CLibrary['fcntl'],
      recvmsg: lib.func('long recvmsg(int fd, void *message, int flags)') as CLibrary['recvmsg'],
      errno: () => k.errno(),
      memory: (bytes) => {
        const pointer = k.alloc('uint8_t', bytes) as Pointer;
        return { pointer, address: k.address(pointer), view: new DataView(k.view(pointer, bytes)) };
      },
      malloc_trim: optional(() => lib.func('int malloc_trim(size_t pad)') as (pad: number) => number),
    };
  }
  return loaded;
}

/** A function that not every C library has. */
function optional<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}
