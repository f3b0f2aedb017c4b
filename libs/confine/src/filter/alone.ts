import { BARE, BARE_SIGNALS } from './bare.js';
import { keep, load, when, type Code } from './bpf.js';
import { RESOLVES_UNIX } from '../landlock.js';
import {
  AF_INET,
  AF_INET6,
  AF_UNIX,
  ALLOW,
  ASK,
  IPPROTO_TCP,
  O_TRUNC,
  OPENS_FOR,
  SOCK_SEQPACKET,
  SOCK_STREAM,
  SOCK_TYPE,
  argument,
  oneOf,
  refuse,
} from './terms.js';

const PRIO_PROCESS = 0;
const IOPRIO_WHO_PROCESS = 1;

/** Of calls that mean a process by a number, 0 is the caller itself: nobody is there who could tell others of the session from those outside. */
const ofItself = (index: number): Code => load(argument(index), when('equal', 0, ALLOW, refuse('EPERM')));

/** The other end of a terminal, by its master alone. */
const TIOCGPTPEER = 0x5441;

/**
 * TCP, whose ports Landlock tells apart from its fourth version on. Unix sockets it tells apart from its ninth on (`RESOLVE_UNIX`); before, whoever
 * may make one connects to all of this user's.
 */
function aloneSocket(hasPorts: boolean, hasPaths: boolean): Code {
  const unix = load(argument(1), keep(SOCK_TYPE, oneOf([SOCK_STREAM, SOCK_SEQPACKET], ALLOW, refuse('EACCES'))));
  const tcp = load(argument(2), oneOf([0, IPPROTO_TCP], ALLOW, refuse('EACCES')));
  const stream = load(argument(1), keep(SOCK_TYPE, when('equal', SOCK_STREAM, tcp, refuse('EACCES'))));
  return load(
    argument(0),
    when(
      'equal',
      AF_UNIX,
      hasPaths ? unix : refuse('EACCES'),
      oneOf([AF_INET, AF_INET6], hasPorts ? stream : refuse('EACCES'), refuse('EAFNOSUPPORT')),
    ),
  );
}

/** Opening to read cuts a file off where the flag says so; before its third version Landlock has no word for that. */
const cutsByReading = (flags: number): Code =>
  load(argument(flags), when('hasBits', O_TRUNC, keep(OPENS_FOR, when('equal', 0, refuse('EACCES'), ALLOW)), ALLOW));

/** What in tier T2 a supervisor would be asked, answered by the filter alone. `landlock`: the version that holds the rest. */
export function aloneCalls(landlock: number): Readonly<Record<string, () => Code>> {
  const { ioctl, ...signals } = BARE_SIGNALS;
  const own = (name: string): (() => Code) => BARE[name] as () => Code;
  const asBare = [
    ...['setxattrat', 'removexattrat', 'file_setattr', 'socketpair', 'mq_open', 'mq_unlink'],
    ...['shmget', 'shmat', 'shmctl', 'semget', 'semop', 'semctl', 'semtimedop', 'msgget', 'msgsnd', 'msgrcv', 'msgctl'],
  ];
  return {
    ...Object.fromEntries(asBare.map((name) => [name, own(name)])),
    // An access list is one of them: a file outside would be opened to others. Whoever has to keep them says that it could not.
    ...Object.fromEntries(
      ['setxattr', 'lsetxattr', 'fsetxattr', 'removexattr', 'lremovexattr', 'fremovexattr'].map((name) => [
        name,
        () => refuse('EPERM'),
      ]),
    ),
    socket: () => aloneSocket(landlock >= 4, landlock >= RESOLVES_UNIX),
    prlimit64: () => ofItself(0),
    sched_setaffinity: () => ofItself(0),
    sched_setscheduler: () => ofItself(0),
    sched_setparam: () => ofItself(0),
    sched_setattr: () => ofItself(0),
    setpriority: () => load(argument(0), when('equal', PRIO_PROCESS, ofItself(1), refuse('EPERM'))),
    ioprio_set: () => load(argument(0), when('equal', IOPRIO_WHO_PROCESS, ofItself(1), refuse('EPERM'))),
    ioctl: () =>
      load(argument(1), when('equal', TIOCGPTPEER, ASK, (landlock >= 6 ? own('ioctl') : (ioctl as () => Code))())),
    ...(landlock >= 6 ? {} : { fcntl: signals['fcntl'] as () => Code }),
    ...(landlock >= 3
      ? {}
      : {
          truncate: () => refuse('EACCES'),
          open: () => cutsByReading(1),
          openat: () => cutsByReading(2),
          openat2: () => refuse('ENOSYS'),
        }),
  };
}
