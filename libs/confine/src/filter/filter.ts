import { aloneCalls } from './alone.js';
import { BARE, BARE_SIGNALS, streamPairs } from './bare.js';
import { assemble, keep, load, when, type Code } from './bpf.js';
import { allowedCalls, refusedCalls, type Architecture } from './syscalls.js';
import {
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  AF_UNIX,
  ALLOW,
  ARCHITECTURE,
  ASK,
  AUDIT_ARCH,
  ERRNO,
  F_NOTIFY,
  F_SETLEASE,
  IPPROTO_TCP,
  MAKES_NAMES,
  MSG_FASTOPEN,
  NEW_NAMESPACES,
  NEW_TIME,
  NUMBER,
  OPENS_TO_WRITE,
  O_PATH,
  PR_SET_MM,
  PR_SET_PTRACER,
  SECCOMP_FILTER_FLAG_NEW_LISTENER,
  SECCOMP_SET_MODE_FILTER,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
  SOCK_RAW,
  SOCK_SEQPACKET,
  SOCK_STREAM,
  SOCK_TYPE,
  S_IFBLK,
  S_IFCHR,
  S_IFMT,
  TERMINAL_INPUT,
  X32,
  argument,
  oneOf,
  refuse,
} from './terms.js';

const withoutBits = (index: number, bits: number, error: keyof typeof ERRNO): Code =>
  load(argument(index), when('hasBits', bits, refuse(error), ALLOW));

const noDevices = (mode: number, otherwise: Code): Code =>
  load(argument(mode), keep(S_IFMT, oneOf([S_IFCHR, S_IFBLK], refuse('EPERM'), otherwise)));

/**
 * Sockets: unix streams and packets; IPv4 and IPv6 with TCP, and UDP, which reaches nobody in a network namespace that has a loopback
 * interface only (Java and Node ask it for addresses); routing netlink in the one form in which C libraries list interfaces.
 */
function socketRules(): Code {
  const types = (allowed: readonly number[], then: Code): Code =>
    load(argument(1), keep(SOCK_TYPE, oneOf(allowed, then, refuse('EACCES'))));
  const internet = load(
    argument(1),
    keep(
      SOCK_TYPE,
      when(
        'equal',
        SOCK_STREAM,
        load(argument(2), oneOf([0, IPPROTO_TCP], ALLOW, refuse('EACCES'))),
        when('equal', SOCK_DGRAM, ALLOW, refuse('EACCES')),
      ),
    ),
  );
  const netlink = load(
    argument(1),
    when(
      'equal',
      SOCK_RAW | SOCK_CLOEXEC,
      load(argument(2), when('equal', 0, ALLOW, refuse('EACCES'))),
      refuse('EACCES'),
    ),
  );
  const unix = types([SOCK_STREAM, SOCK_SEQPACKET], ALLOW);
  return load(
    argument(0),
    when(
      'equal',
      AF_UNIX,
      unix,
      oneOf([AF_INET, AF_INET6], internet, when('equal', AF_NETLINK, netlink, refuse('EAFNOSUPPORT'))),
    ),
  );
}

/** Calls whose arguments decide, by name. */
const BY_ARGUMENT: Readonly<Record<string, () => Code>> = {
  clone: () => withoutBits(0, NEW_NAMESPACES, 'EPERM'),
  unshare: () => withoutBits(0, NEW_NAMESPACES | NEW_TIME, 'EPERM'),
  ioctl: () => load(argument(1), oneOf([...TERMINAL_INPUT, ...MAKES_NAMES], refuse('EPERM'), ALLOW)),
  socket: socketRules,
  socketpair: () => load(argument(0), when('equal', AF_UNIX, ALLOW, refuse('EAFNOSUPPORT'))),
  sendto: () => withoutBits(3, MSG_FASTOPEN, 'EOPNOTSUPP'),
  sendmsg: () => withoutBits(2, MSG_FASTOPEN, 'EOPNOTSUPP'),
  sendmmsg: () => withoutBits(3, MSG_FASTOPEN, 'EOPNOTSUPP'),
  prctl: () => load(argument(0), oneOf([PR_SET_MM, PR_SET_PTRACER], refuse('EPERM'), ALLOW)),
  fcntl: () => load(argument(1), oneOf([F_SETLEASE, F_NOTIFY], refuse('EPERM'), ALLOW)),
  mknod: () => noDevices(1, ALLOW),
  mknodat: () => noDevices(2, ALLOW),
  // One notifier a tree is the kernel's own rule, and it says EBUSY: the same where no notifier of ours runs.
  seccomp: () =>
    load(
      argument(0),
      when('equal', SECCOMP_SET_MODE_FILTER, withoutBits(1, SECCOMP_FILTER_FLAG_NEW_LISTENER, 'EBUSY'), ALLOW),
    ),
};

const opensToWrite = (flags: number): Code =>
  load(argument(flags), when('hasBits', O_PATH, ALLOW, when('hasBits', OPENS_TO_WRITE, ASK, ALLOW)));

/**
 * What a supervisor answers: every call that makes or moves a name or opens a file for writing. Calls whose arguments no filter can read are
 * not there (programs fall back to older ones); nor is Landlock, whose domains the supervisor, which carries calls out, could not be in.
 */
const OBSERVED: Readonly<Record<string, () => Code>> = {
  open: () => opensToWrite(1),
  openat: () => opensToWrite(2),
  openat2: () => refuse('ENOSYS'),
  ...Object.fromEntries(
    [
      ...['creat', 'mkdir', 'mkdirat', 'symlink', 'symlinkat', 'link', 'linkat', 'rename', 'renameat', 'renameat2'],
      ...['unlink', 'unlinkat', 'rmdir', 'chmod', 'fchmodat'],
      ...['truncate', 'umask', 'execve', 'execveat'],
    ].map((name) => [name, () => ASK]),
  ),
  mknod: () => noDevices(1, ASK),
  mknodat: () => noDevices(2, ASK),
  // Which socket a path leads to no filter sees; one that was bound outside meanwhile is none of the session's.
  connect: () => ASK,
  bind: () => ASK,
  socketpair: streamPairs,
  // Without a path it is about an open file (futimens).
  utimensat: () => load(argument(1), when('equal', 0, load(argument(1) + 4, when('equal', 0, ALLOW, ASK)), ASK)),
  ...Object.fromEntries(
    ['landlock_create_ruleset', 'landlock_add_rule', 'landlock_restrict_self'].map((name) => [
      name,
      () => refuse('ENOSYS'),
    ]),
  ),
};

const asksOpen = (flags: number): Code => load(argument(flags), when('hasBits', O_PATH, ALLOW, ASK));

/** What it is asked about besides where something that Landlock cannot hide is read through it. */
const READS: Readonly<Record<string, () => Code>> = { open: () => asksOpen(1), openat: () => asksOpen(2) };

/** What a supervisor looks at besides where a session learns (`native/observe/src/learn.c`): calls that name what they read or look at. */
const LEARNED: Readonly<Record<string, () => Code>> = {
  open: () => asksOpen(1),
  openat: () => asksOpen(2),
  ...Object.fromEntries(
    ['access', 'faccessat', 'faccessat2', 'stat', 'lstat', 'newfstatat', 'statx', 'readlink', 'readlinkat'].map(
      (name) => [name, () => ASK],
    ),
  ),
};

/** kill(0) reaches the whole process group, also those of it that are outside of the pid namespace: nd7, and what a shell runs beside it. */
const noGroupSignal = (): Code => load(argument(0), when('equal', 0, refuse('EPERM'), ALLOW));

/** Runs of neighbouring numbers with one answer, the last without an end. */
interface Run {
  from: number;
  answer: Code;
}

function runs(architecture: Architecture, byArgument: Readonly<Record<string, () => Code>>): Run[] {
  const answers = new Map<number, Code>();
  for (const [, number] of refusedCalls(architecture)) answers.set(number, refuse('EPERM'));
  for (const [name, number] of allowedCalls(architecture)) answers.set(number, byArgument[name]?.() ?? ALLOW);
  const unknown = refuse('ENOSYS');
  const found: Run[] = [];
  const last = Math.max(...answers.keys());
  for (let number = 0; number <= last + 1; number++) {
    const answer = answers.get(number) ?? unknown;
    const before = found.at(-1)?.answer;
    const isSame = before?.length === 1 && answer.length === 1 && before[0]?.k === answer[0]?.k;
    if (!isSame) found.push({ from: number, answer });
  }
  return found;
}

/** A binary search for the run that the loaded number lies in. */
function search(of: readonly Run[]): Code {
  if (of.length === 1) return (of[0] as Run).answer;
  const middle = of.length >> 1;
  return when('atLeast', (of[middle] as Run).from, search(of.slice(middle)), search(of.slice(0, middle)));
}

export interface FilterOptions {
  /** Landlock keeps signals inside (version 6); else those to the own process group are refused, or all of them asked about. */
  scoped: boolean;
  /** A supervisor answers what `OBSERVED` says. */
  observed?: boolean;
  /** It looks at what `LEARNED` says besides, and decides nothing of it. */
  learns?: boolean;
  /** And what `BARE` says: no mounts and namespaces hold. */
  bare?: boolean;
  /** And every open. */
  asksReads?: boolean;
  /** Nobody answers, and Landlock of this version is all that holds besides. */
  alone?: number | undefined;
}

/**
 * The filter of a session, as instructions of classic BPF: only calls that are listed pass, some of them only with certain arguments. Known
 * ones that are not listed are EPERM, unknown and newer ones, io_uring and clone3 (whose flags no filter can read) ENOSYS: programs fall
 * back from that. Other architectures and x32 get ENOSYS for everything.
 */
export function callFilter(architecture: Architecture, options: FilterOptions): Uint8Array {
  const { scoped, observed = false, learns = false, bare = false, asksReads = false, alone } = options;
  const key = [architecture, scoped, observed, learns, bare, asksReads, alone].join();
  const filter = filters.get(key) ?? assembled(architecture, { scoped, observed, learns, bare, asksReads, alone });
  filters.set(key, filter);
  return filter;
}

/** There are few, and each is always the same. */
const filters = new Map<string, Uint8Array>();

function assembled(
  architecture: Architecture,
  {
    scoped,
    observed,
    learns,
    bare,
    asksReads,
    alone,
  }: Required<Omit<FilterOptions, 'alone'>> & Pick<FilterOptions, 'alone'>,
): Uint8Array {
  const byArgument = {
    ...BY_ARGUMENT,
    ...(scoped ? {} : { kill: noGroupSignal }),
    ...(observed ? OBSERVED : {}),
    ...(observed && learns ? LEARNED : {}),
    ...(bare ? BARE : {}),
    ...(bare && !scoped ? BARE_SIGNALS : {}),
    ...(asksReads ? READS : {}),
    ...(alone === undefined ? {} : aloneCalls(alone)),
  };
  const calls = search(runs(architecture, byArgument));
  const native = architecture === 'x86_64' ? when('atLeast', X32, refuse('ENOSYS'), calls) : calls;
  return assemble(load(ARCHITECTURE, when('equal', AUDIT_ARCH[architecture], load(NUMBER, native), refuse('ENOSYS'))));
}
