import type { Property, Ruleset } from '@nd7/policy';
import type { Proof } from '../launch.js';
import type { ManifestRow, Status } from '../manifest.js';

const NAMES_MOVED =
  'a folder that is moved out of packages takes protected names in it along, and hard links to protected files are not looked for';

const row = (status: Status, limit?: string, proofs: readonly string[] = []) => ({ status, limit, proofs });
/** Nobody who wrote this has seen it hold: what the start of each session shows is in the proofs. */
const FULL = (...proofs: string[]) => row('full', undefined, proofs);

const ROWS: Readonly<Record<Property, ReturnType<typeof row>>> = {
  'files.write': FULL('write-outside'),
  'files.read': FULL('read-hidden'),
  'files.metadata': FULL('write-outside'),
  'files.masks': FULL(),
  'files.masks.host': FULL(),
  'files.leaves': row('partial', NAMES_MOVED),
  'files.exec': FULL(),
  'tmp.private': row('partial', 'the temporary folder is the session’s own, but others of this user can go there'),
  'network.proxy': FULL('tcp'),
  'network.protocols': FULL(),
  'network.loopback': FULL('tcp'),
  'sockets.pathname': FULL(),
  'sockets.abstract': FULL(),
  'processes.signal': FULL('signal'),
  'processes.inspect': FULL(),
  'processes.end': row('none', 'what was started goes on when nd7 is killed; its way out is closed then'),
  'terminal.input': row('none', 'what is inside can type into the terminal (TIOCSTI)'),
  'ipc.memory': FULL(),
  'kernel.surface': row('none', 'all system calls can be made'),
  'privilege.none': row(
    'partial',
    'programs with the set-user-id bit are not started under a profile; rights of who starts nd7 as root stay',
  ),
  'observe.exec': row('none', 'programs that are started are not recorded by the kernel’s word'),
};

/** The manifest of a session on macOS. `hasTerminal`: a terminal is among the program's streams. */
export function seatbeltManifest(
  ruleset: Ruleset,
  proofs: readonly Proof[],
  hasTerminal: boolean,
  isRoot: boolean,
): ManifestRow[] {
  return (Object.keys(ROWS) as Property[]).map((property) => {
    const said = ROWS[property];
    const isOpen = (property === 'terminal.input' && !hasTerminal) || (property === 'privilege.none' && !isRoot);
    const { status, limit } = isOpen ? { status: 'full' as const, limit: undefined } : said;
    const shared = property === 'sockets.pathname' ? ruleset.sockets.map(({ name }) => name) : [];
    return {
      property,
      status,
      provider: status === 'none' ? '' : 'Seatbelt',
      proofs: proofs.filter(({ name }) => said.proofs.includes(name)),
      limit: shared.length > 0 ? `granted: ${shared.join(', ')}` : limit,
    };
  });
}
