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
  /** Whether a standard stream is a terminal, whose Ctrl-C and job control the program then has. */
  isTerminal: boolean;
  /** The descriptor of a call filter; undefined for none. */
  filter: number | undefined;
}

/** Made afresh inside, whatever the rules say of them. */
const OWN = ['/proc', '/dev', '/sys', '/run'];

/** Arguments of `bwrap`: the view, what nd7 shows in it, and no network. */
export function bwrapArguments(input: BwrapInput): string[] {
  const { ruleset, nd7Home, shows, cwd, given, argv, isTerminal, filter } = input;
  const home = realOf(nd7Home);
  return [
    ...(given ?? viewOf(ruleset)),
    // In a person's own view as well: keys, records and the sockets by which sessions are widened lie there.
    ...(home === undefined ? [] : ['--tmpfs', home]),
    // Run by root, bubblewrap leaves root's rights to who is inside, and these take the view away.
    ...['--cap-drop', 'ALL', '--tmpfs', '/run'],
    ...shows.flatMap(({ path, source }) => ['--ro-bind', source, path]),
    // The way out is the door's sockets; the end of nd7 is the box's.
    ...['--unshare-net', '--unshare-pid', '--unshare-ipc', '--as-pid-1', '--die-with-parent'],
    // Who has a terminal types on it.
    ...(filter === undefined ? [] : ['--seccomp', String(filter)]),
    ...(isTerminal ? [] : ['--new-session']),
    ...['--chdir', cwd],
    '--',
    ...argv,
  ];
}

function viewOf(ruleset: Ruleset): string[] {
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
  return [
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...own.flatMap((path) => ['--tmpfs', path]),
    ...inTmp,
    ...nodes,
  ];
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
