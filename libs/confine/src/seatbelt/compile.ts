import { comparePaths, isWithin, leafAt, type FileNode, type ProtectedLeaf, type Ruleset } from '@nd7/policy';
import { BASE } from './base.js';
import { any, less, Parameters, pathRegex, quoted, type Filter } from './expression.js';
import { foldedText, gitDirRegex, leafRegex, LINES, maskRegex } from './names.js';

/** What the disk says, on which the profile is to hold. */
export interface SeatbeltInput {
  ruleset: Ruleset;
  /** Where a path leads to, as far as there is something; the rest as it is. `/tmp` is `/private/tmp`. */
  realPath(path: string): string;
  kindOf(path: string): 'file' | 'folder' | undefined;
  /** Files that masks let out because git holds them. */
  heldByGit: readonly string[];
  /** The volume takes `A` and `a` for one. */
  foldsCase: boolean;
  /** nd7's own folder and the like: hidden whatever the ruleset says. */
  hide: readonly string[];
  /** Ports of this machine's loopback that may be connected to: the proxy's. */
  ports: readonly number[];
  /** A program that is run outside of the profile: the exec stub, which asks the broker. Absolute; undefined: none. */
  execExit: string | undefined;
  /** The session's terminal; undefined: none. */
  terminal: string | undefined;
}

export interface SeatbeltProfile {
  /** SBPL, version 1. */
  text: string;
  /** What its parameters stand for. */
  parameters: Readonly<Record<string, string>>;
}

type Right = keyof FileNode['access'];

/**
 * The ruleset as a Seatbelt profile. Everything is denied, and every rule allows: no two can contradict each other, and their order means
 * nothing. What is denied below something allowed stands in the rule that allows it.
 */
export function compileSeatbelt(input: SeatbeltInput): SeatbeltProfile {
  const parameters = new Parameters();
  const files = new Files(input, parameters);
  const { ports, terminal, execExit, ruleset } = input;
  const rules = [
    rule('file-read*', files.regions('read'), files.masks()),
    rule('file-write*', files.regions('write'), [...files.masks(), ...files.leaves(), ...files.held()]),
    rule('process-exec*', files.regions('exec'), files.masks()),
    rule('file-map-executable', files.regions('exec'), files.masks()),
    // The way to what is shown in a hidden folder: that it is there, and no more.
    rule('file-read-metadata', files.ways(), []),
    ...ports.map((port) => `(allow network-outbound (remote tcp "localhost:${String(port)}"))`),
    ...ruleset.sockets.map(({ path }) => `(allow network-outbound (literal ${parameters.of(input.realPath(path))}))`),
    ...(terminal === undefined
      ? []
      : [`(allow file-read* file-write-data file-ioctl (literal ${parameters.of(input.realPath(terminal))}))`]),
    ...(execExit === undefined
      ? []
      : [`(allow process-exec (literal ${parameters.of(input.realPath(execExit))}) (with no-sandbox))`]),
  ].filter((one) => one !== undefined);
  return { text: [...BASE, ...rules, ''].join('\n'), parameters: parameters.values };
}

function rule(operation: string, regions: readonly Filter[], except: readonly Filter[]): string | undefined {
  return regions.length === 0 ? undefined : `(allow ${operation} ${less(any(regions), except)})`;
}

class Files {
  /** Nodes by real path, folders before what lies in them; of two that lead to one path what both allow holds. */
  readonly #nodes: { path: string; access: FileNode['access'] }[];

  constructor(
    private readonly input: SeatbeltInput,
    private readonly parameters: Parameters,
  ) {
    const nodes = new Map<string, FileNode['access']>();
    const closed = { read: false, write: false, exec: false };
    const said = [
      ...input.ruleset.files.map(({ path, access }) => ({ path, access })),
      ...input.hide.map((path) => ({ path, access: closed })),
    ];
    for (const { path, access } of said) {
      const real = input.realPath(path);
      const known = nodes.get(real) ?? access;
      nodes.set(real, {
        read: known.read && access.read,
        write: known.write && access.write,
        exec: known.exec && access.exec,
      });
    }
    this.#nodes = [...nodes].map(([path, access]) => ({ path, access })).sort((a, b) => comparePaths(a.path, b.path));
  }

  /** Where a right holds: each folder that has it, less what lies in it and has it not. */
  regions(right: Right): Filter[] {
    return this.#changes(right, true).map((path) => {
      const closed = this.#changes(right, false).filter((other) => isWithin(other, path));
      const except = outermost(closed).flatMap((other) => this.#subpaths(other));
      return less(`(subpath ${this.parameters.of(path)})`, except);
    });
  }

  /** Nodes at which a right begins (`to`) or ends. */
  #changes(right: Right, to: boolean): string[] {
    const known = this.#known.get(`${right} ${String(to)}`) ?? this.#found(right, to);
    this.#known.set(`${right} ${String(to)}`, known);
    return known;
  }

  readonly #known = new Map<string, string[]>();

  #found(right: Right, to: boolean): string[] {
    return this.#nodes
      .filter(({ path, access }) => access[right] === to && this.#above(path)?.[right] !== to)
      .map(({ path }) => path)
      .filter((path) => to || path !== '/');
  }

  #above(path: string): FileNode['access'] | undefined {
    return this.#nodes.findLast((one) => one.path !== path && isWithin(path, one.path))?.access;
  }

  /** A closed place: what is not there yet may be made under another spelling of its name, on a volume that knows no case. */
  #subpaths(path: string): Filter[] {
    const plain = `(subpath ${this.parameters.of(path)})`;
    if (!this.input.foldsCase || this.input.kindOf(path) !== undefined) return [plain];
    const cut = path.lastIndexOf('/');
    return [
      plain,
      pathRegex(
        this.parameters.of(path.slice(0, cut)),
        `/${foldedText(path.slice(cut + 1).toLowerCase())}(/${LINES})?$`,
      ),
    ];
  }

  /** Folders above what may be read that may not be read themselves. */
  ways(): Filter[] {
    const found = new Set<string>();
    for (const path of this.#changes('read', true))
      for (let at = path; at !== '/'; at = at.slice(0, at.lastIndexOf('/')) || '/') if (at !== path) found.add(at);
    return [...found].sort(comparePaths).map((path) => `(literal ${this.parameters.of(path)})`);
  }

  /** What masks hide. */
  masks(): Filter[] {
    return this.input.ruleset.masks.flatMap((mask) => {
      const held = mask.exceptTracked ? this.input.heldByGit.map((path) => this.#literal(path)) : [];
      const [first, ...rest] = mask.pattern.split('/');
      // Where a pattern begins at its folder, what is let out of it is masked all the same: that is the stricter way.
      const cuts = first === '**' ? mask.exceptPaths : [];
      const regex = (parts: readonly string[]): string => maskRegex(parts.join('/'), mask.except, mask.notBelow);
      const whole = regex(mask.pattern.split('/'));
      const found = this.#matches(mask.under, cuts, whole, [whole, ...tails(rest).map(regex)]);
      return found.length === 0 ? [] : [less(any(found), held)];
    });
  }

  /** What protected names refuse. Nobody is there to mediate: what is mediated elsewhere is refused, but for an agent's own state, which has to change. */
  leaves(): Filter[] {
    const { leaves } = this.input.ruleset;
    const strict = leaves.filter(isStrict);
    const found = strict.map((leaf) => {
      // A deeper name that only records lets its one place out, as long as nothing deeper yet refuses.
      const recorded = leaves.filter((other) => !isStrict(other) && voiceOf(other) === voiceOf(leaf)).flatMap(placesOf);
      const lets = recorded.filter(
        (path) => leafAt([leaf], path) !== undefined && leafAt([{ ...leaf, below: false }], path) === undefined,
      );
      return { ...leaf, cuts: [...leaf.exceptPaths, ...lets] };
    });
    return [
      ...grouped(found).flatMap(([first, patterns]) => {
        const { at, under, below, notBelow, cuts } = first;
        const names = { at, below, notBelow };
        const rest = patterns.flatMap((pattern) => tails(pattern.split('/'))).map((parts) => parts.join('/'));
        const deeper = rest.length === 0 ? [] : [leafRegex({ ...names, at: 'folder', patterns: rest })];
        const regex = leafRegex({ ...names, patterns });
        return this.#matches(under, cuts, regex, at === 'folder' ? deeper : [regex, ...deeper]);
      }),
      ...this.#prefixes(strict),
      ...this.#ignored(strict),
    ];
  }

  /** Folders that names of several components begin with, and git directories: with one that is moved into their place all that lies in it would come. */
  #prefixes(leaves: readonly ProtectedLeaf[]): Filter[] {
    const found = grouped(leaves.map((leaf) => ({ ...leaf, cuts: [] }))).flatMap(
      ([{ at, under, notBelow }, patterns]) => {
        const starts = patterns.flatMap((pattern) => {
          const parts = pattern.split('/');
          return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'));
        });
        const regex =
          at === 'git-dir'
            ? gitDirRegex()
            : leafRegex({ at, notBelow, below: false, patterns: [...new Set(starts)].sort() });
        return at !== 'git-dir' && starts.length === 0
          ? []
          : this.#roots(under).map((root) => this.#below(root, regex));
      },
    );
    return [...new Set(found)];
  }

  /** Names with characters that some file systems do not see: `.g\u200cit` is `.git` to them. */
  #ignored(leaves: readonly ProtectedLeaf[]): Filter[] {
    return this.#roots(leaves.flatMap(({ under }) => under)).flatMap((root) => {
      const start = `"^" (regex-quote ${this.parameters.of(root === '/' ? '' : root)}) ${quoted(`/${LINES}`)}`;
      return IGNORED.map((c) => `(regex (string-append ${start} (regex-quote ${this.parameters.of(c)})))`);
    });
  }

  /** Writable folders themselves and those on the way to something closed in them: renamed, what they hold would be at no path that is closed. */
  held(): Filter[] {
    const { kindOf, ruleset, realPath } = this.input;
    const roots = this.#changes('write', true);
    const fixed = ruleset.leaves.filter(({ at }) => at === 'folder').flatMap(({ under }) => under.map(realPath));
    const closed = [
      ...this.#changes('write', false),
      ...this.#changes('read', false),
      ...fixed.map((path) => `${path}/x`),
    ];
    const found = new Set(roots.filter((path) => kindOf(path) !== 'file'));
    for (const path of closed)
      for (const root of roots.filter((one) => isWithin(path, one)))
        for (
          let at = path.slice(0, path.lastIndexOf('/'));
          isWithin(at, root) && at !== '';
          at = at.slice(0, at.lastIndexOf('/'))
        )
          found.add(at);
    return [...found].sort(comparePaths).map((path) => `(literal ${this.parameters.of(path)})`);
  }

  #roots(under: readonly string[]): string[] {
    return outermost(under.map((path) => this.input.realPath(path)));
  }

  #literal(path: string): Filter {
    return `(literal ${this.parameters.of(this.input.realPath(path))})`;
  }

  /** What matches below folders, but at and above `cuts`; in a cut what matches below it, `inside`. */
  #matches(under: readonly string[], cuts: readonly string[], regex: string, inside: readonly string[]): Filter[] {
    const places = outermost(cuts.map((cut) => this.input.realPath(cut)));
    return this.#roots(under).flatMap((folder) => {
      const within = places.filter((cut) => isWithin(cut, folder));
      const except = within.map((cut) => `(subpath ${this.parameters.of(cut)})`);
      return [
        less(this.#below(folder, regex), except),
        ...within.flatMap((cut) => inside.map((text) => this.#below(cut, text))),
      ];
    });
  }

  #below(folder: string, regex: string): Filter {
    return pathRegex(this.parameters.of(folder === '/' ? '' : folder), regex);
  }
}

type Cut = ProtectedLeaf & { cuts: readonly string[] };

/** Leaves that differ in their pattern alone, as one of them with the patterns of all. */
function grouped(leaves: readonly Cut[]): [Cut, string[]][] {
  const groups = new Map<string, [Cut, string[]]>();
  for (const leaf of leaves) {
    const key = JSON.stringify([leaf.at, leaf.under, leaf.below, leaf.notBelow, leaf.cuts]);
    const group = groups.get(key) ?? [leaf, []];
    group[1].push(leaf.pattern);
    groups.set(key, group);
  }
  return [...groups.values()];
}

const isStrict = ({ treatment, mediator }: ProtectedLeaf): boolean =>
  treatment === 'refuse' || (treatment === 'mediate' && mediator !== 'claude-state');

/** Those whose words stand for themselves, as `leafAt` has it. */
const voiceOf = ({ source: { layer } }: ProtectedLeaf): string =>
  layer === 'fixed' || layer === 'team' || layer === 'project' ? layer : 'person';

/** The one place that a leaf names, where it names one. */
const placesOf = ({ at, under, pattern }: ProtectedLeaf): string[] =>
  at === 'folder' && !pattern.includes('*') ? under.map((folder) => `${folder === '/' ? '' : folder}/${pattern}`) : [];

/** What is left of a pattern whose first components lie above a folder, whichever those are. */
const tails = (parts: readonly string[]): string[][] => parts.slice(1).map((_, i) => parts.slice(i + 1));

function outermost(paths: readonly string[]): string[] {
  const sorted = [...new Set(paths)].sort(comparePaths);
  return sorted.filter((path) => !sorted.some((other) => other !== path && isWithin(path, other)));
}

/** Characters that HFS+ leaves out of names when it compares them (git's CVE-2014-9390). */
const IGNORED = [
  ...[0x200c, 0x200d, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e],
  ...[0x206a, 0x206b, 0x206c, 0x206d, 0x206e, 0x206f, 0xfeff],
].map((code) => String.fromCodePoint(code));
