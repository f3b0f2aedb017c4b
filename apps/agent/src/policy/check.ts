// One policy looked at by itself.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { compile, diff, readPolicy } from '@nd7/policy';
import type { Change, Note } from '@nd7/policy';
import { CliError, type Io } from '../cli/io.js';
import { told } from '../confine/ruleset.js';
import { policiesHere } from './here.js';

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
  const input = policiesHere(io, null, '');
  return told(() => compile({ ...input, user: readPolicy(text, path, 'user') }));
}

/**
 * The project's policy as it lies there, and what it changes once it is trusted: of one reading, so that what is trusted is what was shown.
 * Throws CliError where there is none.
 */
export function projectPolicy(io: Io): { project: string; hash: string; isTrusted: boolean; changes: Change[] } {
  const input = policiesHere(io, null, '');
  const { project, places } = input;
  if (project === null)
    throw new CliError(2, `${places.project} has no policy`, 'A project’s policy is .nd7/policy.jsonc in it.');
  const as = (trusted: boolean) => told(() => compile({ ...input, project: { ...project, trusted } })).ruleset;
  return {
    project: places.project,
    hash: project.policy.hash ?? '',
    isTrusted: project.trusted,
    changes: diff(as(false), as(true)),
  };
}
