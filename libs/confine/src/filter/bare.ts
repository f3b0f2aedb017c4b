import { keep, load, when, type Code } from './bpf.js';
import {
  AF_INET,
  AF_INET6,
  AF_UNIX,
  ALLOW,
  ASK,
  F_NOTIFY,
  F_SETLEASE,
  IPPROTO_TCP,
  MAKES_NAMES,
  SOCK_SEQPACKET,
  SOCK_STREAM,
  SOCK_TYPE,
  TERMINAL_INPUT,
  argument,
  oneOf,
  refuse,
} from './terms.js';

/** FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR: attributes, of whatever a descriptor stands for. */
const SETS_ATTRIBUTES = [0x4008_6602, 0x401c_5820];
const [F_SETOWN, F_SETOWN_EX] = [8, 15];
/** FIOSETOWN, SIOCSPGRP. */
const SETS_OWNER = [0x8901, 0x8902];
const [PRIO_PROCESS, IOPRIO_WHO_PROCESS] = [0, 1];

/** Streams of the unix and internet families. */
function bareSocket(): Code {
  const stream = (protocols: readonly number[]): Code => load(argument(2), oneOf(protocols, ALLOW, refuse('EACCES')));
  const type = (allowed: readonly number[], then: Code): Code =>
    load(argument(1), keep(SOCK_TYPE, oneOf(allowed, then, refuse('EACCES'))));
  return load(
    argument(0),
    when(
      'equal',
      AF_UNIX,
      type([SOCK_STREAM, SOCK_SEQPACKET], ALLOW),
      oneOf([AF_INET, AF_INET6], type([SOCK_STREAM], stream([0, IPPROTO_TCP])), refuse('EAFNOSUPPORT')),
    ),
  );
}

/** One end of a pair of datagrams sends to any path, by an address that nobody is asked about. */
export const streamPairs = (): Code =>
  load(
    argument(0),
    when(
      'equal',
      AF_UNIX,
      load(argument(1), keep(SOCK_TYPE, oneOf([SOCK_STREAM, SOCK_SEQPACKET], ALLOW, refuse('EACCES')))),
      refuse('EAFNOSUPPORT'),
    ),
  );

/** Of calls that mean a process by a number, 0 is the caller itself. */
const ofOthers = (index: number): Code => load(argument(index), when('equal', 0, ALLOW, ASK));

/**
 * What is asked besides where no mounts and namespaces hold: taking names away, modes, owners, times and attributes, other processes, and the
 * addresses of sockets. Shared memory and queues of System V and POSIX are everybody's there, and refused.
 */
export const BARE: Readonly<Record<string, () => Code>> = {
  ...Object.fromEntries(
    [
      ...[
        'unlink',
        'unlinkat',
        'rmdir',
        'chmod',
        'fchmod',
        'fchmodat',
        'fchmodat2',
        'chown',
        'fchown',
        'lchown',
        'fchownat',
      ],
      ...['utime', 'utimes', 'futimesat', 'utimensat', 'setxattr', 'lsetxattr', 'fsetxattr'],
      ...['removexattr', 'lremovexattr', 'fremovexattr', 'connect', 'bind', 'listen'],
    ].map((name) => [name, () => ASK]),
  ),
  // Newer forms, which programs fall back from.
  ...Object.fromEntries(['setxattrat', 'removexattrat', 'file_setattr'].map((name) => [name, () => refuse('ENOSYS')])),
  ...Object.fromEntries(
    [
      ...[
        'shmget',
        'shmat',
        'shmctl',
        'semget',
        'semop',
        'semctl',
        'semtimedop',
        'msgget',
        'msgsnd',
        'msgrcv',
        'msgctl',
      ],
      ...['mq_open', 'mq_unlink'],
    ].map((name) => [name, () => refuse('EPERM')]),
  ),
  ioctl: () =>
    load(argument(1), oneOf([...TERMINAL_INPUT, ...MAKES_NAMES, ...SETS_ATTRIBUTES], refuse('EPERM'), ALLOW)),
  socket: bareSocket,
  socketpair: streamPairs,
  prlimit64: () => ofOthers(0),
  sched_setaffinity: () => ofOthers(0),
  sched_setscheduler: () => ofOthers(0),
  sched_setparam: () => ofOthers(0),
  sched_setattr: () => ofOthers(0),
  // Only processes are meant: a group or a user has members outside.
  setpriority: () => load(argument(0), when('equal', PRIO_PROCESS, ofOthers(1), refuse('EPERM'))),
  ioprio_set: () => load(argument(0), when('equal', IOPRIO_WHO_PROCESS, ofOthers(1), refuse('EPERM'))),
};

/** Where Landlock does not keep signals inside. A descriptor of a process could be exchanged for another between the answer and the call. */
export const BARE_SIGNALS: Readonly<Record<string, () => Code>> = {
  ...Object.fromEntries(
    ['kill', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo'].map((name) => [name, () => ASK]),
  ),
  pidfd_send_signal: () => refuse('ENOSYS'),
  // Whoever owns a descriptor gets its signals.
  fcntl: () => load(argument(1), oneOf([F_SETLEASE, F_NOTIFY, F_SETOWN, F_SETOWN_EX], refuse('EPERM'), ALLOW)),
  ioctl: () =>
    load(
      argument(1),
      oneOf([...TERMINAL_INPUT, ...MAKES_NAMES, ...SETS_ATTRIBUTES, ...SETS_OWNER], refuse('EPERM'), ALLOW),
    ),
};
