// Protected names where nobody refuses that they are made or changed: what they hold before the start and after the end.
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readlinkSync, statSync, type BigIntStats } from 'node:fs';
import { join } from 'node:path';
import { leafAt, type ProtectedLeaf, type Ruleset } from '@nd7/policy';
import { readWhole } from '../view/read-whole.js';
import { isClosed, isGitDir, scan, type Found } from '../view/scan.js';

/** What stands at a protected name. */
export interface LeafState {
  kind: 'file' | 'folder' | 'link' | 'other';
  /** Permission bits. */
  mode: number;
  /** Of a file: bytes, and SHA-256 in hex; null where it was too much to read, and times and inode are compared. */
  size?: number;
  sha256?: string | null;
  /** Of a link. */
  target?: string;
}

/** A protected name that is another after the end than before the start. `was` is null where it was made, `is` where it was taken away. */
export interface LeafChange {
  path: string;
  leaf: ProtectedLeaf;
  was: LeafState | null;
  is: LeafState | null;
  /** Contents of a mediated file, which a mediator compares by what they say; undefined for all others. */
  contents?: { before: Uint8Array | undefined; after: Uint8Array } | undefined;
}

/** What protected names held at one moment. */
export interface LeafRecord {
  entries: ReadonlyMap<string, LeafEntry>;
  /** Folders that were not searched, and names that were not looked at, because there are too many. */
  unseen: number;
  /** Folders and names that this user is kept from looking at: what is used by its name can stand there all the same. */
  closed: ReadonlySet<string>;
}

interface LeafEntry {
  leaf: ProtectedLeaf;
  state: LeafState;
  /** What a change of the file changes, whatever was done to hide it: the kernel sets the time of change. */
  identity: string;
  content?: Uint8Array;
}

/** What is looked at for one record: some 100 ms on a disk that has it in memory. */
export const LEAF_LIMITS = { names: 5_000, bytes: 64 << 20, file: 4 << 20 } as const;
/** Files of which some content is let through are small. */
const MOST_MEDIATED = 1 << 20;

type Limits = { -readonly [name in keyof typeof LEAF_LIMITS]: number };

/** Looks at all protected names of a ruleset. `found`: what a search has found; without it there is one. */
export function recordLeaves(
  ruleset: Ruleset,
  found: Pick<Found, 'leaves' | 'masked' | 'unseen' | 'closed'> = scan(ruleset),
  limits: Limits = { ...LEAF_LIMITS },
): LeafRecord {
  const looker = new Looker(limits, new Set(found.closed));
  for (const { path, leaf } of found.leaves) looker.look(path, leaf);
  // A name can be both, and of what is masked the search says no more.
  for (const path of found.masked) {
    const leaf = leafAt(ruleset.leaves, path, isGitDir);
    if (leaf !== undefined) looker.look(path, leaf);
  }
  return { entries: looker.entries, unseen: found.unseen.length + looker.unseen, closed: looker.closed };
}

interface Packed {
  unseen: number;
  closed: string[];
  entries: [path: string, leaf: number, state: LeafState, identity: string, content: string | null][];
}

/** A record as text, for who is to compare in another process: by the same ruleset, of which it names the rules. */
export function packLeaves({ entries, unseen, closed }: LeafRecord, { leaves }: Ruleset): string {
  const numbers = new Map(leaves.map((leaf, index) => [leaf, index]));
  const packed: Packed = {
    unseen,
    closed: [...closed],
    entries: [...entries].map(([path, { leaf, state, identity, content }]) => [
      ...([path, numbers.get(leaf) ?? -1, state, identity] as const),
      content === undefined ? null : Buffer.from(content).toString('base64'),
    ]),
  };
  return JSON.stringify(packed);
}

/** The same again. Entries of rules that the ruleset does not have are left out. */
export function unpackLeaves(text: string, { leaves }: Ruleset): LeafRecord {
  const { entries, unseen, closed } = JSON.parse(text) as Packed;
  const known = entries.flatMap(([path, index, state, identity, content]): [string, LeafEntry][] => {
    const leaf = leaves[index];
    if (leaf === undefined) return [];
    return [[path, { leaf, state, identity, ...(content !== null && { content: Buffer.from(content, 'base64') }) }]];
  });
  return { entries: new Map(known), unseen, closed: new Set(closed) };
}

/** What differs, in the order of the paths. */
export function compareLeaves(before: LeafRecord, after: LeafRecord): LeafChange[] {
  const paths = [...new Set([...before.entries.keys(), ...after.entries.keys()])].sort();
  return paths.flatMap((path) => {
    const [was, is] = [before.entries.get(path), after.entries.get(path)];
    const leaf = (is ?? was)?.leaf;
    if (leaf === undefined || (was !== undefined && is !== undefined && isSame(was, is))) return [];
    const contents = is?.content === undefined ? undefined : { before: was?.content, after: is.content };
    return [{ path, leaf, was: was?.state ?? null, is: is?.state ?? null, ...(contents && { contents }) }];
  });
}

function isSame(was: LeafEntry, is: LeafEntry): boolean {
  const { state: a } = was;
  const { state: b } = is;
  if (a.kind !== b.kind || a.mode !== b.mode || a.target !== b.target || a.size !== b.size) return false;
  return typeof a.sha256 === 'string' && typeof b.sha256 === 'string'
    ? a.sha256 === b.sha256
    : a.kind === 'folder' || a.kind === 'link' || was.identity === is.identity;
}

class Looker {
  readonly entries = new Map<string, LeafEntry>();
  unseen = 0;
  readonly #folders = new Set<string>();

  constructor(
    private readonly left: Limits,
    readonly closed: Set<string>,
  ) {}

  look(path: string, leaf: ProtectedLeaf): void {
    if (this.entries.has(path)) return;
    if (this.left.names <= 0) {
      this.unseen++;
      return;
    }
    const own = this.#stat(path);
    if (own === undefined) return;
    this.left.names--;
    // Whoever uses the name follows the link: what it leads to is what is run or trusted.
    const led = own.isSymbolicLink() ? follow(path) : own;
    if (own.isSymbolicLink()) this.entries.set(path, { leaf, state: linkState(path, own), identity: '' });
    if (led?.isDirectory() === true) this.#folder(path, leaf, own, led);
    else if (led !== undefined) this.#file(own.isSymbolicLink() ? `${path} →` : path, path, leaf, led);
  }

  #stat(path: string): BigIntStats | undefined {
    try {
      return lstatSync(path, { bigint: true, throwIfNoEntry: false });
    } catch {
      // Its folder can be listed and not entered, or it lies too deep.
      this.closed.add(path);
      return undefined;
    }
  }

  #folder(path: string, leaf: ProtectedLeaf, own: BigIntStats, led: BigIntStats): void {
    if (own === led) this.entries.set(path, { leaf, state: { kind: 'folder', mode: modeOf(led) }, identity: '' });
    const identity = identityOf(led);
    // A link can lead back up.
    if (!leaf.below || this.#folders.has(identity)) return;
    this.#folders.add(identity);
    for (const name of this.#namesOf(path)) this.look(join(path, name), leaf);
  }

  #namesOf(folder: string): string[] {
    try {
      return readdirSync(folder);
    } catch {
      if (isClosed(folder)) this.closed.add(folder);
      return [];
    }
  }

  #file(key: string, path: string, leaf: ProtectedLeaf, stat: BigIntStats): void {
    const isFile = stat.isFile();
    const size = Number(stat.size);
    const bytes = isFile && size <= this.left.file && size <= this.left.bytes ? readWhole(path, size) : undefined;
    this.left.bytes -= bytes?.length ?? 0;
    const sha256 = bytes === undefined ? null : createHash('sha256').update(bytes).digest('hex');
    const state: LeafState = {
      kind: isFile ? 'file' : 'other',
      mode: modeOf(stat),
      ...(isFile ? { size, sha256 } : {}),
    };
    const content = leaf.treatment === 'mediate' && size <= MOST_MEDIATED ? bytes : undefined;
    this.entries.set(key, { leaf, state, identity: identityOf(stat), ...(content && { content }) });
  }
}

const modeOf = (stat: BigIntStats): number => Number(stat.mode & 0o7777n);
const identityOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(' ');

function linkState(path: string, stat: BigIntStats): LeafState {
  try {
    return { kind: 'link', mode: modeOf(stat), target: readlinkSync(path) };
  } catch {
    return { kind: 'link', mode: modeOf(stat) };
  }
}

function follow(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // A circle, or what this user cannot reach.
    return undefined;
  }
}
