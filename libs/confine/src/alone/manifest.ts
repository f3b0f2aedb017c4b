import type { Property, Ruleset } from '@nd7/policy';
import type { BareBuilt } from '../bare/build.js';
import { rowsBy, type TierTable } from '../bare/rows.js';
import type { Proof } from '../launch.js';
import type { ManifestRow, Promised } from '../manifest.js';

const NOBODY_ASKED = 'nobody answers calls in tier T3';

/** What tier T3 gives with the newest Landlock that it makes use of (version 9). */
const FULL: Readonly<Record<Property, Promised>> = {
  'files.write': { status: 'full', provider: 'Landlock', proofs: ['write-outside'] },
  'files.read': {
    status: 'full',
    provider: 'Landlock',
    proofs: ['read-hidden'],
    limit: 'what hidden files hold is not read; their names, sizes and times can be seen',
  },
  'files.metadata': {
    status: 'none',
    provider: '',
    limit: `modes and times of this user’s files can be changed anywhere: ${NOBODY_ASKED}. Attributes and access lists are refused by the call filter`,
  },
  'files.masks': {
    status: 'partial',
    provider: 'Landlock',
    limit: 'names that are made during the session are not masked in writable folders',
  },
  'files.masks.host': {
    status: 'none',
    provider: '',
    limit: 'names that programs outside make during the session are not masked',
  },
  'files.leaves': {
    status: 'none',
    provider: 'hashes before the start and after the end',
    limit: `protected names are made and changed, and that is recorded and told when the session has ended: ${NOBODY_ASKED}`,
  },
  'files.exec': {
    status: 'partial',
    provider: 'Landlock',
    limit: 'programs there are not executed, but the loader (ld.so) can be told to run one',
  },
  'tmp.private': {
    status: 'full',
    provider: 'a folder of the session, named by TMPDIR; the machine’s /tmp is closed',
  },
  'network.proxy': {
    status: 'partial',
    provider: 'Landlock, by ports alone',
    proofs: ['tcp', 'udp'],
    limit:
      'any address is connected to at the proxy’s port and at those that this machine gives to servers (net.ipv4.ip_local_port_range): who waits there is reached, and nothing of it is recorded',
  },
  'network.protocols': { status: 'full', provider: 'call filter', proofs: ['udp', 'filter'] },
  'network.loopback': {
    status: 'none',
    provider: '',
    limit:
      'servers inside listen where they say, for other machines too; servers of this machine are connected to at the ports that it gives to servers',
  },
  'sockets.pathname': {
    status: 'full',
    provider: 'Landlock, which lets those be connected to that the session has bound',
    proofs: ['pathname-socket'],
  },
  'sockets.abstract': { status: 'full', provider: 'Landlock', proofs: ['abstract-socket'] },
  'processes.signal': { status: 'full', provider: 'Landlock', proofs: ['signal'] },
  'processes.inspect': {
    status: 'full',
    provider: 'Landlock',
    proofs: ['inspect'],
    limit: 'which processes there are, and their command lines, can be seen',
  },
  'processes.end': {
    status: 'full',
    provider: 'one signal to all of the Landlock domain, from two processes above it',
  },
  'terminal.input': {
    status: 'full',
    provider: 'call filter; Landlock, which lets no terminal be opened but the session’s own',
    proofs: ['terminal-input'],
    limit: 'new terminals inside are given to who asks by their master (openpty), and opened by nobody by their name',
  },
  'ipc.memory': {
    status: 'partial',
    provider: 'call filter',
    limit: 'what this user’s programs share in /dev/shm is read and changed: semaphores inside are made there',
  },
  'kernel.surface': { status: 'full', provider: 'call filter', proofs: ['filter', 'io-uring'] },
  'privilege.none': {
    status: 'full',
    provider: 'no capabilities, no new privileges',
    proofs: ['capabilities', 'no-new-privileges'],
  },
  'observe.exec': {
    status: 'none',
    provider: '',
    limit: 'programs that are started are not recorded by the kernel’s word',
  },
};

/** What an older Landlock takes from that: rows by the version that they need. */
const NEEDS: TierTable['needs'] = [
  {
    abi: 9,
    property: 'sockets.pathname',
    promised: {
      status: 'full',
      provider: 'call filter, which lets no unix socket be made but in pairs',
      proofs: ['pathname-socket'],
      limit: 'servers inside have none either (Landlock before version 9)',
    },
  },
  {
    abi: 9,
    property: 'sockets.abstract',
    promised: { status: 'full', provider: 'call filter', proofs: ['abstract-socket'] },
  },
  {
    abi: 6,
    property: 'processes.end',
    promised: {
      status: 'partial',
      provider: 'all below the session’s first process are stopped, then killed, until none is left',
      limit:
        'one process after the other: many that multiply at once can outrun it for a while (Landlock before version 6)',
    },
  },
  {
    abi: 6,
    property: 'processes.signal',
    promised: {
      status: 'none',
      provider: '',
      limit: 'this user’s other processes can be signalled (Landlock before version 6)',
    },
  },
  {
    abi: 4,
    property: 'network.proxy',
    promised: {
      status: 'full',
      provider: 'call filter, which lets no socket of the internet be made',
      proofs: ['tcp', 'udp'],
      limit: 'the proxy is not reached either: there is no network (Landlock before version 4)',
    },
  },
  {
    abi: 4,
    property: 'network.loopback',
    promised: {
      status: 'full',
      provider: 'call filter, which lets no socket of the internet be made',
      proofs: ['tcp'],
      limit: 'servers inside have none either (Landlock before version 4)',
    },
  },
  {
    abi: 3,
    property: 'files.write',
    promised: {
      status: 'full',
      provider: 'Landlock, call filter',
      proofs: ['write-outside'],
      limit: 'that files are not cut short is the call filter’s alone (Landlock before version 3)',
    },
  },
];

/** Properties that the tier by its nature does not give in full: who takes the tier does without them. */
export const NOT_OF_T3: readonly Property[] = (Object.keys(FULL) as Property[]).filter(
  (property) => FULL[property].status !== 'full',
);

const T3: TierTable = {
  full: FULL,
  needs: NEEDS,
  readsBy: 'Landlock',
  open: (path) => `what is hidden in writable folders can be read and changed, as ${path}`,
  searched: ['files.masks', 'files.leaves'],
  granted: (names) => `not given, though granted: ${names}`,
};

/** The same row where the kernel or a container lets nobody answer the one call that is asked about. */
const NO_TERMINALS: Promised = {
  ...FULL['terminal.input'],
  limit: 'new terminals inside (script, tmux) have none to open: nobody can be asked about a call here',
};

/**
 * The manifest of a session in tier T3, in the order of the properties, with the version of Landlock that is used. `hasTerminals`: somebody
 * answers where a program has made a terminal.
 */
export function aloneManifest(
  ruleset: Ruleset,
  built: BareBuilt,
  proofs: readonly Proof[],
  landlock: number,
  hasTerminals: boolean,
): ManifestRow[] {
  const instead = hasTerminals ? {} : { 'terminal.input': NO_TERMINALS };
  return rowsBy(T3, { ruleset, built, proofs, landlock, instead });
}
