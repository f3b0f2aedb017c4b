import { BUILTINS } from './builtin/index.js';
import type { PolicyDocument } from './document.js';
import { PolicyError } from './failure.js';
import type { Places } from './path.js';
import { builtinPolicy } from './read.js';
import type { PolicyFile } from './read.js';
import type { Layer, LayerName, Source } from './ruleset.js';

/** What goes into a ruleset. Files are read by the caller; `extends` says which (`filesNamedBy`). */
export interface CompileInput {
  places: Places;
  /** The person's own policy; null where there is none, which means `{"nd7": 1}`: the default profile. */
  user: PolicyFile | null;
  /** The project's policy. Unless `trusted` (the person has accepted its hash), it only narrows. */
  project: { policy: PolicyFile; trusted: boolean } | null;
  /** The team's policy, whose signature the caller has checked. Nothing below it is loosened by anybody. */
  team: PolicyFile | null;
  session: {
    /** `--profile`: in place of what the person's policy extends. */
    profile: string | null;
    /** Packs that the program to run needs, `claude-code`; unless the person's policy switches them off. */
    packs: readonly string[];
    /** `--allow …` and the like; null for none. */
    policy: PolicyFile | null;
  };
  /** Grants in force, oldest first; a grant is a small policy. */
  grants: readonly PolicyFile[];
  /** Files that policies extend, by the name as written there. */
  files: ReadonlyMap<string, PolicyFile>;
}

/** One policy in its place among the others. */
export interface Part {
  layer: Layer;
  document: PolicyDocument;
  /** Who stands above whom; compares names and patterns that have been named exactly. */
  group: Group;
  /** Nearer policies win where two rules are equally specific: by group, then who extends before what is extended. */
  rank: number;
  source: (path: readonly (string | number)[], rule: string) => Source;
}

/** Who may say what over whom. */
export const GROUP = { base: 0, team: 1, project: 2, user: 3, session: 4, grant: 5 } as const;
export type Group = (typeof GROUP)[keyof typeof GROUP];

export interface Parts {
  /** Policies whose rules may allow: together they are one set of rules. */
  pool: Part[];
  /** Policies that each must agree besides: their denials hold whatever the pool allows. The parts in `over` may say otherwise. */
  bounds: { part: Part; over: Part[] }[];
  /** The project's policy where it is not trusted: what it allows is only asked for. */
  asking: Part | null;
}

/** Rules of extension: longer chains are somebody's mistake. */
const MAX_LEVELS = 8;

/** Names in `extends` that are files beside the policy and not something that nd7 brings. */
export function filesNamedBy(document: PolicyDocument): string[] {
  return (document.extends ?? []).filter((name) => isFileName(name));
}

/** Whether nd7 brings a profile or pack of this name. */
export function isBuiltin(name: string): boolean {
  return BUILTINS.has(name);
}

function isFileName(name: string): boolean {
  return name.startsWith('./');
}

/** Brings all policies that take part into their order. */
export function partsOf(input: CompileInput): Parts {
  const { user, team, project, session } = input;
  const own = user ?? builtinPolicy('user', { nd7: 1 });
  const off = switches(own.document, project?.trusted === true ? project.policy.document : null);
  const closure = new Closure(input.files, off);
  for (const name of session.profile === null ? (own.document.extends ?? ['default']) : [session.profile])
    closure.add(name, own, true);
  for (const [name, on] of Object.entries(off)) if (on) closure.add(name, own, false);
  for (const name of session.packs) closure.add(name, own, false);
  if (project?.trusted === true)
    for (const name of project.policy.document.extends ?? []) closure.add(name, project.policy, false);
  for (const name of team?.document.extends ?? []) closure.add(name, team as PolicyFile, false);

  const above = [
    ...(session.policy === null ? [] : [partOf(session.policy, 'session', GROUP.session)]),
    ...input.grants.map((grant) => partOf(grant, 'grant', GROUP.grant)),
  ];
  const userPart = partOf(own, 'user', GROUP.user);
  const teamPart = team === null ? null : partOf(team, 'team', GROUP.team);
  const projectPart = project === null ? null : partOf(project.policy, 'project', GROUP.project);
  const trusted = project?.trusted === true;
  return {
    pool: [...closure.parts(), ...some(teamPart), ...(trusted ? some(projectPart) : []), userPart, ...above],
    bounds: [
      { part: fixedPart(), over: [] },
      ...some(teamPart).map((part) => ({ part, over: [] })),
      ...some(projectPart).map((part) => ({ part, over: above })),
    ],
    asking: trusted ? null : projectPart,
  };
}

function some<T>(value: T | null): T[] {
  return value === null ? [] : [value];
}

/** Packs that a person, or a project the person trusts, has switched; the person's word is the last. */
function switches(user: PolicyDocument, project: PolicyDocument | null): Record<string, boolean> {
  const all = { ...project?.packs, ...user.packs };
  for (const name of Object.keys(all)) if (BUILTINS.get(name)?.layer !== 'pack') throw unknownName(name, 'pack');
  return all;
}

/** What is hidden and held whatever anybody says: nd7's own home. */
function fixedPart(): Part {
  const policy = builtinPolicy('nd7', {
    nd7: 1,
    files: { read: { deny: ['$ND7_HOME'] } },
    protect: { refuse: ['.nd7'] },
  });
  return partOf(policy, 'fixed', GROUP.grant);
}

function partOf(policy: PolicyFile, layer: LayerName, group: Group, level = MAX_LEVELS + 1): Part {
  return {
    layer: { layer, name: policy.name, file: policy.file, hash: policy.hash },
    document: policy.document,
    group,
    rank: group * (MAX_LEVELS + 2) + level,
    source: (path, rule) => ({
      layer,
      policy: policy.name,
      file: policy.file,
      line: policy.lineOf(path),
      text: `${path.filter((step) => typeof step === 'string').join('.')}: ${rule}`,
    }),
  };
}

/** Everything that policies extend, each once; one that extends another stands above it. */
class Closure {
  private readonly found = new Map<string, { level: number; part: Part }>();

  constructor(
    private readonly files: ReadonlyMap<string, PolicyFile>,
    private readonly switched: Readonly<Record<string, boolean>>,
  ) {}

  /** `files`: whether the policy that extends may name files: only the person's own may. */
  add(name: string, by: PolicyFile, files: boolean, chain: readonly string[] = []): number {
    if (this.switched[name] === false) return 0;
    if (chain.includes(name) || chain.length > MAX_LEVELS)
      throw new PolicyError(
        'cycle',
        `"${[...chain, name].join('" extends "')}"`,
        'A policy cannot build on itself.',
        by.file,
        by.lineOf(['extends']),
      );
    const known = this.found.get(name);
    if (known !== undefined) return known.level;
    const policy = this.policyOf(name, by, files);
    const levels = (policy.document.extends ?? []).map((next) => this.add(next, policy, files, [...chain, name]));
    const level = 1 + Math.max(-1, ...levels);
    const layer = BUILTINS.get(name)?.layer ?? 'user';
    const part = partOf(policy, layer, layer === 'user' ? GROUP.user : GROUP.base, level);
    this.found.set(name, { level, part });
    return level;
  }

  parts(): Part[] {
    return [...this.found.values()].map(({ part }) => part);
  }

  private policyOf(name: string, by: PolicyFile, files: boolean): PolicyFile {
    const builtin = BUILTINS.get(name);
    if (builtin !== undefined) return builtinPolicy(name, builtin.document);
    const line = by.lineOf(['extends']);
    if (!isFileName(name)) throw unknownName(name, 'profile or pack').at(by.file, line);
    if (!files)
      throw new PolicyError(
        'unknown-name',
        `"${name}" is a file`,
        'Only your own policy may extend files.',
        by.file,
        line,
      );
    const file = this.files.get(name);
    if (file === undefined)
      throw new PolicyError(
        'unknown-name',
        `"${name}" was not found`,
        'Write the file, or take it out of "extends".',
        by.file,
        line,
      );
    return file;
  }
}

function unknownName(name: string, what: string): PolicyError {
  return new PolicyError(
    'unknown-name',
    `no ${what} is called "${name}"`,
    `There are ${[...BUILTINS.keys()].join(', ')}; files begin with ./`,
  );
}
