import { realpathSync } from 'node:fs';
import { PolicyError, type CompileInput, type Note, type PolicyFile, type Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { loadPolicies } from '../policy/load.js';
import { safeLine } from '../show/safe.js';
import type { AgentName } from './attach-agent.js';
import { compiled } from './compiled.js';
import { namedByGit } from './git-named.js';

export interface RulesetRequest {
  /** Null: what the person's policy says, the default profile where it says nothing. */
  profile: string | null;
  /** The coding agent that is run, which brings its pack; undefined for any other program. */
  agent: AgentName | undefined;
  home: string;
  project: string;
  nd7Home: string;
  environment: NodeJS.ProcessEnv;
  /** The temporary folder as it is called inside; `/tmp` where the session has that to itself. */
  tmp?: string | undefined;
  /** What is said of this session alone; null or left out for nothing. */
  session?: PolicyFile | null;
  /** The tier that was asked for by name: T3 is then taken, where no policy but nd7’s own says how weak it may be. */
  tier?: string;
}

/** The ruleset of one session, from the policies on this machine, and what a person should know about them. */
export function rulesetFor(request: RulesetRequest): { ruleset: Ruleset; notes: Note[]; policies: CompileInput } {
  return told(() => {
    const policies = inputFor(request);
    return { ...compiled(policies), policies };
  });
}

/** The policies of one session. Throws PolicyError. */
export function inputFor(request: RulesetRequest): CompileInput {
  const variables = Object.fromEntries(
    Object.entries(request.environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const places = {
    home: realpathSync(request.home),
    project: realpathSync(request.project),
    tmp: request.tmp ?? '/tmp',
    nd7Home: request.nd7Home,
    variables,
  };
  // An agent's pack is called as the agent is.
  const packs = request.agent === undefined ? [] : [request.agent];
  const input = loadPolicies({ places, profile: request.profile, packs, session: request.session ?? null });
  const guarded = protecting(input, namedByGit(places.project, places.home));
  return request.tier === 'T3' ? acceptingT3(guarded) : guarded;
}

/** What git outside runs from the project is none of the session's, as if the command line said so: who wants it written names it for writing. */
function protecting(input: CompileInput, all: readonly string[]): CompileInput {
  if (all.length === 0) return input;
  const { reasons, project } = compiled(input).ruleset;
  const named = all.filter((path) => !isLetBe(reasons, path, project));
  const { session } = input;
  const said = session.policy ?? ofCommandLine();
  const { protect = {} } = said.document;
  const refuse = [...(protect.refuse ?? []), ...named];
  const policy = { ...said, document: { ...said.document, protect: { ...protect, refuse } } };
  return { ...input, session: { ...session, policy } };
}

/** Whether a policy of the person's names this very path for writing: more than the project as a whole. */
function isLetBe(reasons: Ruleset['reasons'], path: string, project: string): boolean {
  const said = reasons.find((node) => node.path === path);
  const whole = reasons.find((node) => node.path === project)?.why.write.text;
  const { layer, text } = said?.why.write ?? {};
  return (
    said?.access.write === true && text !== whole && (layer === 'user' || layer === 'session' || layer === 'grant')
  );
}

const ofCommandLine = (): PolicyFile => ({
  name: 'command line',
  file: null,
  hash: null,
  document: { nd7: 1 },
  lineOf: () => null,
});

/** Who names the tier accepts it for this session. Teams and projects that are not trusted narrow that, as they do everything. */
function acceptingT3(input: CompileInput): CompileInput {
  const { user, project, session, files } = input;
  const own = [user, project?.policy ?? null, ...files.values()];
  if (own.some((file) => file?.document.weakestTier !== undefined)) return input;
  const said = session.policy ?? ofCommandLine();
  return { ...input, session: { ...session, policy: { ...said, document: { ...said.document, weakestTier: 'T3' } } } };
}

/** What is wrong with a policy, as a command says it. */
export function told<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    const place = error.file === null ? '' : `${error.file}${error.line === null ? '' : `:${error.line}`}: `;
    // A project's policy is text that somebody else chose.
    throw new CliError(2, safeLine(`${place}${error.what}`), safeLine(error.mend), error.code);
  }
}
