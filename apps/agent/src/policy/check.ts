// One policy looked at by itself.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { compile, diff, readPolicy } from '@nd7/policy';
import type { Change, CompileInput, Note } from '@nd7/policy';
import { CliError, type Io } from '../cli/io.js';
import { inputFor, told } from '../confine/ruleset.js';
import { homeOf } from './here.js';
import { projectOf } from '../confine/project.js';

/** A file as if it were the person's own policy. Throws CliError for what is wrong in it. */
export function checkFile(file: string, io: Io): { notes: Note[] } {
  const path = resolve(io.cwd, file);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new CliError(
      2,
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`,
      'Name a policy file.',
    );
  }
  const input = inputHere(io);
  return told(() => compile({ ...input, user: readPolicy(text, path, 'user') }));
}

/** The project's policy as it lies there. Throws CliError where there is none. */
export function projectPolicy(io: Io): { project: string; hash: string; isTrusted: boolean } {
  const { project, places } = inputHere(io);
  if (project === null)
    throw new CliError(2, `${places.project} has no policy`, 'A project’s policy is .nd7/policy.jsonc in it.');
  return { project: places.project, hash: project.policy.hash ?? '', isTrusted: project.trusted };
}

/** What the project's policy changes once it is trusted. */
export function whatTrustChanges(io: Io): Change[] {
  const input = inputHere(io);
  const { project } = input;
  if (project === null) return [];
  const as = (trusted: boolean) => told(() => compile({ ...input, project: { ...project, trusted } })).ruleset;
  return diff(as(false), as(true));
}

function inputHere(io: Io): CompileInput {
  const home = homeOf(io);
  return told(() =>
    inputFor({
      profile: null,
      program: '',
      home,
      project: projectOf(io.cwd, home),
      nd7Home: io.home,
      environment: io.env,
    }),
  );
}
