import { existsSync, readFileSync } from 'node:fs';
import type { LaunchFailure } from './launch.js';

/** What went wrong in words for a person, and what to do about it on this system. */
export interface Advice {
  message: string;
  hint: string;
}

const EPERM = 1;
const ENOSPC = 28;

/** Reads a small file, undefined where it is not there. */
function read(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

/** How this system refuses namespaces to ordinary users, if one of the known ways is in force. */
export function namespaceRefusal(
  sysctl = (name: string) => read(`/proc/sys/${name.replaceAll('.', '/')}`),
): string | undefined {
  if (sysctl('kernel.apparmor_restrict_unprivileged_userns') === '1')
    return (
      'AppArmor lets only programs with a profile make user namespaces (Ubuntu 24.04 and later): an administrator adds a profile with ' +
      '`userns,` for nd7-launch under /etc/apparmor.d, or sets kernel.apparmor_restrict_unprivileged_userns=0.'
    );
  if (sysctl('kernel.unprivileged_userns_clone') === '0')
    return 'An administrator allows user namespaces: sysctl -w kernel.unprivileged_userns_clone=1.';
  if (sysctl('user.max_user_namespaces') === '0')
    return 'An administrator allows user namespaces: sysctl -w user.max_user_namespaces=15000.';
  if (existsSync('/.dockerenv') || existsSync('/run/.containerenv'))
    return 'The container refuses namespaces: run nd7 outside of it, or start it with a seccomp profile that allows unshare and mount, and an unmasked /proc.';
  return undefined;
}

/** Words for a failure of the launcher. */
export function adviceFor(failure: LaunchFailure): Advice {
  const { step, what, error } = failure;
  const cause = `${what}${error === 0 ? '' : ` (errno ${error})`}`;
  switch (step) {
    case 'launcher':
      return {
        message: `the launcher could not be started: ${what}`,
        hint: 'It is built with a C compiler: node native/launch/build.mjs.',
      };
    case 'plan':
      return {
        message: `the launcher does not take what it was told: ${what}`,
        hint: 'It was perhaps built from other sources than these: node native/launch/build.mjs.',
      };
    case 'streams':
      return {
        message: `${what}: through it a program inside would reach what is hidden`,
        hint: 'Give it a file or /dev/null.',
      };
    case 'trust':
      return {
        message: `the launcher does not trust its own files: ${what}`,
        hint: 'Nobody but you and root may be able to change them.',
      };
    case 'namespaces':
    case 'maps':
    case 'mounts':
    case 'loopback':
      return {
        message: `this system refuses the namespaces of tier T1: ${cause}`,
        hint:
          namespaceRefusal() ??
          (error === ENOSPC || error === EPERM
            ? 'User namespaces are refused or used up here: look at user.max_user_namespaces, and at what confines this process.'
            : 'Tier T1 needs Linux 5.13 or later with user namespaces.'),
      };
    case 'proc':
      return {
        message: `this system refuses a /proc of the session’s own: ${cause}`,
        hint: 'Containers that mask parts of /proc do that: run nd7 outside of it, or start the container with an unmasked /proc.',
      };
    case 'landlock':
      return {
        message: `Landlock does not hold here: ${cause}`,
        hint: 'Tier T1 needs a kernel of 5.13 or later with landlock in its list of security modules (lsm=… on the kernel’s command line).',
      };
    case 'self-test':
      return {
        message: `the boundary did not hold when it was tried, so nothing was started: ${cause}`,
        hint: 'Please report it with the output of `nd7 run --verbose`: this kernel lets through what it should refuse.',
      };
    case 'session':
      return { message: `the session was ended: ${cause}`, hint: 'What the program had done until then stands.' };
    default:
      return { message: `the boundary could not be made (${step}): ${cause}`, hint: 'Nothing was started.' };
  }
}
