import type { Property, Ruleset } from '@nd7/policy';
import type { Proof } from '../launch.js';
import { BROKERED, type ManifestRow, type Promised } from '../manifest.js';
import type { BareBuilt } from './build.js';
import { rowsBy, type TierTable } from './rows.js';

/** What tier T2 gives with the newest Landlock. */
const FULL: Readonly<Record<Property, Promised>> = {
  'files.write': { status: 'full', provider: 'Landlock, supervisor', proofs: ['write-outside'] },
  'files.read': {
    status: 'full',
    provider: 'Landlock',
    proofs: ['read-hidden'],
    limit: 'what hidden files hold is not read; their names, sizes and times can be seen',
  },
  'files.metadata': { status: 'full', provider: 'supervisor', proofs: ['mode-outside'] },
  'files.masks': { status: 'full', provider: 'Landlock, supervisor' },
  'files.masks.host': {
    status: 'none',
    provider: '',
    limit: 'names that programs outside make during the session are not masked',
  },
  'files.leaves': { status: 'full', provider: 'supervisor', proofs: ['late-name'] },
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
    status: 'full',
    provider: 'supervisor, which makes the connections; Landlock',
    proofs: ['tcp', 'udp'],
  },
  'network.protocols': { status: 'full', provider: 'call filter', proofs: ['udp', 'filter'] },
  'network.loopback': {
    status: 'partial',
    provider: 'supervisor',
    proofs: ['tcp'],
    limit: 'servers inside listen on this machine’s own loopback: whoever is on this machine reaches them',
  },
  'sockets.pathname': { status: 'full', provider: 'supervisor' },
  'sockets.abstract': { status: 'full', provider: 'supervisor, Landlock', proofs: ['abstract-socket'] },
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
  'terminal.input': { status: 'full', provider: 'call filter', proofs: ['terminal-input'] },
  'ipc.memory': { status: 'full', provider: 'call filter; a folder of the session in place of /dev/shm' },
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
      status: 'full',
      provider: 'supervisor',
      proofs: ['signal'],
      limit: 'groups and descriptors of processes are not signalled (Landlock before version 6)',
    },
  },
  {
    abi: 6,
    property: 'sockets.abstract',
    promised: { status: 'full', provider: 'supervisor', proofs: ['abstract-socket'] },
  },
  {
    abi: 4,
    property: 'network.proxy',
    promised: {
      status: 'full',
      provider: 'supervisor, which makes the connections',
      proofs: ['tcp', 'udp'],
      limit: 'no second layer under it (Landlock before version 4)',
    },
  },
  {
    abi: 3,
    property: 'files.write',
    promised: {
      status: 'full',
      provider: 'Landlock, supervisor',
      proofs: ['write-outside'],
      limit: 'that files are not cut short is the supervisor’s alone (Landlock before version 3)',
    },
  },
];

const T2: TierTable = {
  full: FULL,
  needs: NEEDS,
  readsBy: 'Landlock; in writable folders the supervisor, which opens what is read',
  open: (path) =>
    `in writable folders they can be read, as ${path}: "patterns": "strict" in your policy has every open there asked about`,
  searched: ['files.masks'],
  granted: (names) => `granted: ${names}`,
};

/** The manifest of a session in tier T2, in the order of the properties, with the version of Landlock that is used. `isBrokered`: an agent's commands are run by the broker. */
export function bareManifest(
  ruleset: Ruleset,
  built: BareBuilt,
  proofs: readonly Proof[],
  landlock: number,
  isBrokered = false,
): ManifestRow[] {
  const instead = isBrokered ? { 'observe.exec': BROKERED } : {};
  return rowsBy(T2, { ruleset, built, proofs, landlock, instead });
}
