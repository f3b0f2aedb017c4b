/**
 * The ruleset: a policy compiled for one session, as data. Every path is absolute and normal (no `.`, `..`, `//`, no trailing `/`), `~`,
 * the project and the temporary folder are put in, profiles and packs are spread out, layers are merged. It names what shall hold, not
 * how: `@nd7/confine` turns it into mounts, Landlock rules, filters and proxy lists for the kernel at hand, and says what it could not do.
 *
 * Nothing here is optional. An empty list means nothing: no path, no host, no variable. Paths are names, not inodes: symlinks are
 * resolved by who enforces (a rule holds for the name and for what it leads to at the start of the session).
 */
export interface Ruleset {
  version: 1;
  /** The folders that the policy's `~`, `.` and `$TMP` meant. */
  home: string;
  project: string;
  tmp: string;

  /**
   * The file view: parents before what lies under them, so that it can be mounted in this order. One node a path; each says the whole
   * access of its path and of everything below, down to the next node. The first node is always `/`.
   */
  files: FileNode[];
  /** The same with a node for every path that a rule names, also where its access is that of the folder above: for explaining only. */
  reasons: FileNode[];
  /** Names that are masked wherever they turn up in the folders named, whenever they are made. */
  masks: Mask[];
  /** Names in writable folders that something outside will run or trust later. */
  leaves: ProtectedLeaf[];
  /**
   * Writable folders that are made before the start where they are missing (0700): a missing folder cannot be bound. Only where a program of
   * one of the names is on PATH; null: always.
   */
  makeFolders: Sourced<{ path: string; ifPrograms: string[] | null }>[];
  /** Files to copy before the start where `to` is missing and `from` is there (an agent's state that moves with CLAUDE_CONFIG_DIR). */
  seeds: Sourced<{ from: string; to: string }>[];

  /** Unix sockets outside the session that may be connected to. */
  sockets: SocketGrant[];
  network: NetworkRules;
  environment: EnvironmentRules;

  /** `true`: `tmp` is a fresh folder of this session alone, gone when it ends. */
  privateTmp: boolean;
  /** Which mask of reads a tier without mounts gives: `strict` performs every read below a masked folder (slower), `names` refuses only the making of names. */
  patterns: 'strict' | 'names';
  /** The weakest tier that may be taken (`T1` is the strongest). */
  weakestTier: Tier;
  /** Properties without which the session must not start (exit 2). */
  required: Sourced<{ property: Property }>[];
  /** `required`: what cannot be recorded is not done. `best-effort`: it goes on and a gap entry tells. */
  recording: 'required' | 'best-effort';

  /** What went into this ruleset, strongest layer first. */
  layers: Layer[];
}

export type Tier = 'T1' | 'T2' | 'T3';

/** Who laid a rule down. docs/policy.md says who may widen whom: nobody widens `fixed` and `team`, an untrusted `project` only narrows. */
export type LayerName = 'team' | 'profile' | 'pack' | 'user' | 'project' | 'session' | 'grant' | 'fixed';

export interface Layer {
  layer: LayerName;
  /** `user`, `default`, `npm`, `claude-code`, a grant's id. */
  name: string;
  /** Where it was read from; null for what nd7 brings. */
  file: string | null;
  /** BLAKE3 of the file's bytes, 64 hex digits; null for what nd7 brings. */
  hash: string | null;
}

/** Which line of which policy a rule comes from. */
export interface Source {
  layer: LayerName;
  /** Name of the policy: `user`, `default`, `npm`, a grant's id. */
  policy: string;
  /** The policy file; null for what nd7 brings. */
  file: string | null;
  /** Line in that file, from 1; null for what nd7 brings. */
  line: number | null;
  /** The rule as its author wrote it: `files.read: ~/.ssh`. */
  text: string;
}

export type Sourced<T> = T & { source: Source };

/** The three rights of a path. `write` holds creating, renaming, removing, truncating and metadata; it never goes without `read`. */
export interface Access {
  read: boolean;
  write: boolean;
  exec: boolean;
}

/**
 * `read: false` hides the path: a folder is covered, a file is masked (EACCES to open, never an empty read). It is then neither written nor run.
 * Longest path wins, so deny, allow and deny nest to any depth.
 */
export interface FileNode {
  path: string;
  access: Access;
  /** The rule behind each of the three, inherited ones included. */
  why: { read: Source; write: Source; exec: Source };
}

/**
 * A masked name: neither it nor anything below it is read, written or run, whatever the file nodes say. `isMasked` compares, one path
 * component at a time; a folder in `under` is never itself masked.
 */
export interface Mask {
  /** Folders below which it holds; absolute. */
  under: string[];
  /** Components split at `/`; `**` alone is any number of them, `*` any run of characters in one: `secrets/*.pem`. */
  pattern: string;
  /** Patterns of the same form that are let out of this mask. */
  except: string[];
  /** Absolute paths that are let out, with everything below them: somebody who may has named them. */
  exceptPaths: string[];
  /** Below folders of these names it does not hold (`node_modules`). */
  notBelow: string[];
  /** Files that git tracks are let out (masking them breaks checkout, reset and stash; their content is in the object store anyway). */
  exceptTracked: boolean;
  source: Source;
}

export type LeafTreatment =
  /** Making, changing, renaming and removing fail with EACCES; the folder above cannot be renamed from under it. */
  | 'refuse'
  /** The change is made as far as the mediator lets it through, key by key; the rest fails or is held. */
  | 'mediate'
  /** Done, and recorded as deferred execution. */
  | 'record';

/** What reads a mediated file's old and new content and says which changes may pass. */
export type Mediator = 'git-config' | 'git-pointer' | 'claude-state';

/**
 * A protected name. A path is protected by the leaf whose match ends deepest in it; on a tie the stricter treatment holds. Names are
 * compared by `foldName`: case, Unicode form and characters that some file systems ignore make no difference.
 */
export interface ProtectedLeaf {
  /**
   * Where the pattern starts: `anywhere` at any depth below the folders in `under`; `git-dir` in a git directory below them, known by what
   * it holds (HEAD, objects, refs, or a commondir file), whatever its name; `folder` in the folders in `under` themselves.
   */
  at: 'anywhere' | 'git-dir' | 'folder';
  /** Absolute. */
  under: string[];
  /** Components split at `/`, with `*` in them; no `**`. `.claude`, `hooks`, `.github/hooks`, `.github/copilot*`. */
  pattern: string;
  /** Whether everything below the name is protected with it. */
  below: boolean;
  /** Below folders of these names it does not hold (`node_modules`); with `git-dir` it does in what is, or lies in, a `.git` there. */
  notBelow: string[];
  /** Absolute paths that are let out, with everything below them: the person has named them for writing. */
  exceptPaths: string[];
  treatment: LeafTreatment;
  /** Which mediator; null unless `treatment` is `mediate`. */
  mediator: Mediator | null;
  /** What runs or trusts it later, for people: `git runs it at the next commit`. */
  because: string;
  source: Source;
}

export interface SocketGrant {
  /** Absolute path of the socket; environment variables are put in by who compiles. */
  path: string;
  /** `ssh-agent`, `docker`, or the path where the socket has no name of its own. */
  name: string;
  /** What granting it means, in words; null where there is nothing to warn of. */
  warning: string | null;
  source: Source;
}

export interface PortRange {
  /** Both ends belong to it; 1 to 65535. */
  from: number;
  to: number;
}

/** The egress proxy lets nothing through that no rule names. */
export interface NetworkRules {
  /** The most specific rule decides (`decideHost`): an exact name before `*.b.c` before `*.c` before `*`, then fewer ports; on a tie a deny. */
  hosts: HostRule[];
  /** What must agree besides, each by itself: the team's policy, the project's. */
  bounds: HostBound[];
  /** Ports that a server inside may be reached on from the host. Binding inside the session's own network namespace is free in T1. */
  listen: Sourced<PortRange>[];
  /** Ports of the host's own loopback that may be connected to. */
  loopback: Sourced<PortRange>[];
  credentials: Credential[];
}

export interface HostRule {
  /** In the form of `parseHostPattern`: `api.example.com`, `*.example.com` (not example.com itself), `*`, or an IP literal in canonical spelling. */
  host: string;
  ports: PortRange;
  allow: boolean;
  /** A tunnel may carry anything. `false`: its first bytes must be a ClientHello with this very name (443 and others alike). */
  raw: boolean;
  /** Whether a name may resolve to private addresses (RFC 1918, ULA). Loopback, link-local and metadata addresses never. */
  privateAddresses: boolean;
  source: Source;
}

/** A second opinion on every host: the most specific of its rules must allow, and where none matches, `otherwise` says. */
export interface HostBound {
  layer: Layer;
  otherwise: 'allow' | 'deny';
  rules: HostRule[];
}

/** A secret that stays outside: the program inside sees a placeholder, the proxy puts the real one on. */
export interface Credential {
  name: string;
  /** Exact names to which it is sent, never a wildcard. */
  hosts: string[];
  /**
   * `endpoint`: a plain-HTTP listener in the session stands for `hosts[0]` and `variable` is set to its address; the proxy speaks TLS upstream.
   * `terminate`: the proxy ends TLS with the session's own CA for these hosts alone.
   */
  way: 'endpoint' | 'terminate';
  /** Header put on, and its value with `{}` where the secret goes: `authorization`, `Bearer {}`. The header as sent from inside is dropped. */
  header: string;
  value: string;
  /** Variable that points the client at the listener (`ANTHROPIC_BASE_URL`); null for `terminate`. */
  endpointVariable: string | null;
  /** Variable that holds a placeholder inside, so that the client starts (`ANTHROPIC_API_KEY`); null for none. */
  placeholderVariable: string | null;
  /** Where the real secret is read, outside, at the start and after a 401: never through a shell. */
  from: { variable: string } | { file: string } | { command: string[] };
  source: Source;
}

/** The environment inside, made from the one `nd7 run` was started with: only what `pass` names, less `unset`, then `set` on top. */
export interface EnvironmentRules {
  /** Name patterns (`*`); `*` alone passes everything that `unset` does not name. */
  pass: Sourced<{ pattern: string }>[];
  /** Name patterns that do not pass, whatever `pass` says, but for the names in `except`: secrets, and doors to sockets that are closed. */
  unset: Sourced<{ pattern: string; except: string[] }>[];
  set: Sourced<{ name: string; value: string }>[];
}

/** What a boundary can promise, one by one: the rows of the enforcement manifest and the words of `require`. */
export const PROPERTIES = {
  'files.write': 'nothing outside the writable folders is written, made, renamed or removed',
  'files.read': 'hidden paths are not read',
  'files.metadata': 'modes, owners, times and attributes outside the writable folders are not changed',
  'files.masks':
    'names that match a mask are not read, but for what git holds and what the session made itself where that is let out',
  'files.masks.host': 'the same for names that the host makes during the session',
  'files.leaves': 'protected names are not made or changed, present at the start or not',
  'files.exec': 'files in folders without the right are not run',
  'tmp.private': 'the temporary folder is the session’s own',
  'network.proxy': 'nothing leaves but through the egress proxy',
  'network.protocols': 'no UDP, raw, MPTCP, TCP fast open, vsock or netlink beyond the session',
  'network.loopback': 'services on the host’s loopback are not reached unless granted',
  'sockets.pathname': 'unix sockets outside the session are not connected to unless granted',
  'sockets.abstract': 'abstract unix sockets outside the session are not connected to',
  'processes.signal': 'processes outside are not signalled',
  'processes.inspect': 'processes outside are not traced or read',
  'processes.end': 'when the supervisor or the proxy dies, everything inside ends',
  'terminal.input': 'nothing is typed into the terminal on the person’s behalf',
  'ipc.memory': 'System V and POSIX shared memory, queues and semaphores of others are not reached',
  'kernel.surface': 'only listed system calls; no io_uring, bpf, keyrings, mounts, new namespaces',
  'privilege.none': 'no capability and no way to gain one',
  'observe.exec': 'every program started is recorded',
} as const;

export type Property = keyof typeof PROPERTIES;
