// The policies of a session, read from where people keep them (docs/policy.md, "Files").
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesNamedBy, isBuiltin, PolicyError, readPolicy } from '@nd7/policy';
import type { CompileInput, Places, PolicyFile } from '@nd7/policy';
import { isShipError, readTeamPolicy } from '@nd7/ship';
import { isTrusted } from './trusted.js';

export interface PolicyRequest {
  places: Places;
  /** `--profile`: a name that nd7 brings, or that of a file in `$ND7_HOME/profiles`; null for what the person's policy extends. */
  profile: string | null;
  /** Packs that the program to run needs. */
  packs: readonly string[];
  /** What was said on the command line; null for nothing. */
  session: PolicyFile | null;
}

/** Larger than the language takes. */
const MAX_BYTES = 256 * 1024;

/**
 * Reads the person's policy and all that it extends, and the project's. Throws PolicyError, with file and line, for what cannot be read or
 * understood: a policy that is there is never passed over. The team's is verified each time; where this machine has seen one and it does not
 * stand, `bad-team`.
 */
export function loadPolicies(request: PolicyRequest): CompileInput {
  const { places } = request;
  const user = readFile(join(places.nd7Home, 'policy.jsonc'), 'user');
  const project = projectFile(places.project);
  const profile =
    request.profile === null || isBuiltin(request.profile) ? request.profile : `./profiles/${request.profile}.jsonc`;
  if (profile?.startsWith('./') === true && !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(request.profile ?? ''))
    throw new PolicyError(
      'unknown-name',
      `"${request.profile ?? ''}" is no name of a profile`,
      'Letters, digits, ".", "_" and "-".',
    );
  return {
    places,
    user,
    project:
      project === null
        ? null
        : { policy: project, trusted: isTrusted(places.nd7Home, places.project, project.hash ?? '') },
    team: teamPolicy(places.nd7Home),
    session: { profile, packs: request.packs, policy: request.session },
    grants: [],
    files: filesOf(places.nd7Home, [
      ...(user === null ? [] : filesNamedBy(user.document)),
      ...(profile === null ? [] : [profile]),
    ]),
  };
}

/** Null where this machine is not enrolled, or its team has no policy. */
function teamPolicy(home: string): PolicyFile | null {
  try {
    const held = readTeamPolicy(home);
    return held === undefined ? null : readPolicy(held.policy, held.file, 'team');
  } catch (error) {
    if (!isShipError(error)) throw error;
    const [what = '', ...mend] = error.message.split('. ');
    throw new PolicyError('bad-team', what, mend.join('. ') || 'Mend that: nothing starts without it.');
  }
}

/** A repository's `.nd7` may be a link as little as the file in it: what it leads to is not protected inside, and could be rewritten there. */
function projectFile(project: string): PolicyFile | null {
  const folder = join(project, '.nd7');
  if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    throw new PolicyError('bad-json', 'the folder of the policy is a link', 'Put the folder itself there.', folder);
  return readFile(join(folder, 'policy.jsonc'), 'project');
}

/** All files that are extended, by the names under which they are: below `$ND7_HOME`, whoever names them. */
function filesOf(home: string, names: readonly string[]): Map<string, PolicyFile> {
  const files = new Map<string, PolicyFile>();
  const open = names.filter((name) => name.startsWith('./'));
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (files.has(name)) continue;
    if (name.split('/').includes('..'))
      throw new PolicyError(
        'unknown-name',
        `"${name}" leads out of ${home}`,
        'Policies extend files beside them or below.',
      );
    const file = readFile(join(home, name), name);
    if (file === null) continue;
    files.set(name, file);
    open.push(...filesNamedBy(file.document));
  }
  return files;
}

/** Null where there is no such file. One that is a link, a folder or a pipe is refused: what was read must be what was looked at. */
function readFile(path: string, name: string): PolicyFile | null {
  const text = readText(path);
  return text === null ? null : readPolicy(text, path, name);
}

function readText(path: string): string | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new PolicyError(
      'bad-json',
      code === 'ELOOP' ? 'the policy is a link' : `the policy cannot be read (${code ?? 'error'})`,
      code === 'ELOOP' ? 'Put the file itself there.' : 'Mend its permissions, or take it away.',
      path,
    );
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.size > MAX_BYTES)
      throw new PolicyError(
        'bad-json',
        stat.isFile() ? 'the policy is too large' : 'the policy is no file',
        'A policy is a text of at most 64 KiB.',
        path,
      );
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}
