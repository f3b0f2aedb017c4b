// The rules that `nd7 run` would start with in this folder.
import { basename } from 'node:path';
import { compile } from '@nd7/policy';
import type { CompileInput, Note, Ruleset } from '@nd7/policy';
import { CliError, type Io } from '../cli/io.js';
import type { AgentName } from '../confine/attach-agent.js';
import { projectOf } from '../confine/project.js';
import { inputFor, told } from '../confine/ruleset.js';

/** The person's home folder. Throws CliError where HOME is not set. */
export function homeOf(io: Io): string {
  const home = io.env['HOME'];
  if (home === undefined || home === '') throw new CliError(2, 'HOME is not set', 'Set it to your home folder.');
  return home;
}

/** Programs that somebody asks about, by the names they are called with; `nd7 run` looks at the file. */
const AGENTS: Readonly<Record<string, AgentName | undefined>> = { claude: 'claude-code', codex: 'codex' };

/** The policies that meet here. `program`: the one that would be run; '' for none in particular. */
export function policiesHere(io: Io, profile: string | null, program: string): CompileInput {
  const home = homeOf(io);
  return told(() =>
    inputFor({
      profile,
      agent: AGENTS[basename(program)],
      home,
      project: projectOf(io.cwd, home),
      nd7Home: io.home,
      environment: io.env,
    }),
  );
}

export function rulesetHere(io: Io, profile: string | null, program: string): { ruleset: Ruleset; notes: Note[] } {
  return told(() => compile(policiesHere(io, profile, program)));
}
