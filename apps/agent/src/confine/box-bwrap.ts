// The command line by which bubblewrap makes a box of a policy's files. What of it holds is bubblewrap's word.
import { existsSync, realpathSync, statSync } from 'node:fs';
import type { Shown } from '@nd7/confine';
import { isWithin, type Ruleset } from '@nd7/policy';

export interface BwrapInput {
  ruleset: Ruleset;
  /** nd7's own folder, hidden but for what is shown. */
  nd7Home: string;
  shows: readonly Shown[];
  cwd: string;
  /** A person's own arguments in place of the view that the policy makes; undefined: the policy's. */
  given: readonly string[] | undefined;
  /** What is run inside. */
  argv: readonly string[];
}

/** Made afresh inside, whatever the rules say of them. */
const OWN = ['/proc', '/dev', '/sys', '/run'];

/** Arguments of `bwrap`: the view, what nd7 shows in it, and no network. */
export function bwrapArguments({ ruleset, nd7Home, shows, cwd, given, argv }: BwrapInput): string[] {
  return [
    ...(given ?? viewOf(ruleset, nd7Home)),
    // Run by root, bubblewrap leaves root's rights to who is inside, and these take the view away.
    ...['--cap-drop', 'ALL', '--tmpfs', '/run'],
    ...shows.flatMap(({ path, source }) => ['--ro-bind', source, path]),
    // The way out is the door's sockets; the end of nd7 is the box's.
    ...['--unshare-net', '--unshare-pid', '--unshare-ipc', '--die-with-parent', '--chdir', cwd],
    '--',
    ...argv,
  ];
}

function viewOf(ruleset: Ruleset, nd7Home: string): string[] {
  const own = ruleset.privateTmp ? [ruleset.tmp, '/var/tmp'].filter((path) => existsSync(path)) : [];
  // A home in one of them is nobody else's, and what the rules say of it begins below.
  const inTmp = own.some((tmp) => isWithin(ruleset.home, tmp)) ? ['--ro-bind', ruleset.home, ruleset.home] : [];
  const nodes = ruleset.files.slice(1).flatMap(({ path, access }) => {
    const real = realOf(path);
    if (real === undefined || OWN.some((made) => isWithin(real, made))) return [];
    if (own.includes(real)) return [];
    if (access.read) return [access.write ? '--bind' : '--ro-bind', real, real];
    return statSync(real).isDirectory() ? ['--tmpfs', real] : ['--ro-bind', '/dev/null', real];
  });
  const home = realOf(nd7Home);
  return [
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...own.flatMap((path) => ['--tmpfs', path]),
    ...inTmp,
    ...nodes,
    ...(home === undefined ? [] : ['--tmpfs', home]),
  ];
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
