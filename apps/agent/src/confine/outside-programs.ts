// Programs that nd7 itself runs outside while a session lives: none that somebody inside may have put there.
import { readlinkSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { accessAt, type Ruleset } from '@nd7/policy';

/** A path with more links is none (path_resolution(7)). */
const MOST_LINKS = 40;

/** Whether a session may write to a path, to what it leads to, or to anything on the way there: folders and links, also those that lead nowhere yet. */
export function isOpenInside(path: string, ruleset: Ruleset): boolean {
  return onTheWay(path, MOST_LINKS).some((one) => accessAt(ruleset, one).write);
}

function onTheWay(path: string, links: number): string[] {
  const parts = path.split('/');
  const passed = ['/'];
  let at = '/';
  for (const [i, part] of parts.entries()) {
    // Links are followed where they stand: what lies above is real.
    at = part === '..' ? dirname(at) : join(at, part);
    passed.push(at);
    const target = links > 0 ? linkAt(at) : undefined;
    if (target === undefined) continue;
    const whole = isAbsolute(target) ? target : `${dirname(at)}/${target}`;
    return [...passed, ...onTheWay([whole, ...parts.slice(i + 1)].join('/'), links - 1)];
  }
  return passed;
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** Of the folders that programs are looked for in (as in PATH) those that a session cannot write to. */
export function closedFolders(searched: string, ruleset: Ruleset): string[] {
  return searched.split(delimiter).filter((folder) => isAbsolute(folder) && !isOpenInside(folder, ruleset));
}

/**
 * A command of a policy and its environment as it may run outside during a session: neither its program nor what that looks for by PATH lies where the
 * session may write. Throws an Error that says which does.
 */
export function commandOutside(
  command: readonly string[],
  environment: NodeJS.ProcessEnv,
  ruleset: Ruleset,
): NodeJS.ProcessEnv {
  const [program = ''] = command;
  if (program.includes('/') && (!isAbsolute(program) || isOpenInside(program, ruleset)))
    throw new Error(
      `the command ${program} is not run: ${isAbsolute(program) ? 'the session may write to it' : 'its path is not absolute'}`,
    );
  return { ...environment, PATH: closedFolders(environment['PATH'] ?? '', ruleset).join(delimiter) };
}
