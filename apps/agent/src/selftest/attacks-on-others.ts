// Attempts on what is not a file: the network, sockets, processes, the kernel.
import { dirname } from 'node:path';
import type { Property } from '@nd7/policy';
import { attack, type Attack, type Shows } from './attack.js';
import type { World } from './world.js';

const heard = (line: string) => (w: World) => w.heard.has(line);

const socket = (name: string, tried: string, ...numbers: string[]): Attack =>
  attack('network.protocols', name, tried, (w) => ['native', w.probes, 'sock', ...numbers], 'word');
const network: readonly Attack[] = [
  attack(
    'network.proxy',
    'proxy-to-loopback',
    'reach a listener of this machine by the proxy',
    (w) => ['proxy', String(w.tcpPort), 'proxy'],
    heard('proxy'),
  ),
  attack(
    'network.loopback',
    'tcp-loopback',
    'reach a listener of this machine directly',
    (w) => ['tcp', String(w.tcpPort), 'tcp'],
    heard('tcp'),
  ),
  attack(
    'network.loopback',
    'listen',
    'be reached from this machine',
    () => ['listen', 'listen'],
    'canary',
    /servers inside listen on this machine/,
  ),
  attack(
    'network.protocols',
    'udp-loopback',
    'send a datagram',
    (w) => ['udp', String(w.udpPort), 'udp'],
    heard('udp'),
  ),
  socket('socket-packet', 'open a socket for raw packets', '17', '3', '0'),
  socket('socket-vsock', 'open a socket to a hypervisor', '40', '1', '0'),
  socket('socket-netlink', 'open a netlink socket', '16', '3', '0'),
  socket('socket-alg', 'open a socket to the kernel’s ciphers', '38', '5', '0'),
  attack(
    'sockets.pathname',
    'unix-socket',
    'speak to a unix socket outside',
    (w) => ['unix', w.unixPath, 'unix'],
    heard('unix'),
  ),
  attack(
    'sockets.pathname',
    'unix-socket-late',
    'speak to one that is bound during the session',
    (w) => ['unix', w.lateUnixPath, 'unix-late'],
    heard('unix-late'),
    /bound outside during the session/,
  ),
  attack(
    'sockets.abstract',
    'unix-abstract',
    'speak to an abstract unix socket outside',
    (w) => ['unix', `\0${w.abstractName}`, 'abstract'],
    heard('abstract'),
  ),
];

const inspect = (name: string, tried: string, way: string, shows: Shows, ...which: ('address' | 'fd')[]): Attack =>
  attack(
    'processes.inspect',
    name,
    tried,
    (w) => [
      'to-process',
      w.watched?.pid,
      'native',
      w.watched && w.probes,
      way,
      w.watched?.pid,
      ...which.map((one) => w.watched?.[one]),
    ],
    shows,
  );
const processes: readonly Attack[] = [
  attack(
    'processes.signal',
    'kill',
    'end a process outside',
    (w) => ['to-process', w.killed, 'kill', w.killed],
    (w) => w.isKilled,
  ),
  attack(
    'processes.inspect',
    'read-environment',
    'read the environment of a process outside',
    (w) => ['to-process', w.watched?.pid, 'read', w.watched && `/proc/${w.watched.pid}/environ`],
    'canary',
  ),
  attack(
    'processes.inspect',
    'read-descriptor',
    'read a file that it has open',
    (w) => ['to-process', w.watched?.pid, 'read', w.watched && `/proc/${w.watched.pid}/fd/${w.watched.fd}`],
    'canary',
  ),
  inspect('read-memory', 'read its memory by /proc', 'procmem', 'canary', 'address'),
  inspect('read-memory-by-call', 'read its memory by process_vm_readv', 'vmread', 'canary', 'address'),
  inspect('take-descriptor', 'take its descriptor', 'pidfdgetfd', 'canary', 'fd'),
  inspect('ptrace', 'stop it with ptrace', 'ptrace', 'word'),
  inspect('perf', 'measure it', 'perf', 'word'),
  attack(
    'processes.end',
    'stay',
    'leave a process behind',
    (w) => ['stay', w.at('project', 'stay/mark')],
    (w) => w.stayed,
  ),
  attack(
    'terminal.input',
    'terminal-input',
    'type into a terminal (one of its own)',
    (w) => ['native', w.probes, 'owntty'],
    'word',
  ),
];

const native = (property: Property, name: string, tried: string, ...way: string[]): Attack =>
  attack(property, name, tried, (w) => ['native', w.probes, ...way], 'word');
const kernel: readonly Attack[] = [
  native('kernel.surface', 'user-namespace', 'make a user namespace by unshare', 'userns'),
  native('kernel.surface', 'user-namespace-clone', 'make one by clone3', 'userns3'),
  native('kernel.surface', 'io-uring', 'set up io_uring', 'uring', 'setup'),
  attack(
    'kernel.surface',
    'io-uring-read',
    'read the secret by io_uring',
    (w) => ['native', w.probes, 'uring', 'open', w.at('hidden', 'secret')],
    'canary',
  ),
  attack(
    'kernel.surface',
    'io-uring-socket',
    'speak to a unix socket by io_uring',
    (w) => ['native', w.probes, 'uring', 'unix', w.unixPath],
    heard('PROBE uring-unix'),
  ),
  native('kernel.surface', 'calls-32-bit', 'make a socket by a 32-bit call', 'int80'),
  native('kernel.surface', 'calls-x32', 'make a socket by an x32 call', 'x32'),
  native('kernel.surface', 'bpf', 'load a BPF program', 'bpf'),
  native('kernel.surface', 'userfaultfd', 'make a userfaultfd', 'userfaultfd'),
  attack(
    'privilege.none',
    'mount',
    'mount in a namespace of its own',
    (w) => ['native', w.probes, 'mount', w.at('project', 'stay')],
    'word',
  ),
  attack(
    'privilege.none',
    'unmount',
    'take the cover off the secret in a namespace of its own',
    (w) => ['native', w.probes, 'unmask', w.places.hidden, dirname(dirname(w.places.hidden)), w.at('hidden', 'secret')],
    'canary',
  ),
];

export const OTHERS: readonly Attack[] = [...network, ...processes, ...kernel];
