// What the filter's tests compare it with: an interpreter of its programs, written from the kernel's documentation, and its rules in words.
import fc from 'fast-check';
import type { Architecture } from './syscalls.js';

export interface Call {
  arch: number;
  number: number;
  args: bigint[];
}

export const ARCH: Record<Architecture, number> = { x86_64: 0xc000003e, aarch64: 0xc00000b7 };
export const ALLOW = 'allow';
export const ASK = `action ${0x7fc00000}`;
export const errno = (n: number): string => `errno ${n}`;
export const [EPERM, EACCES, EBUSY, ENOSYS, EOPNOTSUPP, EAFNOSUPPORT] = [1, 13, 16, 38, 95, 97].map(errno) as [
  string,
  string,
  string,
  string,
  string,
  string,
];

export function interpret(program: Uint8Array, call: Call): string {
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, call.number, true);
  data.setUint32(4, call.arch, true);
  call.args.forEach((value, i) => data.setBigUint64(16 + 8 * i, value, true));
  const code = new DataView(program.buffer);
  let a = 0;
  for (let pc = 0; ; pc++) {
    const at = pc * 8;
    const [op, jt, jf, k] = [
      code.getUint16(at, true),
      code.getUint8(at + 2),
      code.getUint8(at + 3),
      code.getUint32(at + 4, true),
    ];
    if (op === 0x20) a = data.getUint32(k, true);
    else if (op === 0x54) a = (a & k) >>> 0;
    else if (op === 0x05) pc += k;
    else if (op === 0x15) pc += a === k ? jt : jf;
    else if (op === 0x35) pc += a >= k ? jt : jf;
    else if (op === 0x45) pc += (a & k) !== 0 ? jt : jf;
    else if (op === 0x06)
      return k === 0x7fff0000 ? ALLOW : (k & 0xffff0000) === 0x00050000 ? errno(k & 0xffff) : `action ${k}`;
    else throw new Error(`an instruction that the filter has no need of: ${op}`);
  }
}

export const NEW = 0x7e020000;
export const TERMINAL = [0x5412, 0x541c, 0x5423, 0x541d];
/** What btrfs and bcachefs make subvolumes and snapshots by. */
export const SUBVOLUMES = [0x50009401, 0x5000940e, 0x50009417, 0x50009418, 0x4020bc10];
/** What the words of docs say, call by call; arguments as the kernel's ints. */
export function expected(name: string, args: bigint[]): string {
  const low = args.map((value) => Number(value & 0xffffffffn));
  const [a = 0, b = 0, c = 0, d = 0] = low;
  const bits = (value: number, mask: number): boolean => (value & mask) !== 0;
  switch (name) {
    case 'clone':
      return bits(a, NEW) ? EPERM : ALLOW;
    case 'unshare':
      return bits(a, NEW | 0x80) ? EPERM : ALLOW;
    case 'ioctl':
      return [...TERMINAL, ...SUBVOLUMES].includes(b) ? EPERM : ALLOW;
    case 'socketpair':
      return a === 1 ? ALLOW : EAFNOSUPPORT;
    case 'sendto':
    case 'sendmmsg':
      return bits(d, 0x20000000) ? EOPNOTSUPP : ALLOW;
    case 'sendmsg':
      return bits(c, 0x20000000) ? EOPNOTSUPP : ALLOW;
    case 'prctl':
      return a === 35 || a === 0x59616d61 ? EPERM : ALLOW;
    case 'fcntl':
      return b === 1024 || b === 1026 ? EPERM : ALLOW;
    case 'mknod':
      return [0o020000, 0o060000].includes(b & 0o170000) ? EPERM : ALLOW;
    case 'mknodat':
      return [0o020000, 0o060000].includes(c & 0o170000) ? EPERM : ALLOW;
    case 'seccomp':
      return a === 1 && bits(b, 8) ? EBUSY : ALLOW;
    case 'socket': {
      const type = b & 0xf;
      if (a === 1) return type === 1 || type === 5 ? ALLOW : EACCES;
      if (a === 2 || a === 10) return type === 2 || (type === 1 && (c === 0 || c === 6)) ? ALLOW : EACCES;
      if (a === 16) return b === 0o2000003 && c === 0 ? ALLOW : EACCES;
      return EAFNOSUPPORT;
    }
    default:
      return ALLOW;
  }
}

/** Arguments that decide somewhere, their neighbours, and anything, with anything in the upper half. */
const argument = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(
        0,
        1,
        2,
        3,
        5,
        6,
        10,
        16,
        17,
        35,
        40,
        0x80,
        0x5412,
        0x541c,
        0x541d,
        0x5423,
        1024,
        1026,
        0o2000001,
        0o2000003,
        0o2000002,
      ),
      fc.constantFrom(
        0x59616d61,
        ...SUBVOLUMES,
        0x20000000,
        0x10000000,
        0x40000000,
        0x00020000,
        0x80000000,
        0o020666,
        0o060600,
        0o100644,
        8,
        262,
      ),
      fc.integer({ min: 0, max: 0xffffffff }),
    ),
    fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffffffff })),
  )
  .map(([low, high]) => (BigInt(high) << 32n) | BigInt(low));
export const args = fc.array(argument, { minLength: 6, maxLength: 6 });
