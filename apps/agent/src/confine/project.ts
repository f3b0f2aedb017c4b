import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CliError } from '../cli/io.js';

/**
 * The project of a working folder: the nearest folder above it that holds a `.git`, else the folder itself. A home folder is no project:
 * everything in it would be writable.
 */
export function projectOf(cwd: string, home: string): string {
  const [start, ceiling] = [realpathSync(cwd), realpathSync(home)];
  let project = start;
  for (let folder = start; folder !== '/' && folder !== ceiling; folder = dirname(folder))
    if (existsSync(join(folder, '.git'))) {
      project = folder;
      break;
    }
  if (project === '/' || ceiling === project || ceiling.startsWith(`${project}/`))
    throw new CliError(
      2,
      `${project} is no project: everything in your home folder would be writable inside`,
      'Change into the folder of a project first.',
    );
  return project;
}
