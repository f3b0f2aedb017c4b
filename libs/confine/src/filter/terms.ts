import { give, when, type Code } from './bpf.js';
import type { Architecture } from './syscalls.js';

/** Numbers of errno that the filter answers with; the same on both architectures. */
export const ERRNO = { EPERM: 1, EACCES: 13, EBUSY: 16, ENOSYS: 38, EOPNOTSUPP: 95, EAFNOSUPPORT: 97 } as const;
export const ALLOW = give(0x7fff_0000); // SECCOMP_RET_ALLOW
export const ASK = give(0x7fc0_0000); // SECCOMP_RET_USER_NOTIF
export const refuse = (error: keyof typeof ERRNO): Code => give(0x0005_0000 | ERRNO[error]); // SECCOMP_RET_ERRNO

// Offsets into struct seccomp_data; both architectures are little-endian, so the low half of an argument comes first. The kernel's own
// `int` arguments are what is compared: their upper half is ignored by it too.
export const NUMBER = 0;
export const ARCHITECTURE = 4;
export const argument = (index: number): number => 16 + 8 * index;

export const AUDIT_ARCH: Record<Architecture, number> = { x86_64: 0xc000_003e, aarch64: 0xc000_00b7 };
/** Set in the numbers of the x32 interface, which share the architecture of x86_64. */
export const X32 = 0x4000_0000;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
export const NEW_NAMESPACES =
  0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000;
/** Not in clone(), where these bits are the exit signal. */
export const NEW_TIME = 0x80;
/** TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS. */
export const TERMINAL_INPUT = [0x5412, 0x541c, 0x5423, 0x541d];
/**
 * Names that ioctl makes, by no call that anybody is asked about: BTRFS_IOC_SNAP_CREATE, SUBVOL_CREATE, SNAP_CREATE_V2, SUBVOL_CREATE_V2,
 * BCH_IOCTL_SUBVOLUME_CREATE. A folder of any content would stand under a protected name.
 */
export const MAKES_NAMES = [0x5000_9401, 0x5000_940e, 0x5000_9417, 0x5000_9418, 0x4020_bc10];
export const MSG_FASTOPEN = 0x2000_0000;
export const PR_SET_MM = 35;
export const PR_SET_PTRACER = 0x5961_6d61;
export const F_SETLEASE = 1024;
export const F_NOTIFY = 1026;
export const [S_IFMT, S_IFCHR, S_IFBLK] = [0o170000, 0o020000, 0o060000];
/** O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, __O_TMPFILE; O_PATH, with which they mean nothing. The same on both architectures. */
export const OPENS_TO_WRITE = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000;
export const O_PATH = 0o10000000;
export const O_TRUNC = 0o1000;
/** O_ACCMODE: what is opened for; 0 is to read. */
export const OPENS_FOR = 0o3;
export const SECCOMP_SET_MODE_FILTER = 1;
export const SECCOMP_FILTER_FLAG_NEW_LISTENER = 8;
export const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] = [1, 2, 10, 16];
export const [SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET] = [1, 2, 3, 5];
export const SOCK_CLOEXEC = 0o2000000;
export const SOCK_TYPE = 0xf;
export const IPPROTO_TCP = 6;

/** What is loaded is one of these → `yes`. */
export const oneOf = (values: readonly number[], yes: Code, no: Code): Code =>
  values.reduceRight((rest, value) => when('equal', value, yes, rest), no);
