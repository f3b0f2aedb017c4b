import type { Property, Ruleset } from '@nd7/policy';
import type { Proof } from './launch.js';
import type { Built } from './view/build.js';

export type Status = 'full' | 'partial' | 'none';

/** One row of the enforcement manifest: what is promised, by what, and what was shown of it. */
export interface ManifestRow {
  property: Property;
  status: Status;
  /** What makes it hold; empty where nothing does. */
  provider: string;
  /** Rows of the self-test that bear on it. */
  proofs: Proof[];
  /** What it does not cover, where it is not full. */
  limit: string | undefined;
}

/** What a tier says of a property. */
export interface Promised {
  status: Status;
  /** What makes it hold; empty where nothing does. */
  provider: string;
  /** Names of the self-test's rows that bear on it. */
  proofs?: readonly string[];
  /** What it does not cover. */
  limit?: string;
}

/** What the supervisor of a session said that it can do here. */
export interface Supervised {
  /** Unix sockets are told apart: only those of the session and granted ones are connected to. */
  sockets: boolean;
  /** Masks are laid over names that are made. */
  masks: boolean;
}

const NO_SUPERVISOR =
  'this kernel lets no supervisor answer calls (Linux from 5.14 on does, where no container forbids it)';

/** What tier T1 gives where no supervisor performs calls. */
const T1: Readonly<Record<Property, Promised>> = {
  'files.write': { status: 'full', provider: 'read-only mounts, Landlock', proofs: ['write-outside'] },
  'files.read': { status: 'full', provider: 'covers in the mount view', proofs: ['read-hidden'] },
  'files.metadata': { status: 'full', provider: 'read-only mounts', proofs: ['mode-outside'] },
  'files.masks': {
    status: 'partial',
    provider: 'covers in the mount view',
    limit: `names that are made during the session are not masked: ${NO_SUPERVISOR}`,
  },
  'files.masks.host': {
    status: 'none',
    provider: '',
    limit: 'names that programs outside make during the session are not masked',
  },
  'files.leaves': {
    status: 'partial',
    provider: 'read-only mounts',
    limit: `names that do not exist at the start can be made: ${NO_SUPERVISOR}`,
  },
  'files.exec': { status: 'full', provider: 'noexec mounts' },
  'tmp.private': { status: 'full', provider: 'a tmpfs of the session' },
  'network.proxy': {
    status: 'full',
    provider: 'network namespace with nothing but loopback and the proxy’s listeners',
    proofs: ['tcp', 'udp', 'namespaces'],
  },
  'network.protocols': { status: 'full', provider: 'network namespace, call filter', proofs: ['udp', 'filter'] },
  'network.loopback': { status: 'full', provider: 'network namespace', proofs: ['tcp'] },
  'sockets.pathname': {
    status: 'partial',
    provider: 'covers in the mount view',
    limit: 'sockets that are bound outside during the session, in folders that can be read, can be connected to',
  },
  'sockets.abstract': { status: 'full', provider: 'network namespace, Landlock', proofs: ['abstract-socket'] },
  'processes.signal': { status: 'full', provider: 'pid namespace, Landlock', proofs: ['signal'] },
  'processes.inspect': { status: 'full', provider: 'pid namespace, Landlock', proofs: ['inspect'] },
  'processes.end': { status: 'full', provider: 'the first process of the pid namespace ends with the launcher' },
  'terminal.input': { status: 'full', provider: 'call filter', proofs: ['terminal-input'] },
  'ipc.memory': { status: 'full', provider: 'ipc namespace, /dev/shm of the session', proofs: ['namespaces'] },
  'kernel.surface': { status: 'full', provider: 'call filter', proofs: ['filter', 'io-uring', 'new-namespace'] },
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

/** What it gives besides with one. */
function supervisedRow(property: Property, { sockets, masks }: Supervised): Promised {
  if (property === 'files.leaves')
    return { status: 'full', provider: 'read-only mounts, supervisor', proofs: ['late-name'] };
  if (property === 'files.masks' && masks) return { status: 'full', provider: 'covers in the mount view, supervisor' };
  if (property === 'sockets.pathname' && sockets)
    return { status: 'full', provider: 'covers in the mount view, supervisor' };
  return T1[property];
}

/** What is known of programs where an agent's commands are run by the broker. */
export const BROKERED: Promised = {
  status: 'partial',
  provider: 'broker of the agent’s commands',
  limit: 'programs that are started in another way than by the agent’s shell are not recorded',
};

/**
 * The manifest of a session in tier T1, in the order of the properties. `supervised` is what its supervisor can do; undefined where there is
 * none. `isBrokered`: an agent's commands are run by the broker.
 */
export function manifest(
  ruleset: Ruleset,
  built: Built,
  proofs: readonly Proof[],
  supervised?: Supervised,
  isBrokered = false,
): ManifestRow[] {
  return (Object.keys(T1) as Property[]).map((property) => {
    const promised =
      property === 'observe.exec' && isBrokered ? BROKERED : narrowed(property, ruleset, built, supervised);
    return {
      property,
      status: promised.status,
      provider: promised.provider,
      proofs: proofs.filter(({ name }) => promised.proofs?.includes(name) === true),
      limit: promised.limit,
    };
  });
}

/** What this ruleset or this disk takes away from what the tier gives. */
function narrowed(property: Property, ruleset: Ruleset, built: Built, supervised: Supervised | undefined): Promised {
  const promised = supervised === undefined ? T1[property] : supervisedRow(property, supervised);
  const { shortfalls } = built;
  if (property === 'tmp.private' && !ruleset.privateTmp)
    return { status: 'none', provider: '', limit: 'the policy shares the temporary folder' };
  if (property === 'files.exec' && built.unrun.length > 0)
    return {
      status: 'partial',
      provider: 'noexec mounts, Landlock',
      limit: `programs in ${built.unrun.join(', ')} are not executed, but the loader (ld.so) can be told to run one`,
    };
  const unseen = shortfalls.filter(({ what }) => what === 'not searched').length;
  const unsearched = `${unseen} folders were not searched for them`;
  if (unseen > 0 && property === 'files.masks') return lessFull(promised, unsearched);
  if (unseen > 0 && property === 'files.leaves')
    return supervised === undefined
      ? lessFull(promised, unsearched)
      : { ...promised, limit: limits(promised.limit, `${unsearched}: there they can be removed, not made or changed`) };
  const [linked] = shortfalls.filter(({ what }) => what === 'protected, but it has other names');
  if (linked !== undefined && property === 'files.leaves')
    return lessFull(promised, `a protected file has another name, by which it can be changed: ${linked.path}`);
  const shared = ruleset.sockets.map(({ name }) => name);
  if (shared.length > 0 && property === 'sockets.pathname')
    return { ...promised, limit: limits(promised.limit, `granted: ${shared.join(', ')}`) };
  return promised;
}

function lessFull(promised: Promised, limit: string): Promised {
  return { ...promised, status: 'partial', limit: limits(promised.limit, limit) };
}

function limits(...all: (string | undefined)[]): string {
  return all.filter((limit) => limit !== undefined).join('; ');
}

/** Rows that the ruleset requires and that do not hold fully. */
export function missing(ruleset: Ruleset, rows: readonly ManifestRow[]): ManifestRow[] {
  const required = new Set(ruleset.required.map(({ property }) => property));
  return rows.filter(({ property, status }) => required.has(property) && status !== 'full');
}
